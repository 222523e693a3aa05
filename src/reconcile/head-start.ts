import { labels } from "../contract/labels.ts";
import { parseOwner } from "../contract/names.ts";
import { type OptIn, parseOptIn, type Vocabulary } from "../contract/opt-in.ts";
import type { ContainerSummary, DockerPort } from "./ports.ts";
import { checkNetwork, chooseNetwork } from "./requirements.ts";

/** What lists tell of a container: they wait for no lock, while an inspect waits for a start under way (0.2 s). */
export interface Ahead {
  readonly agent: ContainerSummary;
  readonly optIn: OptIn;
  /** Some other container, or a sandbox, goes by the same agent id. */
  readonly isContested: boolean;
  /** Names of all sandboxes of this installation. */
  readonly existing: ReadonlySet<string>;
}

interface HeadStart {
  readonly agent: ContainerSummary;
  readonly agentId: string;
  readonly optIn: OptIn & { kind: "valid" };
  readonly network: string;
}

/** Older ones have a history, which only a full look can tell. */
const newbornMs = 5000;

export const createLookAhead =
  (docker: DockerPort, vocabulary: Vocabulary) =>
  async (key: string): Promise<Ahead | undefined> => {
    const [sandboxes, candidates] = await Promise.all([
      docker.listContainers([`${labels.sandbox}=1`, `${labels.installation}=${vocabulary.installation}`]),
      docker.listContainers([labels.services]),
    ]);
    const agent = candidates.find(({ id }) => id === key);
    if (!agent) return undefined;
    const optIn = parseOptIn(agent, vocabulary);
    const goesById = (container: ContainerSummary): boolean => {
      const other = parseOptIn(container, vocabulary);
      return other.kind !== "stranger" && optIn.kind !== "stranger" && other.agentId === optIn.agentId;
    };
    return {
      agent,
      optIn,
      isContested:
        candidates.some((other) => other.id !== key && goesById(other)) ||
        sandboxes.some((one) => optIn.kind !== "stranger" && parseOwner(one.labels[labels.owner]) === optIn.agentId),
      existing: new Set(sandboxes.map(({ name }) => name)),
    };
  };

/**
 * Whether sandboxes may be begun before the container itself could be looked at. Only where nothing but a refusal, which
 * takes them away again, can come of that look: a newborn that nobody contests, on a network of its own.
 */
export const planHeadStart = (
  { agent, optIn, isContested }: Ahead,
  now: number,
  configuredNetwork: string | undefined,
): HeadStart | undefined => {
  if (optIn.kind !== "valid" || optIn.engines.length === 0 || isContested) return undefined;
  if (agent.status !== "created" || now - agent.createdAt > newbornMs) return undefined;
  const { network, join } = chooseNetwork(agent, configuredNetwork);
  if (join || checkNetwork(agent).length > 0) return undefined;
  return { agent, agentId: optIn.agentId, optIn, network };
};
