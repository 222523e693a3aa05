/** What a login needs: the sandbox's address on the agent's network, and its password. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly password: string;
}

/** One kind of sandbox, as data. Adding one is a file beside this and a line in `registry.ts`. */
export interface SandboxEngine {
  /** The word in `roboco.sandbox.services` and in ROBOCO_SANDBOX_{NAME}_IMAGE. */
  readonly name: string;
  /** In the container's name: `roboco-sandbox-{shortName}-{agent id}`. */
  readonly shortName: string;
  readonly image: string;
  readonly port: number;
  /** Kept in memory (tmpfs); volumes that the image declares are covered as well. */
  readonly dataPath?: string;
  /** From the container's start to its first successful login; contract 2. */
  readonly readyWithinMs: number;
  readonly user?: string;
  readonly database?: string;
  /** The container's variable that carries the password: environment, never a command line. */
  readonly passwordVariable: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  /** The names that an agent's test configuration reads. */
  readonly agentVariables: (endpoint: Endpoint) => Readonly<Record<string, string>>;
  /**
   * One attempt at an authenticated command whose answer's value is compared. Rejects while not ready.
   * Real drivers, imported on first use: an idle sidecar does not carry them.
   */
  readonly login: (endpoint: Endpoint, options: { timeoutMs: number }) => Promise<void>;
}

export const expectAnswer = (actual: unknown, expected: unknown): void => {
  if (actual !== expected) throw new Error(`answered ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
};
