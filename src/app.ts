import type { Config } from "./config.ts";
import type { Log } from "./contract/log-events.ts";
import { connectEngine, type EngineClient } from "./docker/client.ts";
import { createClock } from "./docker/clock.ts";
import { createDocker } from "./docker/engine.ts";
import { createEventStream } from "./docker/event-stream.ts";
import { createReach } from "./docker/reach.ts";
import { claimInstallation } from "./docker/rival.ts";
import { findSelf } from "./docker/self.ts";
import type { Registry } from "./engines/registry.ts";
import { toError } from "./errors.ts";
import { publishShared } from "./gateway/publish.ts";
import { loadRoles } from "./gateway/roles.ts";
import { createMetrics } from "./http/metrics.ts";
import { startHttp } from "./http/server.ts";
import { createControlLoop } from "./reconcile/control-loop.ts";
import { createDelivery } from "./reconcile/deliver.ts";
import { createEnsureImage } from "./reconcile/ensure-image.ts";
import { createLookAhead } from "./reconcile/head-start.ts";
import { createListKeys, sweepOwnerless } from "./reconcile/janitor.ts";
import { createObserve, type Delivered } from "./reconcile/observe.ts";
import type { Status } from "./reconcile/plan.ts";
import { createProvisioner } from "./reconcile/provisioner.ts";
import { createReadiness } from "./reconcile/readiness.ts";
import { createReconcile } from "./reconcile/reconcile.ts";

export interface AppOptions {
  readonly config: Config;
  readonly registry: Registry;
  readonly log: Log;
}

/** Everything but the stream and the servers: what `run` and `sweep` share. */
const assemble = async ({ config, registry, log }: AppOptions, onSettled: (key: string, retry: unknown) => void) => {
  const engine = await connectEngine(config.engineAddress);
  const self = await findSelf(engine.docker);
  const roles = await loadRoles(config.rolesFile);
  const docker = createDocker(engine.docker);
  const clock = await createClock(engine.docker);
  const reach = createReach(engine.docker, self);
  const { installation } = config;
  const provisioner = createProvisioner(
    {
      docker,
      reach,
      log,
      installation,
      images: config.images,
      memoryBytes: config.memoryBytes,
      cpus: config.cpus,
      ensureImage: createEnsureImage(docker, log, config.pullTimeoutMs),
    },
    { concurrency: config.concurrency, maxSandboxes: config.maxSandboxes },
    onSettled,
  );
  const deliveries = new Map<string, Delivered>();
  const vocabulary = { engines: registry.map(({ name }) => name), roles: Object.keys(roles), installation };
  const reconcileOptions = {
    observe: createObserve(docker, vocabulary, provisioner, deliveries),
    lookAhead: createLookAhead(docker, vocabulary),
    hands: { docker, delivery: createDelivery(docker, registry, deliveries), provisioner, registry, installation, log },
    clock,
    rules: {
      registry,
      network: config.network,
      janitorGraceMs: config.janitorGraceMs,
      teardownGraceMs: config.teardownGraceMs,
    },
    enabled: config.enabled,
    log,
  };
  const listKeys = createListKeys(docker, installation, provisioner.owners);
  const sweep = (): Promise<number> =>
    config.enabled
      ? sweepOwnerless({ docker, clock, log, installation, graceMs: config.janitorGraceMs })
      : Promise.resolve(0);
  return { engine, self, roles, docker, clock, reach, provisioner, reconcileOptions, listKeys, sweep };
};

/** Runs until `stop` is aborted, then finishes the teardowns that are due. Rejects when it cannot start. */
export const run = async (options: AppOptions & { stop: AbortSignal; logLevel?: string }): Promise<void> => {
  const { config, stop } = options;
  const readiness = createReadiness(() => log("sidecar.ready"));
  const metrics = createMetrics({
    isConnected: readiness.isConnected,
    isReady: readiness.isReady,
    agents: readiness.countAgents,
  });
  const log = metrics.counting(options.log);
  stop.addEventListener("abort", () => log("sidecar.stopping", { pending: readiness.health().pending.length }));
  await using http = await startHttp(config.listen, { health: readiness.health, registry: metrics.registry });
  let wake: (key: string, retry: unknown) => void = () => {};
  const parts = await assemble({ ...options, log }, (key, retry) => wake(key, retry));
  await using claim = await claimInstallation(parts.engine, parts.self, config.installation);
  void claim; // held until the end
  await begin(options, log, parts.engine, http.port);
  if (config.enabled) await publish(config, parts.roles, log);
  await parts.reach.leaveStale();

  const loop = createControlLoop({
    events: createEventStream(parts.engine.streams),
    listKeys: async () => {
      await parts.clock.synchronise();
      return parts.listKeys();
    },
    reconcile: createReconcile(parts.reconcileOptions),
    sweep: parts.sweep,
    tickMs: config.janitorIntervalMs,
    log,
    onEvent: (event) => {
      readiness.onEvent(event);
      metrics.engineEvents.inc({ action: event.kind === "container" ? event.action : event.kind });
    },
    onListed: readiness.onListed,
    onOutcome: (outcome) => {
      readiness.onOutcome(outcome);
      metrics.reconciles.inc({ status: outcome.status });
    },
  });
  wake = (key, retry) => {
    if (retry) log("reconcile.retried", { container: key, step: "provision", retryAfterMs: 1000, err: toError(retry) });
    loop.enqueue(key, retry ? 1000 : 0);
  };
  await loop.run(stop);

  await parts.provisioner.cancelAll();
  if (config.enabled) {
    // What cannot be done now is left to the next start: nothing is lost with this process.
    await pass(parts, ["gone"], { teardownGraceMs: 0 }).catch((error) =>
      log("reconcile.retried", { step: "drain", err: toError(error) }),
    );
  }
  log("sidecar.stopped");
};

/** One janitor pass: removes what has no living owner, touches nothing else. Resolves to how many agents it freed. */
export const sweep = async (options: AppOptions): Promise<number> => {
  const parts = await assemble(options, () => {});
  const ownerless = await parts.sweep();
  const freed = await pass(parts, ["gone", "idle"], {});
  options.log("janitor.swept", { removed: ownerless, agents: freed });
  return ownerless + freed;
};

type Parts = Awaited<ReturnType<typeof assemble>>;

const pass = async (parts: Parts, only: readonly Status[], rules: { teardownGraceMs?: number }): Promise<number> => {
  const { reconcileOptions } = parts;
  const reconcile = createReconcile({ ...reconcileOptions, rules: { ...reconcileOptions.rules, ...rules }, only });
  const outcomes = await Promise.all((await parts.listKeys()).map(reconcile));
  const failure = outcomes.find(({ err }) => err)?.err;
  if (failure) throw failure;
  return outcomes.filter(({ changed }) => changed).length;
};

const begin = async (options: AppOptions, log: Log, engine: EngineClient, port: number): Promise<void> => {
  const { config } = options;
  log("sidecar.started", {
    docker: { version: engine.version, api: engine.apiVersion, id: engine.engineId },
    enabled: config.enabled,
    config: { ...config, listen: { ...config.listen, port } },
  });
};

const publish = async (config: Config, roles: Parts["roles"], log: Log): Promise<void> => {
  const { hash, roles: published, changed } = await publishShared({ sharedDir: config.sharedDir, roles });
  log("manifest.published", { directory: config.sharedDir, roles: published, hash, changed });
};
