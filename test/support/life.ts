import { files, parsePhase } from "../../src/contract/delivery.ts";
import { createDelivery } from "../../src/reconcile/deliver.ts";
import { createLookAhead } from "../../src/reconcile/head-start.ts";
import { createListKeys } from "../../src/reconcile/janitor.ts";
import { createObserve, type Delivered } from "../../src/reconcile/observe.ts";
import { createProvisioner } from "../../src/reconcile/provisioner.ts";
import { createReconcile, type Outcome, type ReconcileOptions } from "../../src/reconcile/reconcile.ts";
import type { FakeContainer, FakeDocker } from "./fake-docker.ts";
import type { Line } from "./log.ts";
import { createProvisioningWorld } from "./provisioning.ts";

type World = Awaited<ReturnType<typeof createProvisioningWorld>>;

/** One sidecar process on that Engine; another one made later knows only what the Engine knows. */
const createSidecar = (
  world: World,
  over: Partial<Pick<ReconcileOptions, "enabled" | "only">> & { maxSandboxes?: number } = {},
) => {
  const { fake, registry, log } = world;
  const queue = new Set<string>();
  const provisioner = createProvisioner(
    world.provisionOptions,
    { concurrency: 8, maxSandboxes: over.maxSandboxes ?? 100 },
    (owner) => queue.add(owner),
  );
  const deliveries = new Map<string, Delivered>();
  const vocabulary = { engines: registry.map(({ name }) => name), roles: ["developer", "qa"], installation: "default" };
  const reconcile = createReconcile({
    observe: createObserve(fake.docker, vocabulary, provisioner, deliveries),
    lookAhead: createLookAhead(fake.docker, vocabulary),
    hands: {
      docker: fake.docker,
      delivery: createDelivery(fake.docker, registry, deliveries),
      provisioner,
      registry,
      installation: "default",
      log,
    },
    clock: fake.clock,
    rules: { registry, network: undefined, janitorGraceMs: 180_000, teardownGraceMs: 2000 },
    enabled: over.enabled ?? true,
    ...(over.only ? { only: over.only } : {}),
    log,
  });
  const listKeys = createListKeys(fake.docker, "default", provisioner.owners);
  return {
    provisioner,
    reconcile,
    look: (container: FakeContainer | string): Promise<Outcome> =>
      reconcile(typeof container === "string" ? container : container.id),
    /** Looks until what is being made for this agent is there or has failed. */
    settle: async (container: FakeContainer): Promise<Outcome> => {
      let outcome = await reconcile(container.id);
      while (Object.values(provisioner.jobs(container.id)).some(({ state }) => state === "running")) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      queue.delete(container.id);
      outcome = await reconcile(container.id);
      return outcome;
    },
    /** A tick: one look at everything. */
    tick: async (): Promise<readonly Outcome[]> => Promise.all((await listKeys()).map(reconcile)),
  };
};

export type Sidecar = ReturnType<typeof createSidecar>;

export const createLife = async (options: Parameters<typeof createProvisioningWorld>[0] = {}) => {
  const world = await createProvisioningWorld(options);
  const { fake } = world;
  return {
    ...world,
    sidecar: (over: Parameters<typeof createSidecar>[1] = {}): Sidecar => createSidecar(world, over),
    agent: (over: Partial<FakeContainer> & { services?: string } = {}): FakeContainer => {
      const { services = "redis", ...rest } = over;
      return fake.add({ name: "ada", labels: { "roboco.sandbox.services": services }, ...rest });
    },
    sandboxes: (): FakeContainer[] =>
      [...fake.containers.values()].filter((one) => one.labels["roboco.sandbox"] === "1"),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
};

export const fileOf = (container: FakeContainer, name: keyof typeof files): string | undefined =>
  container.files[`/run/roboco/${files[name]}`];

export const phaseOf = (container: FakeContainer): string | undefined =>
  parsePhase(fileOf(container, "phase"), container.id);

export const writesTo = (fake: FakeDocker, id: string) => fake.writes().filter(({ args }) => args.includes(id));

export const secretsIn = (lines: readonly Line[]): readonly string[] =>
  JSON.stringify(lines).match(/(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])/g) ?? [];
