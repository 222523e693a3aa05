import type { SandboxEngine } from "../../src/engines/engine.ts";
import { createEnsureImage } from "../../src/reconcile/ensure-image.ts";
import type { ProvisionOptions, ProvisionRequest } from "../../src/reconcile/provision.ts";
import { createFakeDocker, type FakeContainer, type FakeDocker } from "./fake-docker.ts";
import { fakeRegistry, type Login, listen } from "./fake-sandbox.ts";
import { createTestLog } from "./log.ts";

/** An Engine in memory, and all that a provisioning needs. What listens is closed with `await using`. */
export const createProvisioningWorld = async (options: { login?: Login; readyWithinMs?: number } = {}) => {
  const server = await listen();
  const fake = createFakeDocker();
  const logged = createTestLog();
  const registry = fakeRegistry(server.port, options.login ?? (async () => {}), {
    readyWithinMs: options.readyWithinMs ?? 10_000,
  });
  let held = 0;
  const provisionOptions: ProvisionOptions = {
    docker: fake.docker,
    reach: {
      hold: async () => {
        held += 1;
        return {
          [Symbol.asyncDispose]: async () => {
            held -= 1;
          },
        };
      },
    },
    log: logged.log,
    installation: "default",
    images: Object.fromEntries(registry.map(({ name, image }) => [name, image])),
    memoryBytes: 512 * 1024 * 1024,
    cpus: 1,
    ensureImage: createEnsureImage(fake.docker, logged.log, 60_000),
  };
  const engine = (name: string): SandboxEngine => {
    const found = registry.find((one) => one.name === name);
    if (!found) throw new Error(`no engine ${name}`);
    return found;
  };
  return {
    ...logged,
    fake,
    registry,
    provisionOptions,
    port: server.port,
    /** Networks that the sidecar is joined to just now. */
    held: () => held,
    engine,
    request: (over: Partial<ProvisionRequest> & { name?: string } = {}): ProvisionRequest => ({
      engine: engine(over.name ?? "redis"),
      agentId: "ada",
      ownerContainer: "owner",
      network: "shop_default",
      password: undefined,
      ...over,
    }),
    sandbox: (name: string): FakeContainer | undefined => fake.find(`roboco-sandbox-${name}-ada`),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
};

export const addSandbox = (
  fake: FakeDocker,
  over: Partial<FakeContainer> & { owner?: string; engine?: string; installation?: string } = {},
): FakeContainer => {
  const { owner = "owner", engine = "redis", installation = "default", ...rest } = over;
  return fake.add({
    name: `roboco-sandbox-${engine}-ada`,
    status: "running",
    environment: { REDIS_PASSWORD: "5e".repeat(16) },
    labels: {
      "roboco.sandbox": "1",
      "roboco.sandbox.owner": "roboco-agent-ada",
      "roboco.sandbox.owner.container": owner,
      "roboco.sandbox.engine": engine,
      "roboco.sandbox.installation": installation,
    },
    ...rest,
  });
};
