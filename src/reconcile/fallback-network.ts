import { labels } from "../contract/labels.ts";
import { fallbackNetwork } from "../contract/names.ts";
import { EngineRejectedError } from "../errors.ts";
import type { DockerPort } from "./ports.ts";

interface Owner {
  readonly docker: DockerPort;
  readonly installation: string;
}

/** Made where it is not there. */
export const joinFallbackNetwork = async (key: string, { docker, installation }: Owner): Promise<void> => {
  for (let attempt = 1; ; attempt += 1) {
    if (!(await docker.inspectNetwork(fallbackNetwork))) {
      await docker.createNetwork(fallbackNetwork, { [labels.sandbox]: "1", [labels.installation]: installation });
    }
    try {
      return await docker.connectNetwork(fallbackNetwork, key);
    } catch (error) {
      // The end of another agent, its last user until now, may have taken it away in between.
      if (!(error instanceof EngineRejectedError && error.status === 404) || attempt === 3) throw error;
    }
  }
};

/** Ours alone, and only when no container in any state refers to it: an ended agent could not start without it. */
export const removeFallbackNetwork = async ({ docker, installation }: Owner): Promise<void> => {
  const network = await docker.inspectNetwork(fallbackNetwork);
  if (network?.labels[labels.installation] === installation) await docker.removeNetworkIfUnused(fallbackNetwork);
};
