import type { OptIn } from "../../src/contract/opt-in.ts";
import type { Observed, Peer, SandboxView } from "../../src/reconcile/observed.ts";
import type { ContainerView } from "../../src/reconcile/ports.ts";

/** A moment of the Engine's clock. */
export const t0 = Date.parse("2026-01-01T00:00:00Z");

export const agentView = (over: Partial<ContainerView> = {}): ContainerView => ({
  id: "agent",
  name: "ada",
  status: "running",
  createdAt: t0,
  labels: {},
  startedAt: t0,
  finishedAt: undefined,
  exitCode: 0,
  oomKilled: false,
  environment: {},
  networkMode: "shop_default",
  networks: { shop_default: "10.0.0.2" },
  mounts: [],
  readonlyRootfs: false,
  command: ["sleep", "infinity"],
  ...over,
});

type Valid = OptIn & { kind: "valid" };

export const validOptIn = (over: Partial<Valid> = {}): Valid => ({
  kind: "valid",
  agentId: "ada",
  engines: ["redis"],
  role: undefined,
  hold: "pause",
  ...over,
});

export const sandboxView = (engine: string, over: Partial<SandboxView> = {}): SandboxView => ({
  id: `${engine}-1`,
  name: `roboco-sandbox-${engine}-ada`,
  engine,
  status: "running",
  createdAt: t0,
  networks: ["shop_default"],
  ...over,
});

export const peerOf = (over: Partial<Peer> = {}): Peer => ({
  id: "peer",
  name: "predecessor",
  status: "running",
  createdAt: t0 - 1000,
  owns: true,
  ...over,
});

export const observedOf = (over: Partial<Observed> = {}): Observed => ({
  key: "agent",
  agent: agentView(),
  optIn: validOptIn(),
  agentId: "ada",
  sandboxes: [],
  peers: [],
  phase: undefined,
  jobs: {},
  ...over,
});

/** A sandbox that answers, and the job that knows it. */
export const readyWith = (...engines: string[]): Pick<Observed, "sandboxes" | "jobs"> => ({
  sandboxes: engines.map((engine) => sandboxView(engine)),
  jobs: Object.fromEntries(engines.map((engine) => [engine, { state: "ready", containerId: `${engine}-1` } as const])),
});
