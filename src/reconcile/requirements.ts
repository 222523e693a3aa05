import { runDirectory } from "../contract/delivery.ts";
import { labels } from "../contract/labels.ts";
import { fallbackNetwork } from "../contract/names.ts";
import type { Refusal } from "../contract/refusal.ts";
import type { Registry } from "../engines/registry.ts";
import type { ContainerSummary, ContainerView, Mount } from "./ports.ts";

const sharedDirectory = "/roboco";

/** What an agent container must be like for a delivery to reach it: every way in which this one is not. */
export const checkRequirements = (
  agent: ContainerView,
  wants: { readonly engines: readonly string[]; readonly role: string | undefined },
  registry: Registry,
): readonly Refusal[] => [
  ...checkEnvironment(agent, registry),
  ...checkRunDirectory(agent),
  ...(wants.role === undefined ? [] : checkSharedMount(agent)),
  ...(wants.engines.length === 0 ? [] : checkNetwork(agent)),
];

const checkEnvironment = (agent: ContainerView, registry: Registry): Refusal[] => {
  const delivered = registry.flatMap((engine) =>
    Object.keys(engine.agentVariables({ host: "", port: 0, password: "" })),
  );
  const conflicts = delivered.filter((name) => name in agent.environment);
  if (conflicts.length === 0) return [];
  return [
    {
      error: "ENVIRONMENT_CONFLICT",
      message: `The agent's own environment already sets ${conflicts.join(", ")}: a sandbox never coexists with other credentials.`,
      remediate: `Remove ${conflicts.join(", ")} from the agent's environment (its compose service, env_file or image) and recreate it.`,
      missing: conflicts,
    },
  ];
};

/** The mount that a path of the container lies on, if any: the nearest one above it. */
const mountOver = (agent: ContainerView, path: string): Mount | undefined =>
  agent.mounts
    .map((mount) => ({ ...mount, destination: normalise(mount.destination) }))
    .filter(({ destination }) => path === destination || path.startsWith(`${destination}/`))
    .sort((a, b) => b.destination.length - a.destination.length)[0];

// /var/run is a link to /run in every common image.
const normalise = (path: string): string => path.replace(/\/+$/, "").replace(/^\/var\/run(?=\/|$)/, "/run");

export const checkRunDirectory = (agent: ContainerView): Refusal[] => {
  const mount = mountOver(agent, runDirectory);
  const problem =
    mount?.kind === "tmpfs"
      ? `A tmpfs at ${mount.destination} would hide what is delivered into ${runDirectory}.`
      : mount && !mount.writable
        ? `The mount at ${mount.destination} is read-only, so nothing can be delivered into ${runDirectory}.`
        : !mount && agent.readonlyRootfs
          ? `The agent's root file system is read-only, so nothing can be delivered into ${runDirectory}.`
          : undefined;
  if (!problem) return [];
  return [
    {
      error: "RUN_DIRECTORY_UNUSABLE",
      message: problem,
      remediate: `Mount a volume of the agent's own, writable, at ${runDirectory} and recreate the agent.`,
      missing: [runDirectory],
    },
  ];
};

/** Where to write the run directory: `root` is the nearest mount above it, or the root file system. */
export const runDirectoryTarget = (agent: ContainerView): { root: string; prefix: string } => {
  const mount = mountOver(agent, runDirectory);
  const root = mount?.destination ?? "/";
  return { root, prefix: runDirectory.slice(root.length).replace(/^\//, "") };
};

const checkSharedMount = (agent: ContainerView): Refusal[] => {
  const writable = agent.mounts.filter(
    ({ destination, writable: isWritable }) =>
      isWritable && (normalise(destination) === sharedDirectory || destination.startsWith(`${sharedDirectory}/`)),
  );
  if (writable.length === 0) return [];
  return [
    {
      error: "SHARED_MOUNT_WRITABLE",
      message: `The agent has a role, and its mount at ${writable[0]?.destination} is writable: it could change its own manifest.`,
      remediate: `Mount it read-only (roboco:${sharedDirectory}:ro) and recreate the agent.`,
      missing: [sharedDirectory],
    },
  ];
};

export const checkNetwork = (agent: ContainerSummary): Refusal[] => {
  const mode = agent.networkMode;
  const reason =
    mode === "host"
      ? "shares the host's network, where a sandbox's name does not resolve"
      : mode === "none"
        ? "has no network"
        : mode.startsWith("container:")
          ? "shares another container's network, which is not its own to join a sandbox to"
          : undefined;
  if (!reason) return [];
  return [
    {
      error: "NETWORK_UNSUPPORTED",
      message: `The agent ${reason} (network mode ${mode}).`,
      remediate: "Give the agent a user-defined network of its own (compose does so by default) and recreate it.",
      missing: [labels.services],
    },
  ];
};

const builtIn = new Set(["", "default", "bridge", "host", "none"]);

/** The network that an agent and its sandboxes share, and whether the agent has to be joined to it first. */
export const chooseNetwork = (
  agent: ContainerSummary,
  configured: string | undefined,
): { readonly network: string; readonly join: boolean } => {
  const own = Object.keys(agent.networks);
  if (configured !== undefined) return { network: configured, join: !own.includes(configured) };
  // Compose connects further networks after the create event; the mode is there from the start.
  const first = [agent.networkMode, ...own].find((name) => !builtIn.has(name) && !name.startsWith("container:"));
  return first === undefined ? { network: fallbackNetwork, join: true } : { network: first, join: false };
};
