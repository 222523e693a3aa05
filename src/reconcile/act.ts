import { setTimeout as delay } from "node:timers/promises";
import { runDirectory } from "../contract/delivery.ts";
import { labels } from "../contract/labels.ts";
import type { Log } from "../contract/log-events.ts";
import { fallbackNetwork } from "../contract/names.ts";
import type { Refusal } from "../contract/refusal.ts";
import type { Registry } from "../engines/registry.ts";
import { EngineFaultError, EngineRejectedError, toError } from "../errors.ts";
import type { Delivery } from "./deliver.ts";
import { joinFallbackNetwork, removeFallbackNetwork } from "./fallback-network.ts";
import { listSandboxes, type Sight } from "./observe.ts";
import { isAlive } from "./observed.ts";
import type { Action } from "./plan.ts";
import type { ContainerView, DockerPort } from "./ports.ts";
import type { Provisioner } from "./provisioner.ts";
import { RefusedError } from "./refused-error.ts";
import { checkRunDirectory } from "./requirements.ts";

export interface Hands {
  readonly docker: DockerPort;
  readonly delivery: Delivery;
  readonly provisioner: Provisioner;
  readonly registry: Registry;
  readonly installation: string;
  readonly log: Log;
}

/** Carries out one action. Already so is done; what cannot be done for this agent ends in a refusal. */
export const act = async (action: Action, sight: Sight, hands: Hands): Promise<void> => {
  const { docker, delivery, provisioner, log } = hands;
  const { key, agentId } = sight;
  const ids = { agent: agentId, container: key };
  const agent = sight.agent as ContainerView; // no action but `remove` is planned without one

  switch (action.kind) {
    case "join":
      await refuseUnlessPossible("NETWORK_UNSUPPORTED", networkRemedy(action.network), async () => {
        if (action.network === fallbackNetwork) await joinFallbackNetwork(key, hands);
        else await docker.connectNetwork(action.network, key);
      });
      return;
    case "provision": {
      const engine = hands.registry.find(({ name }) => name === action.engine);
      if (!engine) return;
      const password = provisioner.passwords(key)[engine.name] ?? sight.delivered.passwords[engine.name];
      provisioner.start(
        { engine, agentId, ownerContainer: key, network: action.network, password },
        { lost: action.lost, existing: sight.existing },
      );
      return;
    }
    case "arm":
      await refuseUnlessPossible("RUN_DIRECTORY_UNUSABLE", runDirectoryRemedy, () => delivery.arm(agent, agentId));
      return;
    case "hold":
      await refuseUnlessPossible("HOLD_IMPOSSIBLE", holdRemedy, async () => {
        if ((await docker.pauseContainer(key)) === "paused") log("agent.held", ids);
      });
      return;
    case "deliver":
      await refuseUnlessPossible("RUN_DIRECTORY_UNUSABLE", runDirectoryRemedy, () =>
        delivery.deliver(agent, agentId, action.phase, provisioner.passwords(key)),
      );
      if (action.phase === "released" && sight.phase !== "delivered") log("agent.released", { ...ids, held: false });
      return;
    case "release":
      await docker.unpauseContainer(key);
      log("agent.released", { ...ids, held: true });
      await delivery.mark(agent, "released");
      return;
    case "refuse":
      await refuse(action.refusal, sight, hands);
      return;
    case "kill":
      // Released once, its own code runs: no launcher holds it back.
      if (sight.phase !== "released" && (await leavesByItself(agent, docker))) return;
      await docker.killContainer(key);
      log("agent.killed", ids);
      return;
    case "remove":
      await removeSandboxes(action.reason, sight, hands);
      return;
    case "forget":
      delivery.forget(key);
      await removeFallbackNetwork(hands);
      return;
  }
};

const refuse = async (refusal: Refusal, sight: Sight, { delivery, log }: Hands): Promise<void> => {
  const { key, agentId, agent } = sight;
  log("agent.refused", { agent: agentId, container: key, name: agent?.name, ...pickRefusal(refusal) });
  if (!agent) return;
  await delivery.refuse(agent, agentId, refusal);
};

const launcher = "/roboco/bin/enter";
const launcherExitMs = 1000;
const launcherLookMs = 25;

/** Our launcher has not let the agent's own code run: it says why on the agent's own log, and ends. */
const leavesByItself = async (agent: ContainerView, docker: DockerPort): Promise<boolean> => {
  // One that sees no refusal does not end.
  if (!agent.command.includes(launcher) || checkRunDirectory(agent).length > 0) return false;
  if (agent.status === "paused") await docker.unpauseContainer(agent.id);
  const startedAt = performance.now();
  while (performance.now() - startedAt < launcherExitMs) {
    const now = await docker.inspectContainer(agent.id);
    if (!now || !isAlive(now.status)) return true;
    await delay(launcherLookMs);
  }
  return false;
};

const pickRefusal = ({ error, message, remediate, missing }: Refusal) => ({
  error,
  reason: message,
  remediate,
  missing,
});

/**
 * All in parallel, by force: throwaway data needs no graceful stop. The Engine takes networks away one by one, each after
 * its container's end; all but the first leave theirs beforehand, so that the two overlap (docs/adr/0005).
 */
const removeSandboxes = async (reason: string, sight: Sight, hands: Hands): Promise<void> => {
  const { docker, provisioner, log, installation } = hands;
  const { key, agentId } = sight;
  const startedAt = performance.now();
  await provisioner.cancel(key);
  // What a cancelled job had just made is not in what was observed before.
  const isSeen = Object.values(sight.jobs).every(({ state }) => state !== "running");
  const sandboxes = isSeen ? sight.sandboxes : await listSandboxes(docker, installation, key);
  const results = await Promise.allSettled(
    sandboxes.map(async ({ id, engine, networks }, index) => {
      if (index > 0) for (const network of networks) await docker.disconnectNetwork(network, id);
      await docker.removeContainer(id);
      const durationMs = Math.round(performance.now() - startedAt);
      log("sandbox.removed", { agent: agentId, container: key, engine, reason, durationMs });
    }),
  );
  const failure = results.find((result) => result.status === "rejected");
  if (failure) throw toError(failure.reason);
  if (reason === "gone" || reason === "ended") log("agent.gone", { agent: agentId, container: key });
};

const maxAttempts = 3;
const faultPauseMs = 100;

const refuseUnlessPossible = async (
  error: Refusal["error"],
  remediate: string,
  step: () => Promise<void>,
): Promise<void> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await step();
    } catch (thrown) {
      const isFault = thrown instanceof EngineFaultError;
      if (isFault && attempt < maxAttempts) {
        await delay(faultPauseMs);
        continue; // a hiccup is no refusal yet
      }
      if (!(isFault || thrown instanceof EngineRejectedError)) throw thrown;
      throw new RefusedError({ error, message: `The Engine refused: ${thrown.message}.`, remediate, missing: [] });
    }
  }
};

const networkRemedy = (network: string): string =>
  `See that the network ${network} exists and that containers may join it (ROBOCO_SANDBOX_NETWORK), then recreate the agent.`;

const runDirectoryRemedy = `Mount a volume of the agent's own, writable, at ${runDirectory} and recreate the agent.`;

const holdRemedy = `If this Engine cannot pause containers, set the label ${labels.hold}=none and start the agent through /roboco/bin/enter.`;
