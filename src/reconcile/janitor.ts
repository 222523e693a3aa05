import { hasAgentLabel, labels } from "../contract/labels.ts";
import type { Log } from "../contract/log-events.ts";
import { toError } from "../errors.ts";
import { removeFallbackNetwork } from "./fallback-network.ts";
import type { Clock, DockerPort } from "./ports.ts";

/** Keys of everything there is to look at: agents, owners of sandboxes, and owners whose sandboxes are being made. */
export const createListKeys = (docker: DockerPort, installation: string, owners: () => readonly string[]) => {
  return async (): Promise<readonly string[]> => {
    const [sandboxes, containers] = await Promise.all([
      docker.listContainers([`${labels.sandbox}=1`, `${labels.installation}=${installation}`]),
      docker.listContainers([]),
    ]);
    return [
      ...new Set([
        ...containers.filter((container) => hasAgentLabel(container.labels)).map(({ id }) => id),
        ...sandboxes.flatMap((sandbox) => sandbox.labels[labels.ownerContainer] ?? []),
        ...owners(),
      ]),
    ];
  };
};

export interface JanitorOptions {
  readonly docker: DockerPort;
  readonly clock: Clock;
  readonly log: Log;
  readonly installation: string;
  readonly graceMs: number;
}

/**
 * What no agent's own run can see: sandboxes that name no owner container (made ahead of it), and the fallback network.
 * A sandbox with an owner is its owner's affair: its key is looked at on every tick.
 */
export const sweepOwnerless = async ({
  docker,
  clock,
  log,
  installation,
  graceMs,
}: JanitorOptions): Promise<number> => {
  const sandboxes = await docker.listContainers([`${labels.sandbox}=1`, `${labels.installation}=${installation}`]);
  const orphans = sandboxes.filter(
    (sandbox) => !sandbox.labels[labels.ownerContainer] && clock.now() - sandbox.createdAt >= graceMs,
  );
  const results = await Promise.allSettled(
    orphans.map(async ({ id, labels: its }) => {
      await docker.removeContainer(id);
      log("sandbox.removed", { container: id, engine: its[labels.engine] ?? "", reason: "ownerless" });
    }),
  );
  const failure = results.find((result) => result.status === "rejected");
  if (failure) throw toError(failure.reason);
  await removeFallbackNetwork({ docker, installation });
  return orphans.length;
};
