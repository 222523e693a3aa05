import type { Log } from "../contract/log-events.ts";
import type { OptIn } from "../contract/opt-in.ts";
import { toError } from "../errors.ts";
import { act, type Hands } from "./act.ts";
import { type Ahead, planHeadStart } from "./head-start.ts";
import type { Sight } from "./observe.ts";
import { isAlive } from "./observed.ts";
import { type Action, type Plan, plan, type Rules, type Status } from "./plan.ts";
import type { Clock, ContainerSummary } from "./ports.ts";
import { RefusedError } from "./refused-error.ts";

export interface Outcome {
  readonly key: string;
  readonly status: Status | "failed";
  /** Did anything: on a tick without an event this is drift. */
  readonly changed: boolean;
  /** Run again after this time; `undefined`: when something happens. */
  readonly lookAgainAfterMs?: number;
  /** The Engine failed a step: run again, with back-off. */
  readonly err?: Error;
  /** Containers of the same agent id, which may have waited for this change. */
  readonly wake: readonly string[];
}

export interface ReconcileOptions {
  readonly observe: (key: string) => Promise<Sight>;
  readonly lookAhead: (key: string) => Promise<Ahead | undefined>;
  readonly hands: Hands;
  readonly clock: Clock;
  readonly rules: Rules;
  /** Off: says what it would do, and does nothing. */
  readonly enabled: boolean;
  /** Agents in other states are left as they are: for a janitor pass or a shutdown. */
  readonly only?: readonly Status[];
  readonly log: Log;
}

const refusing: readonly Action[] = [{ kind: "remove", reason: "refused" }];

/** One agent: observe, plan, act. Never rejects: what happened is the outcome. */
export const createReconcile = (options: ReconcileOptions) => {
  const { observe, hands, clock, rules, log } = options;
  const seen = new Set<string>();
  const waiting = new Set<string>();

  return async (key: string): Promise<Outcome> => {
    try {
      if (options.enabled && !options.only && !seen.has(key)) await headStart(key);
      const sight = await observe(key);
      const planned = plan(sight, clock.now(), rules);
      if (sight.agent) announce(sight.agent, sight.agentId, sight.optIn);
      const actions = (options.only?.includes(planned.status) ?? true) ? planned.actions : [];
      if (!options.enabled) {
        if (actions.length > 0)
          log("watch.changed", { agent: sight.agentId, container: key, actions: actions.map(({ kind }) => kind) });
        // Nobody waits for what will not be done.
        return { key, status: "idle", changed: false, wake: [] };
      }
      if (planned.status !== "waiting") waiting.delete(key);
      else if (!waiting.has(key)) {
        waiting.add(key);
        log("agent.waiting", { agent: sight.agentId, container: key, peers: sight.peers.map(({ name }) => name) });
      }
      if (planned.status === "gone" && !sight.agent) seen.delete(key);
      const isRefused = await carryOut(actions, sight);
      return toOutcome(key, isRefused ? { status: "refused", actions: refusing } : planned, actions, sight);
    } catch (thrown) {
      return { key, status: "failed", changed: false, err: toError(thrown), wake: [] };
    }
  };

  /** Resolves to whether a step turned out impossible, and the agent was refused for it. */
  async function carryOut(actions: readonly Action[], sight: Sight): Promise<boolean> {
    for (const action of actions) {
      try {
        await act(action, sight, hands);
      } catch (thrown) {
        if (!(thrown instanceof RefusedError)) throw thrown;
        if (!(await hands.docker.inspectContainer(sight.key))) return false; // it went meanwhile: nothing to refuse
        await act({ kind: "refuse", refusal: thrown.refusal }, sight, hands);
        if (sight.agent && isAlive(sight.agent.status)) await act({ kind: "kill" }, sight, hands);
        for (const step of refusing) await act(step, sight, hands);
        return true;
      }
    }
    return false;
  }

  /** While a container starts, the Engine answers no question about it alone: what a list tells of it is enough to begin. */
  async function headStart(key: string): Promise<void> {
    const { provisioner, registry } = hands;
    const found = await options.lookAhead(key);
    const start = found && planHeadStart(found, clock.now(), rules.network);
    if (!start) return;
    announce(start.agent, start.agentId, start.optIn);
    for (const engine of registry.filter(({ name }) => start.optIn.engines.includes(name))) {
      provisioner.start(
        { engine, agentId: start.agentId, ownerContainer: key, network: start.network, password: undefined },
        { lost: false, existing: found.existing },
      );
    }
  }

  function announce({ id, name, status }: ContainerSummary, agentId: string, optIn: OptIn): void {
    if (seen.has(id) || optIn.kind === "stranger") return;
    seen.add(id);
    const asks = optIn.kind === "valid" ? { engines: optIn.engines, role: optIn.role, hold: optIn.hold } : {};
    log("agent.seen", { agent: agentId, container: id, name, state: status, ...asks });
  }

  function toOutcome(key: string, planned: Plan, actions: readonly Action[], sight: Sight): Outcome {
    const freed = [...actions, ...planned.actions].some(({ kind }) => kind === "remove");
    return {
      key,
      status: planned.status,
      changed: actions.length > 0,
      ...(planned.lookAgainAt === undefined
        ? {}
        : { lookAgainAfterMs: Math.max(1, planned.lookAgainAt - clock.now()) }),
      wake: freed ? sight.peers.map(({ id }) => id) : [],
    };
  }
};
