import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Phase } from "../../src/contract/delivery.ts";
import type { OptIn } from "../../src/contract/opt-in.ts";
import type { Refusal } from "../../src/contract/refusal.ts";
import { registry } from "../../src/engines/registry.ts";
import { isAlive, type Job, type Observed } from "../../src/reconcile/observed.ts";
import { type Action, plan, type Rules } from "../../src/reconcile/plan.ts";
import type { ContainerStatus } from "../../src/reconcile/ports.ts";
import { agentView, observedOf, peerOf, readyWith, sandboxView, t0, validOptIn } from "../support/observed.ts";

const rules: Rules = { registry, network: undefined, janitorGraceMs: 180_000, teardownGraceMs: 2000 };

const refusal: Refusal = { error: "SANDBOX_EXITED", message: "It exited.", remediate: "Mend it.", missing: ["redis"] };
const invalid: OptIn = { kind: "invalid", agentId: "ada", refusal: { ...refusal, error: "OPT_IN_INVALID" } };
const both = validOptIn({ engines: ["postgres", "redis"] });
const running: Job = { state: "running" };
const failed: Job = { state: "failed", refusal };
const created = (ageMs = 0) =>
  agentView({ status: "created", createdAt: t0 - ageMs, startedAt: undefined, networks: {} });
const paused = agentView({ status: "paused" });
const exited = (agoMs: number) => agentView({ status: "exited", finishedAt: t0 - agoMs });

const provision = (engine: string, lost = false): Action => ({
  kind: "provision",
  engine,
  network: "shop_default",
  lost,
});
const arm: Action = { kind: "arm" };
const hold: Action = { kind: "hold" };
const kill: Action = { kind: "kill" };
const release: Action = { kind: "release" };
const forget: Action = { kind: "forget" };
const deliver = (phase: "delivered" | "released"): Action => ({ kind: "deliver", phase });
const refuse = (error: Refusal["error"]): unknown => ({ kind: "refuse", refusal: expect.objectContaining({ error }) });
const remove = (reason: (Action & { kind: "remove" })["reason"]): Action => ({ kind: "remove", reason });

interface Row {
  readonly title: string;
  readonly given: Partial<Observed>;
  readonly rules?: Partial<Rules>;
  readonly status: string;
  readonly actions: readonly unknown[];
  readonly lookAgainAt?: number;
}

const rows = (section: string, table: readonly Row[]): void => {
  describe(section, () => {
    it.each(table)("$title", ({ given, rules: over, status, actions, lookAgainAt }) => {
      const planned = plan(observedOf(given), t0, { ...rules, ...over });
      expect(planned.actions).toEqual(actions);
      expect(planned.status).toBe(status);
      expect(planned.lookAgainAt).toBe(lookAgainAt);
    });
  });
};

rows("strangers", [
  {
    title: "a container that asks for nothing is left alone",
    given: { optIn: { kind: "stranger" } },
    status: "stranger",
    actions: [],
  },
  {
    title: "a stranger that ended is left alone",
    given: { optIn: { kind: "stranger" }, agent: exited(9000) },
    status: "gone",
    actions: [],
  },
]);

rows("provisioning (contract 4.1)", [
  {
    title: "a created agent's engines are all made at once, and it is marked before it can start",
    given: { agent: created(), optIn: both },
    status: "provisioning",
    actions: [provision("postgres"), provision("redis"), arm],
  },
  {
    title: "an agent that runs already is marked and paused before its sandboxes are made",
    given: {},
    status: "provisioning",
    actions: [arm, hold, provision("redis")],
  },
  {
    title: "what is being made is not begun a second time",
    given: { agent: created(), jobs: { redis: running }, phase: "armed" },
    status: "provisioning",
    actions: [],
  },
  {
    title: "the engine that is lacking is made beside the one that is there",
    given: {
      optIn: both,
      agent: created(),
      phase: "armed",
      sandboxes: [sandboxView("redis")],
      jobs: { redis: { state: "ready", containerId: "redis-1" } },
    },
    status: "provisioning",
    actions: [provision("postgres")],
  },
  {
    title: "a sandbox that a dead sidecar left is looked after again",
    given: { agent: created(), phase: "armed", sandboxes: [sandboxView("redis")] },
    status: "provisioning",
    actions: [provision("redis")],
  },
  {
    title: "an agent that only has a role gets its files at once",
    given: { agent: created(), optIn: validOptIn({ engines: [], role: "qa" }) },
    status: "ready",
    actions: [deliver("released")],
  },
  {
    title: "an agent without a network of its own is joined to the fallback first",
    given: { agent: { ...created(), networkMode: "default" }, phase: "armed" },
    status: "provisioning",
    actions: [
      { kind: "join", network: "roboco-sandbox" },
      { ...provision("redis"), network: "roboco-sandbox" },
    ],
  },
  {
    title: "an agent that is joined already is not joined again",
    given: {
      agent: agentView({ status: "created", networkMode: "bridge", networks: { bridge: "", "roboco-sandbox": "" } }),
      phase: "armed",
    },
    status: "provisioning",
    actions: [{ ...provision("redis"), network: "roboco-sandbox" }],
  },
  {
    title: "a configured network is the sandbox's, and the agent is joined to it",
    given: { agent: created(), phase: "armed" },
    rules: { network: "agents" },
    status: "provisioning",
    actions: [
      { kind: "join", network: "agents" },
      { ...provision("redis"), network: "agents" },
    ],
  },
]);

rows("hold and release (contract 4.2, 4.4)", [
  {
    title: "a marked agent that starts too early is paused",
    given: { phase: "armed", jobs: { redis: running } },
    status: "provisioning",
    actions: [hold],
  },
  {
    title: "an agent with hold=none is marked and not paused",
    given: { optIn: validOptIn({ hold: "none" }), jobs: { redis: running } },
    status: "provisioning",
    actions: [arm],
  },
  {
    title: "an agent that is held stays so while a sandbox is lacking",
    given: { agent: paused, phase: "armed", jobs: { redis: running } },
    status: "provisioning",
    actions: [],
  },
  {
    title: "a held agent gets its files and is released, in this order",
    given: { agent: paused, phase: "armed", ...readyWith("redis") },
    status: "ready",
    actions: [deliver("delivered"), release],
  },
  {
    title: "an agent held by a sidecar that died after the delivery is released by the next",
    given: { agent: paused, phase: "delivered", ...readyWith("redis") },
    status: "ready",
    actions: [release],
  },
  {
    title: "an agent that was unpaused by hand after the delivery counts as released",
    given: { phase: "delivered", ...readyWith("redis") },
    status: "ready",
    actions: [deliver("released")],
  },
  {
    title: "a created agent gets its files before it starts, and its later pauses are its user's",
    given: { agent: created(), phase: "armed", ...readyWith("redis") },
    status: "ready",
    actions: [deliver("released")],
  },
  {
    title: "an agent that its user paused stays paused when its sandboxes come",
    given: { agent: paused, phase: undefined, ...readyWith("redis") },
    status: "ready",
    actions: [deliver("released")],
  },
  {
    title: "an agent that its user paused is not marked as ours while its sandboxes are made",
    given: { agent: paused, phase: undefined },
    status: "provisioning",
    actions: [provision("redis")],
  },
  {
    title: "a released agent that its user paused stays paused",
    given: { agent: paused, phase: "released", ...readyWith("redis") },
    status: "ready",
    actions: [],
  },
  {
    title: "an agent with hold=none that its user paused stays paused",
    given: { agent: paused, phase: "armed", optIn: validOptIn({ hold: "none" }), ...readyWith("redis") },
    status: "ready",
    actions: [deliver("released")],
  },
  {
    title: "an agent that has everything is left alone",
    given: { phase: "released", ...readyWith("redis") },
    status: "ready",
    actions: [],
  },
  {
    title: "an agent that lost a sandbox between delivery and release waits for a new one",
    given: {
      agent: paused,
      phase: "delivered",
      sandboxes: [sandboxView("redis", { status: "exited" })],
      jobs: readyWith("redis").jobs,
    },
    status: "provisioning",
    actions: [provision("redis"), arm],
  },
]);

rows("refusals (contract 4.3)", [
  {
    title: "an invalid opt-in is told before the agent starts",
    given: { agent: created(), optIn: invalid },
    status: "refused",
    actions: [refuse("OPT_IN_INVALID")],
  },
  {
    title: "an invalid opt-in that runs is told and killed",
    given: { optIn: invalid },
    status: "refused",
    actions: [refuse("OPT_IN_INVALID"), kill],
  },
  {
    title: "an agent that was refused before it started is killed as soon as it starts",
    given: { optIn: invalid, phase: "refused" },
    status: "refused",
    actions: [kill],
  },
  {
    title: "an agent that was refused and did not start is not told twice",
    given: { agent: created(), optIn: invalid, phase: "refused" },
    status: "refused",
    actions: [],
  },
  {
    title: "one engine's failure refuses the agent and tears down the siblings",
    given: {
      agent: paused,
      phase: "armed",
      optIn: both,
      sandboxes: [sandboxView("postgres")],
      jobs: { postgres: { state: "ready", containerId: "postgres-1" }, redis: failed },
    },
    status: "refused",
    actions: [refuse("SANDBOX_EXITED"), kill, remove("refused")],
  },
  {
    title: "a failure counts while a sibling is still being made",
    given: { agent: created(), phase: "armed", optIn: both, jobs: { postgres: running, redis: failed } },
    status: "refused",
    actions: [refuse("SANDBOX_EXITED"), remove("refused")],
  },
  {
    title: "a held agent that cannot have its sandbox is killed, never left paused",
    given: { agent: paused, phase: "armed", jobs: { redis: failed } },
    status: "refused",
    actions: [refuse("SANDBOX_EXITED"), kill, remove("refused")],
  },
  {
    title: "an agent that is between two starts of its restart policy is killed when refused",
    given: { agent: agentView({ status: "restarting" }), phase: "refused" },
    status: "refused",
    actions: [kill],
  },
  {
    title: "a released agent whose sandbox keeps dying is killed",
    given: { phase: "released", jobs: { redis: failed } },
    status: "refused",
    actions: [refuse("SANDBOX_EXITED"), kill, remove("refused")],
  },
  {
    title: "an agent with other credentials in its environment is refused",
    given: { agent: { ...created(), environment: { ROBOCO_TEST_DB_HOST: "prod" } } },
    status: "refused",
    actions: [refuse("ENVIRONMENT_CONFLICT")],
  },
  {
    title: "an agent to which nothing can be delivered is refused",
    given: { agent: { ...created(), readonlyRootfs: true } },
    status: "refused",
    actions: [refuse("RUN_DIRECTORY_UNUSABLE")],
  },
  {
    title: "all that is wrong with an agent is told at once",
    given: {
      agent: { ...created(), readonlyRootfs: true, networkMode: "host", environment: { ROBOCO_TEST_REDIS_HOST: "x" } },
    },
    status: "refused",
    actions: [
      {
        kind: "refuse",
        refusal: expect.objectContaining({
          error: "ENVIRONMENT_CONFLICT",
          missing: ["ROBOCO_TEST_REDIS_HOST", "/run/roboco", "roboco.sandbox.services"],
        }),
      },
    ],
  },
  {
    title: "an agent that was released once is not judged again",
    given: { agent: agentView({ readonlyRootfs: true }), phase: "released", ...readyWith("redis") },
    status: "ready",
    actions: [],
  },
]);

rows("one agent id, several containers (contract 5)", [
  {
    title: "a created successor waits for its predecessor, marked",
    given: { agent: created(), peers: [peerOf()] },
    status: "waiting",
    actions: [arm],
    lookAgainAt: t0 + 1000,
  },
  {
    title: "a successor that runs while its predecessor is going waits under hold",
    given: { peers: [peerOf({ status: "exited" })] },
    status: "waiting",
    actions: [arm, hold],
    lookAgainAt: t0 + 1000,
  },
  {
    title: "a successor waits until a gone predecessor's sandboxes are gone, too",
    given: { peers: [peerOf({ status: "gone" })] },
    status: "waiting",
    actions: [arm, hold],
    lookAgainAt: t0 + 1000,
  },
  {
    title: "an agent that runs beside a living owner of its id is refused",
    given: { peers: [peerOf()] },
    status: "refused",
    actions: [refuse("AGENT_ID_TAKEN"), kill],
  },
  {
    title: "the elder of two that have nothing yet goes first",
    given: { agent: created(), peers: [peerOf({ owns: false, createdAt: t0 + 1000, status: "created" })] },
    status: "provisioning",
    actions: [provision("redis"), arm],
  },
  {
    title: "the younger of two that have nothing yet waits",
    given: { agent: created(), peers: [peerOf({ owns: false, status: "created" })] },
    status: "waiting",
    actions: [arm],
    lookAgainAt: t0 + 1000,
  },
  {
    title: "of two made in the same second one goes first",
    given: { agent: created(), peers: [peerOf({ owns: false, status: "created", createdAt: t0, id: "aaa" })] },
    status: "waiting",
    actions: [arm],
    lookAgainAt: t0 + 1000,
  },
  {
    title: "an elder that ended and has nothing blocks nobody",
    given: { agent: created(), peers: [peerOf({ owns: false, status: "exited" })] },
    status: "provisioning",
    actions: [provision("redis"), arm],
  },
  {
    title: "an elder that was never started within the grace blocks nobody",
    given: { agent: created(), peers: [peerOf({ owns: false, status: "created", createdAt: t0 - 180_000 })] },
    status: "provisioning",
    actions: [provision("redis"), arm],
  },
  {
    title: "the owner of the sandboxes is not blocked by a peer",
    given: { phase: "released", ...readyWith("redis"), peers: [peerOf({ owns: false })] },
    status: "ready",
    actions: [],
  },
]);

rows("the end (contract 5)", [
  {
    title: "a destroyed owner's sandboxes are removed at once",
    given: { agent: undefined, optIn: { kind: "stranger" }, sandboxes: [sandboxView("redis")] },
    status: "gone",
    actions: [remove("gone"), forget],
  },
  {
    title: "what is being made for a destroyed owner is stopped",
    given: { agent: undefined, optIn: { kind: "stranger" }, jobs: { redis: running } },
    status: "gone",
    actions: [remove("gone"), forget],
  },
  {
    title: "an owner that is being removed counts as destroyed",
    given: { agent: agentView({ status: "removing" }), sandboxes: [sandboxView("redis")] },
    status: "gone",
    actions: [remove("gone"), forget],
  },
  {
    title: "an owner that has died keeps its sandboxes for the grace",
    given: { agent: exited(1999), phase: "released", ...readyWith("redis") },
    status: "gone",
    actions: [],
    lookAgainAt: t0 + 1,
  },
  {
    title: "an owner that did not come back within the grace is voided first, then loses its sandboxes",
    given: { agent: exited(2000), phase: "released", ...readyWith("redis") },
    status: "gone",
    actions: [arm, remove("ended")],
  },
  {
    title: "a dead container counts as ended",
    given: { agent: { ...exited(5000), status: "dead" }, phase: "released", sandboxes: [sandboxView("redis")] },
    status: "gone",
    actions: [arm, remove("ended")],
  },
  {
    title: "an ended owner without sandboxes is voided once",
    given: { agent: exited(9000), phase: "armed" },
    status: "gone",
    actions: [],
  },
  {
    title: "a refused agent that ended may try again when it is started anew",
    given: { agent: exited(9000), phase: "refused" },
    status: "gone",
    actions: [arm],
  },
  {
    title: "a crash-looping agent keeps its sandbox and its credentials",
    given: {
      agent: agentView({ status: "restarting", finishedAt: t0 - 60_000 }),
      phase: "released",
      ...readyWith("redis"),
    },
    status: "ready",
    actions: [],
  },
  {
    title: "a restarted agent keeps its sandbox and its credentials",
    given: { agent: agentView({ finishedAt: t0 - 1000 }), phase: "released", ...readyWith("redis") },
    status: "ready",
    actions: [],
  },
  {
    title: "an ended agent that only has a role keeps its files",
    given: { agent: exited(9000), phase: "released", optIn: validOptIn({ engines: [], role: "qa" }) },
    status: "gone",
    actions: [],
  },
  {
    title: "an owner that was never started keeps its sandboxes for the janitor's grace",
    given: {
      agent: created(179_999),
      phase: "released",
      sandboxes: [sandboxView("redis", { createdAt: t0 - 179_000 })],
      jobs: readyWith("redis").jobs,
    },
    status: "ready",
    actions: [],
  },
  {
    title: "an owner that was never started is voided, then loses its sandboxes after the janitor's grace",
    given: {
      agent: created(180_000),
      phase: "released",
      sandboxes: [sandboxView("redis", { createdAt: t0 - 180_000 })],
      jobs: readyWith("redis").jobs,
    },
    status: "idle",
    actions: [arm, remove("never-started")],
  },
  {
    title: "a sandbox that came late has a janitor's grace of its own",
    given: { agent: created(200_000), phase: "released", ...readyWith("redis") },
    status: "ready",
    actions: [],
  },
  {
    title: "a slow pull for an owner not started yet is not cut off",
    given: { agent: created(200_000), phase: "armed", jobs: { redis: running } },
    status: "provisioning",
    actions: [],
  },
  {
    title: "an owner that was never started and lost its sandboxes gets none before it starts",
    given: { agent: created(300_000), phase: "armed" },
    status: "idle",
    actions: [],
  },
  {
    title: "such an owner is provisioned again, under hold, when it starts",
    given: { agent: agentView({ createdAt: t0 - 300_000 }), phase: "armed" },
    status: "provisioning",
    actions: [hold, provision("redis")],
  },
]);

rows("a sandbox that dies under a living agent (contract 5)", [
  {
    title: "a sandbox that ended is made again, said loudly, and the agent runs on",
    given: {
      phase: "released",
      sandboxes: [sandboxView("redis", { status: "exited" })],
      jobs: readyWith("redis").jobs,
    },
    status: "provisioning",
    actions: [provision("redis", true)],
  },
  {
    title: "a sandbox that was removed is made again",
    given: { phase: "released", jobs: readyWith("redis").jobs },
    status: "provisioning",
    actions: [provision("redis", true)],
  },
  {
    title: "a sandbox that somebody restarted is looked after until it answers again",
    given: { phase: "released", sandboxes: [sandboxView("redis", { id: "redis-2" })], jobs: readyWith("redis").jobs },
    status: "provisioning",
    actions: [provision("redis", false)],
  },
  {
    title: "a sandbox that its user paused is slow, not lost",
    given: {
      phase: "released",
      sandboxes: [sandboxView("redis", { status: "paused" })],
      jobs: readyWith("redis").jobs,
    },
    status: "ready",
    actions: [],
  },
  {
    title: "a new sidecar looks after a living agent's sandboxes without a fuss",
    given: { phase: "released", sandboxes: [sandboxView("redis")] },
    status: "provisioning",
    actions: [provision("redis", false)],
  },
]);

const statuses: readonly ContainerStatus[] = [
  "created",
  "running",
  "paused",
  "restarting",
  "removing",
  "exited",
  "dead",
];
const engines = registry.map(({ name }) => name);
const times = fc.integer({ min: -400_000, max: 1000 }).map((offset) => t0 + offset);
const status = fc.constantFrom(...statuses);

const anyAgent = fc.record({
  status,
  createdAt: times,
  finishedAt: fc.option(times, { nil: undefined }),
  networkMode: fc.constantFrom("shop_default", "default", "bridge", "host", "none", "container:abc"),
  readonlyRootfs: fc.boolean(),
  environment: fc.constantFrom<Record<string, string>>({}, {}, { ROBOCO_TEST_DB_HOST: "x" }),
  networks: fc.constantFrom<Record<string, string>>({}, { shop_default: "" }, { bridge: "", "roboco-sandbox": "" }),
});
const anyOptIn: fc.Arbitrary<OptIn> = fc.oneof(
  fc
    .record({
      engines: fc.subarray(engines),
      hold: fc.constantFrom("pause" as const, "none" as const),
      role: fc.constantFrom(undefined, "qa"),
    })
    .map(validOptIn),
  fc.constant(invalid),
  fc.constant<OptIn>({ kind: "stranger" }),
);
const anyJob: fc.Arbitrary<Job> = fc.constantFrom<Job>(
  running,
  failed,
  { state: "ready", containerId: "1" },
  { state: "ready", containerId: "2" },
);
const anySandboxes = fc
  .subarray(engines)
  .chain((names) =>
    fc.tuple(
      ...names.map((engine) =>
        fc.record({ id: fc.constantFrom("1", "2"), status, createdAt: times }).map((over) => sandboxView(engine, over)),
      ),
    ),
  );
const anyPeers = fc.array(
  fc
    .record({
      id: fc.constantFrom("a", "z"),
      status: fc.oneof(status, fc.constant("gone" as const)),
      createdAt: times,
      owns: fc.boolean(),
    })
    .map(peerOf),
  { maxLength: 2 },
);
const phases = fc.constantFrom<Phase | undefined>(undefined, "armed", "delivered", "released", "refused");
const anyObserved: fc.Arbitrary<Observed> = fc
  .record({
    agent: fc.option(anyAgent.map(agentView), { nil: undefined }),
    optIn: anyOptIn,
    sandboxes: anySandboxes,
    peers: anyPeers,
    phase: phases,
    jobs: fc
      .subarray(engines)
      .chain((names) =>
        fc
          .tuple(...names.map((name) => fc.tuple(fc.constant(name), anyJob)))
          .map((entries) => Object.fromEntries(entries)),
      ),
  })
  // Labels are read from the container: without one there is no opt-in and no phase, and a stranger's files are not read.
  .map((it) => ({ ...it, optIn: it.agent ? it.optIn : { kind: "stranger" as const } }))
  .map((it) => observedOf({ ...it, phase: it.optIn.kind === "stranger" ? undefined : it.phase }));

const kindsOf = (observed: Observed): Action["kind"][] => plan(observed, t0, rules).actions.map(({ kind }) => kind);
const holds = (predicate: (observed: Observed, kinds: Action["kind"][]) => void): void => {
  fc.assert(
    fc.property(anyObserved, (observed) => predicate(observed, kindsOf(observed))),
    { numRuns: 2000 },
  );
};
const wanted = (observed: Observed): readonly string[] =>
  observed.optIn.kind === "valid" ? observed.optIn.engines : [];
const lacks = (observed: Observed): boolean =>
  wanted(observed).some((engine) => {
    const sandbox = observed.sandboxes.find((one) => one.engine === engine);
    const job = observed.jobs[engine];
    const lives = sandbox?.status === "running" || sandbox?.status === "paused";
    return !(lives && job?.state === "ready" && job.containerId === sandbox.id);
  });

describe("for any world, plan", () => {
  it("says the same of the same", () => {
    fc.assert(
      fc.property(anyObserved, (observed) => {
        expect(plan(observed, t0, rules)).toEqual(plan(structuredClone(observed), t0, rules));
      }),
    );
  });

  it("does nothing to a stranger's container", () => {
    holds((observed, kinds) => {
      if (observed.optIn.kind !== "stranger") return;
      for (const kind of kinds) expect(["remove", "forget"]).toContain(kind);
    });
  });

  it("takes no sandbox from a living, unrefused agent", () => {
    holds((observed, kinds) => {
      if (!observed.agent || !isAlive(observed.agent.status) || !kinds.includes("remove")) return;
      expect(plan(observed, t0, rules).status).toBe("refused");
    });
  });

  it("lifts no pause but one that bears our mark", () => {
    holds((observed, kinds) => {
      if (!kinds.includes("release")) return;
      expect(["armed", "delivered"]).toContain(observed.phase);
      expect(observed.agent?.status).toBe("paused");
    });
  });

  it("marks an agent before it pauses it", () => {
    holds((observed, kinds) => {
      const at = kinds.indexOf("hold");
      if (at === -1) return;
      expect(observed.phase === "armed" || kinds.slice(0, at).includes("arm")).toBe(true);
      expect(observed.agent?.status).toBe("running");
    });
  });

  it("leaves no agent running without what it asked for, unless hold=none or it was released before", () => {
    holds((observed, kinds) => {
      const { agent, optIn, phase } = observed;
      if (agent?.status !== "running" || optIn.kind === "stranger" || phase === "released") return;
      if (optIn.kind === "valid" && (optIn.hold === "none" || !lacks(observed))) {
        return;
      }
      expect(kinds.includes("hold") || kinds.includes("kill")).toBe(true);
    });
  });

  it("kills a living agent whenever it refuses it, after it was told why", () => {
    holds((observed, kinds) => {
      if (plan(observed, t0, rules).status !== "refused") return;
      expect(kinds.includes("kill")).toBe(observed.agent !== undefined && isAlive(observed.agent.status));
      expect(kinds.includes("refuse")).toBe(observed.phase !== "refused");
      if (kinds.includes("refuse")) expect(kinds[0]).toBe("refuse");
    });
  });

  it("hands over only when no sandbox is lacking", () => {
    holds((observed, kinds) => {
      if (kinds.includes("deliver") || kinds.includes("release")) expect(lacks(observed)).toBe(false);
    });
  });

  it("voids what a container was given before it takes its sandboxes away", () => {
    holds((observed, kinds) => {
      const { agent, phase } = observed;
      if (!agent || agent.status === "removing" || !kinds.includes("remove") || wanted(observed).length === 0) return;
      if (phase !== "delivered" && phase !== "released") return;
      const first = kinds.find((kind) => kind === "arm" || kind === "refuse" || kind === "remove");
      expect(first).not.toBe("remove");
    });
  });

  it("removes nothing from an owner that is only created until its grace is over", () => {
    holds((observed, kinds) => {
      const { agent } = observed;
      if (agent?.status !== "created" || t0 - agent.createdAt >= rules.janitorGraceMs) return;
      if (plan(observed, t0, rules).status !== "refused") expect(kinds).not.toContain("remove");
    });
  });
});
