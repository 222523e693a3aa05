import { z } from "zod";

/** Where an agent finds what it was given: contract 3. */
export const runDirectory = "/run/roboco";

interface Service {
  readonly host: string;
  readonly port: number;
  readonly user?: string;
  readonly password: string;
  readonly database?: string;
  readonly env: Readonly<Record<string, string>>;
}
export type Services = Readonly<Record<string, Service>>;

/**
 * How far a container's delivery is, written beside the files before each step is taken (a write-ahead intent):
 * `armed`: not to run freely; if it is paused, it is ours. `delivered`: files in place, our pause not lifted yet.
 * `released`: a pause is now its user's. `refused`: killed when it runs.
 */
export type Phase = "armed" | "delivered" | "released" | "refused";
const phases: readonly string[] = ["armed", "delivered", "released", "refused"] satisfies Phase[];

/**
 * The container id tells a volume's files of a predecessor from one's own, for bin/enter as well: it looks for the id
 * among its mounts, and in another container's network those are of the other one.
 */
export const formatPhase = (phase: Phase, containerId: string, networkMode = ""): string => {
  const [, host] = /^container:(.+)$/.exec(networkMode) ?? [];
  return `${[phase, containerId, ...(host ? [host] : [])].join(" ")}\n`;
};
export const parsePhase = (text: string | undefined, containerId: string): Phase | undefined => {
  const [phase, owner] = (text ?? "").trim().split(" ");
  return owner === containerId && phase && phases.includes(phase) ? (phase as Phase) : undefined;
};

export const files = {
  env: "sandbox.env",
  json: "sandbox.json",
  refused: "refused.json",
  phase: ".phase",
} as const;

/** `KEY=VALUE` lines. Values are host names, numbers and hex, so no quoting is needed for a shell or a dotenv reader. */
export const formatEnv = (services: Services): string => {
  const lines = Object.values(services).flatMap(({ env }) =>
    Object.entries(env).map(([key, value]) => `${key}=${value}`),
  );
  // Never empty: bin/enter waits for a non-empty file, also for an agent that has a role only.
  return `${lines.length > 0 ? lines.join("\n") : "# no sandbox was asked for"}\n`;
};

export const formatJson = (agentId: string, state: "ready" | "gone", services: Services): string =>
  `${JSON.stringify({ schema: 1, agent: agentId, state, services }, null, 2)}\n`;

const sandboxJson = z.object({ services: z.record(z.string(), z.object({ password: z.string() })) });

/** The passwords of an earlier delivery by engine, so that a sandbox lost under a living agent comes back the same. */
export const parsePasswords = (text: string | undefined): Readonly<Record<string, string>> => {
  try {
    const { services } = sandboxJson.parse(JSON.parse(text ?? ""));
    return Object.fromEntries(Object.entries(services).map(([engine, { password }]) => [engine, password]));
  } catch {
    return {};
  }
};
