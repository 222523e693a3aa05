/** Sandboxes of agents without a user-defined network of their own live here, and so do those agents. */
export const fallbackNetwork = "roboco-sandbox";

export const toSandboxName = (engineShortName: string, agentId: string): string =>
  `roboco-sandbox-${engineShortName}-${agentId}`;

const ownerPrefix = "roboco-agent-";
export const toOwner = (agentId: string): string => `${ownerPrefix}${agentId}`;
export const parseOwner = (owner: string | undefined): string | undefined =>
  owner?.startsWith(ownerPrefix) ? owner.slice(ownerPrefix.length) : undefined;

/** 16 random bytes as 32 hex characters: contract 2. */
export const passwordBytes = 16;

/** The full id: anything else might name another container, or no path of the Engine's at all. */
export const isContainerId = (text: string): boolean => /^[0-9a-f]{64}$/.test(text);
