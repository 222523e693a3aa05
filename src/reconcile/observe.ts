import { deriveAgentId } from "../contract/agent-id.ts";
import { files, parsePasswords, parsePhase, runDirectory } from "../contract/delivery.ts";
import { labels } from "../contract/labels.ts";
import { isContainerId, parseOwner } from "../contract/names.ts";
import { type OptIn, parseOptIn, type Vocabulary } from "../contract/opt-in.ts";
import type { Observed, Peer, SandboxView } from "./observed.ts";
import type { ContainerSummary, ContainerView, DockerPort } from "./ports.ts";
import type { Provisioner } from "./provisioner.ts";
import { checkRunDirectory } from "./requirements.ts";

/** What is in an agent's run directory. */
export interface Delivered {
  /** When the container last started and ended: whoever else may have written there did so in between. */
  readonly life: string;
  readonly files: Readonly<Record<string, string>>;
  readonly passwords: Readonly<Record<string, string>>;
}

export interface Sight extends Observed {
  readonly delivered: Delivered;
  /** Names of all sandboxes of this installation, whoever owns them. */
  readonly existing: ReadonlySet<string>;
}

/** Reads, in one go, all that a decision about one container rests on. Any error: no decision. */
export const createObserve = (
  docker: DockerPort,
  vocabulary: Vocabulary,
  provisioner: Provisioner,
  deliveries: Map<string, Delivered>,
) => {
  const ourSandboxes = [`${labels.sandbox}=1`, `${labels.installation}=${vocabulary.installation}`];

  return async (key: string): Promise<Sight> => {
    const [agent, sandboxes, candidates] = await Promise.all([
      inspectOwner(docker, key),
      docker.listContainers(ourSandboxes),
      docker.listContainers([labels.services]),
    ]);
    const mine = sandboxes.filter((sandbox) => sandbox.labels[labels.ownerContainer] === key);
    const optIn: OptIn = agent ? parseOptIn(agent, vocabulary) : { kind: "stranger" };
    // A rename does not change the id that its sandboxes were made for.
    const agentId =
      parseOwner(mine[0]?.labels[labels.owner]) ??
      (optIn.kind === "stranger" ? (agent ? deriveAgentId(agent) : "") : optIn.agentId);
    const delivered = agent && optIn.kind !== "stranger" ? await readDelivered(agent) : nothingDelivered;
    return {
      key,
      agent,
      optIn,
      agentId,
      sandboxes: mine.map(toSandboxView),
      peers: findPeers(key, agentId, { candidates, sandboxes, provisioner, vocabulary }),
      delivered,
      phase: parsePhase(delivered.files[files.phase], key),
      jobs: provisioner.jobs(key),
      existing: new Set(sandboxes.map(({ name }) => name)),
    };
  };

  async function readDelivered(agent: ContainerView): Promise<Delivered> {
    const known = deliveries.get(agent.id);
    const life = toLife(agent);
    // What is armed is written anew whatever it holds: not worth a read while a start waits to be held. What could not be
    // written is not there to be read.
    const isSettled = (found: Delivered): boolean =>
      found.life === life ||
      parsePhase(found.files[files.phase], agent.id) === "armed" ||
      checkRunDirectory(agent).length > 0;
    if (known && isSettled(known)) return known;
    const found = (await docker.readFiles(agent.id, runDirectory)) ?? {};
    // On a volume that is used again they are a predecessor's, which nobody inherits.
    const isOwn = parsePhase(found[files.phase], agent.id) !== undefined;
    const delivered = { life, files: found, passwords: isOwn ? parsePasswords(found[files.json]) : {} };
    deliveries.set(agent.id, delivered);
    return delivered;
  }
};

/** An owner is named by its full id; what is named in any other way does not exist. */
export const inspectOwner = async (docker: DockerPort, owner: string): Promise<ContainerView | undefined> =>
  isContainerId(owner) ? await docker.inspectContainer(owner) : undefined;

export const toLife = ({ startedAt, finishedAt }: ContainerView): string => `${startedAt}/${finishedAt}`;

const nothingDelivered: Delivered = { life: "", files: {}, passwords: {} };

/** The sandboxes of one owner, as they are now. */
export const listSandboxes = async (docker: DockerPort, installation: string, owner: string): Promise<SandboxView[]> =>
  (
    await docker.listContainers([
      `${labels.sandbox}=1`,
      `${labels.installation}=${installation}`,
      `${labels.ownerContainer}=${owner}`,
    ])
  ).map(toSandboxView);

const toSandboxView = (sandbox: ContainerSummary): SandboxView => ({
  id: sandbox.id,
  name: sandbox.name,
  engine: sandbox.labels[labels.engine] ?? "",
  status: sandbox.status,
  createdAt: sandbox.createdAt,
  networks: Object.keys(sandbox.networks),
});

const findPeers = (
  key: string,
  agentId: string,
  world: {
    candidates: readonly ContainerSummary[];
    sandboxes: readonly ContainerSummary[];
    provisioner: Provisioner;
    vocabulary: Vocabulary;
  },
): Peer[] => {
  const owning = new Map<string, ContainerSummary>();
  for (const sandbox of world.sandboxes) {
    const owner = sandbox.labels[labels.ownerContainer];
    if (owner && owner !== key && parseOwner(sandbox.labels[labels.owner]) === agentId) owning.set(owner, sandbox);
  }
  const making = new Set(world.provisioner.owners());
  const living = world.candidates
    .filter((candidate) => {
      if (candidate.id === key) return false;
      if (owning.has(candidate.id)) return true;
      const optIn = parseOptIn(candidate, world.vocabulary);
      return optIn.kind === "valid" && optIn.agentId === agentId && optIn.engines.length > 0;
    })
    .map(({ id, name, status, createdAt }) => ({
      id,
      name,
      status,
      createdAt,
      owns: owning.has(id) || making.has(id),
    }));
  const gone = [...owning]
    .filter(([owner]) => !living.some(({ id }) => id === owner))
    .map(([id, { createdAt }]) => ({ id, name: id.slice(0, 12), status: "gone" as const, createdAt, owns: true }));
  return [...living, ...gone];
};
