import { labels } from "../contract/labels.ts";
import { toOwner } from "../contract/names.ts";
import type { ContainerSpecification } from "./ports.ts";
import type { ProvisionOptions, ProvisionRequest } from "./provision.ts";

/** The tmpfs' share of the memory limit: a full disk must not kill the server that has to say so. */
const tmpfsShare = 0.75;

/** Contract 2. Every volume that the image declares lies in memory, and the engine's data with them. */
export const toSpecification = (
  name: string,
  { engine, agentId, ownerContainer, network }: ProvisionRequest,
  { installation, memoryBytes, cpus }: ProvisionOptions,
  { image, volumes, password }: { image: string; volumes: readonly string[]; password: string },
): ContainerSpecification => {
  const covered = engine.dataPath !== undefined && volumes.some((path) => `${engine.dataPath}/`.startsWith(`${path}/`));
  return {
    name,
    image,
    environment: { ...engine.environment, [engine.passwordVariable]: password },
    command: engine.command,
    labels: {
      [labels.sandbox]: "1",
      [labels.owner]: toOwner(agentId),
      [labels.ownerContainer]: ownerContainer,
      [labels.engine]: engine.name,
      [labels.installation]: installation,
    },
    network,
    tmpfs: engine.dataPath !== undefined && !covered ? [...volumes, engine.dataPath] : volumes,
    tmpfsBytes: Math.floor(memoryBytes * tmpfsShare),
    memoryBytes,
    cpus,
  };
};
