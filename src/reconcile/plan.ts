import type { Phase } from "../contract/delivery.ts";
import type { OptIn } from "../contract/opt-in.ts";
import { mergeRefusals, type Refusal } from "../contract/refusal.ts";
import type { Registry } from "../engines/registry.ts";
import { isAlive, isEnded, type Observed, type Peer, type SandboxView } from "./observed.ts";
import type { ContainerView } from "./ports.ts";
import { checkRequirements, chooseNetwork } from "./requirements.ts";

export type Action =
  /** Connects the agent to the network that its sandboxes are on. */
  | { readonly kind: "join"; readonly network: string }
  /** Starts to make one sandbox, or to look after one that a predecessor of this process made. */
  | { readonly kind: "provision"; readonly engine: string; readonly network: string; readonly lost: boolean }
  /** Voids what was delivered; from here on a pause of the agent is ours. */
  | { readonly kind: "arm" }
  | { readonly kind: "hold" }
  | { readonly kind: "deliver"; readonly phase: Phase & ("delivered" | "released") }
  | { readonly kind: "release" }
  | { readonly kind: "refuse"; readonly refusal: Refusal }
  | { readonly kind: "kill" }
  /** Cancels what is being made and removes every sandbox of this owner. */
  | { readonly kind: "remove"; readonly reason: "gone" | "ended" | "refused" | "never-started" }
  /** Nothing is left to remember of it. */
  | { readonly kind: "forget" };

/** `settled` states let the compose health gate open: contract 4.5. */
export type Status = "stranger" | "gone" | "idle" | "waiting" | "provisioning" | "ready" | "refused";

export interface Plan {
  readonly status: Status;
  readonly actions: readonly Action[];
  /** Look again at this time of the Engine's clock, though nothing may happen. */
  readonly lookAgainAt?: number;
}

export interface Rules {
  readonly registry: Registry;
  readonly network: string | undefined;
  readonly janitorGraceMs: number;
  readonly teardownGraceMs: number;
}

/** While waiting for a predecessor nothing may happen to the waiting container itself. */
const waitingLookMs = 1000;

/** Every rule of the contract, and nothing else: no clock, no I/O, no log. */
export const plan = (observed: Observed, now: number, rules: Rules): Plan => {
  const { agent, optIn } = observed;
  if (!agent || agent.status === "removing") return planGone(observed);
  if (isEnded(agent.status)) return planEnded(observed, agent, now, rules);
  if (optIn.kind === "stranger") return { status: "stranger", actions: [] };

  const refusals = findRefusals(observed, agent, rules);
  if (refusals[0]) return planRefused(observed, agent, mergeRefusals([refusals[0], ...refusals.slice(1)]));
  if (optIn.kind === "invalid" || observed.phase === "refused") return planRefused(observed, agent, undefined);

  const blocker = findBlocker(observed, agent, now, rules);
  if (blocker) return planBlocked(observed, agent, optIn, blocker, now);
  if (isNeverStarted(observed, agent, now, rules)) {
    return { status: "idle", actions: takeAway(observed, "never-started") };
  }
  return planWanted(observed, agent, optIn, rules);
};

type Valid = OptIn & { kind: "valid" };

const has = (observed: Observed): boolean => observed.sandboxes.length > 0 || Object.keys(observed.jobs).length > 0;

const planGone = (observed: Observed): Plan => ({
  status: "gone",
  actions: [...(has(observed) ? [{ kind: "remove", reason: "gone" } as const] : []), { kind: "forget" }],
});

/** `docker restart` looks like an end for a moment, so an end counts only after a grace. */
const planEnded = (observed: Observed, agent: ContainerView, now: number, rules: Rules): Plan => {
  const due = (agent.finishedAt ?? agent.createdAt) + rules.teardownGraceMs;
  if (has(observed) && now < due) return { status: "gone", actions: [], lookAgainAt: due };
  return { status: "gone", actions: takeAway(observed, "ended") };
};

/** An owner that still exists is told before it loses its sandboxes, so that a later start waits for fresh ones. */
const takeAway = (observed: Observed, reason: "ended" | "never-started"): Action[] => {
  const wantsSandboxes = observed.optIn.kind === "valid" && observed.optIn.engines.length > 0;
  const stale =
    observed.phase === "refused" || (wantsSandboxes && observed.phase !== undefined && observed.phase !== "armed");
  return [
    ...(stale ? [{ kind: "arm" } as const] : []),
    ...(has(observed) ? [{ kind: "remove", reason } as const] : []),
  ];
};

const findRefusals = (observed: Observed, agent: ContainerView, rules: Rules): readonly Refusal[] => {
  // Decided already, for this life of the container.
  if (observed.phase === "refused") return [];
  if (observed.optIn.kind === "invalid") return [observed.optIn.refusal];
  if (observed.optIn.kind === "stranger") return [];
  // Fixed for the container's life, so what was released once stays as it was.
  if (observed.phase !== "released") {
    const unmet = checkRequirements(agent, observed.optIn, rules.registry);
    if (unmet.length > 0) return unmet;
  }
  return Object.values(observed.jobs).flatMap((job) => (job.state === "failed" ? [job.refusal] : []));
};

/** Told first, so that bin/enter can say why; killed next; the siblings last, which nobody waits for. */
const planRefused = (observed: Observed, agent: ContainerView, refusal: Refusal | undefined): Plan => ({
  status: "refused",
  actions: [
    ...(refusal ? [{ kind: "refuse", refusal } as const] : []),
    ...(isAlive(agent.status) ? [{ kind: "kill" } as const] : []),
    ...(has(observed) ? [{ kind: "remove", reason: "refused" } as const] : []),
  ],
});

/** Of several containers of one agent id the first to own sandboxes has it, else the eldest that runs or is about to. */
const findBlocker = (observed: Observed, agent: ContainerView, now: number, rules: Rules): Peer | undefined => {
  if (has(observed) || (observed.optIn.kind === "valid" && observed.optIn.engines.length === 0)) return undefined;
  const isElder = (peer: Peer): boolean =>
    peer.createdAt < agent.createdAt || (peer.createdAt === agent.createdAt && peer.id < agent.id);
  const isPending = (peer: Peer): boolean => peer.status === "created" && now - peer.createdAt < rules.janitorGraceMs;
  return (
    observed.peers.find((peer) => peer.owns) ??
    observed.peers.find((peer) => isElder(peer) && (isAlive(peer.status) || isPending(peer)))
  );
};

const planBlocked = (observed: Observed, agent: ContainerView, optIn: Valid, blocker: Peer, now: number): Plan => {
  const isGoing = blocker.status === "gone" || blocker.status === "removing" || isEnded(blocker.status);
  if (isAlive(agent.status) && !isGoing) {
    return planRefused(observed, agent, {
      error: "AGENT_ID_TAKEN",
      message: `The agent id "${observed.agentId}" is taken by the container ${blocker.name} (${blocker.status}).`,
      remediate: `Give this agent an id of its own (label roboco.agent.id), or remove ${blocker.name} first, and recreate it.`,
      missing: optIn.engines,
    });
  }
  return {
    status: "waiting",
    actions: holdBack(observed, agent, optIn),
    lookAgainAt: now + waitingLookMs,
  };
};

const isNeverStarted = (observed: Observed, agent: ContainerView, now: number, rules: Rules): boolean => {
  const isYoung = ({ createdAt }: { createdAt: number }): boolean => now - createdAt < rules.janitorGraceMs;
  const isBeingMade = Object.values(observed.jobs).some((job) => job.state === "running");
  return agent.status === "created" && !isYoung(agent) && !isBeingMade && !observed.sandboxes.some(isYoung);
};

const planWanted = (observed: Observed, agent: ContainerView, optIn: Valid, rules: Rules): Plan => {
  const lacking = optIn.engines.filter((engine) => !isReady(observed, engine));
  if (lacking.length === 0) return { status: "ready", actions: handOver(observed, agent, optIn) };

  const { network, join } = chooseNetwork(agent, rules.network);
  const runsAlready = observed.phase === "released";
  const isLost = (engine: string): boolean =>
    runsAlready && !runs(observed.sandboxes.find((sandbox) => sandbox.engine === engine));
  const make = [
    ...(join && !(network in agent.networks) ? [{ kind: "join", network } as const] : []),
    ...lacking
      .filter((engine) => observed.jobs[engine]?.state !== "running")
      .map((engine) => ({ kind: "provision", engine, network, lost: isLost(engine) }) as const),
  ];
  const hold = runsAlready ? [] : holdBack(observed, agent, optIn);
  // One that runs is held before anything else is asked of a busy Engine; one that does not gains a head start.
  return { status: "provisioning", actions: agent.status === "running" ? [...hold, ...make] : [...make, ...hold] };
};

const isReady = (observed: Observed, engine: string): boolean => {
  const job = observed.jobs[engine];
  const sandbox = observed.sandboxes.find((candidate) => candidate.engine === engine);
  return runs(sandbox) && job?.state === "ready" && job.containerId === sandbox?.id;
};

/** A sandbox paused by its user is slow, not lost. */
const runs = (sandbox: SandboxView | undefined): boolean =>
  sandbox?.status === "running" || sandbox?.status === "paused";

/** Armed before it is paused: a pause without the mark is its user's, and stays. */
const holdBack = (observed: Observed, agent: ContainerView, optIn: Valid): Action[] => {
  const isUsersPause = agent.status === "paused" && observed.phase !== "armed" && observed.phase !== "delivered";
  return [
    ...(observed.phase === "armed" || isUsersPause ? [] : [{ kind: "arm" } as const]),
    ...(agent.status === "running" && optIn.hold === "pause" ? [{ kind: "hold" } as const] : []),
  ];
};

const handOver = (observed: Observed, agent: ContainerView, optIn: Valid): Action[] => {
  const isHeld = agent.status === "paused" && optIn.hold === "pause";
  switch (observed.phase) {
    case "released":
      return [];
    case "delivered":
      return isHeld ? [{ kind: "release" }] : [{ kind: "deliver", phase: "released" }];
    case "armed":
      return isHeld
        ? [{ kind: "deliver", phase: "delivered" }, { kind: "release" }]
        : [{ kind: "deliver", phase: "released" }];
    default:
      return [{ kind: "deliver", phase: "released" }];
  }
};
