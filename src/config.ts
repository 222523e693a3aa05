import { existsSync } from "node:fs";
import { availableParallelism, homedir } from "node:os";
import { z } from "zod";
import type { EngineAddress } from "./docker/client.ts";
import type { Registry } from "./engines/registry.ts";
import { ConfigError } from "./errors.ts";

export interface Config {
  readonly enabled: boolean;
  readonly engineAddress: EngineAddress;
  readonly installation: string;
  readonly network: string | undefined;
  /** Image reference by engine name. */
  readonly images: Readonly<Record<string, string>>;
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly maxSandboxes: number;
  readonly concurrency: number;
  readonly pullTimeoutMs: number;
  readonly janitorIntervalMs: number;
  readonly janitorGraceMs: number;
  readonly teardownGraceMs: number;
  readonly sharedDir: string;
  readonly rolesFile: string | undefined;
  readonly listen: { readonly host: string; readonly port: number };
  readonly logLevel: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const imageVariable = (engine: string): string => `ROBOCO_SANDBOX_${engine.toUpperCase()}_IMAGE`;

/** Docker's own minimum; a database needs far more, but how much is the image's affair. */
const minMemoryBytes = 6 * 1024 * 1024;

/** Every variable the sidecar reads, with its default: `docs/configuration.md` holds the same table. */
export const configSchema = (registry: Registry) =>
  z.object({
    ROBOCO_SANDBOX_DB_ENABLED: z.stringbool({ error: "is neither true nor false" }).default(false),
    DOCKER_HOST: z.string().transform(parseEngineAddress).optional(),
    ROBOCO_INSTALLATION: z
      .string()
      .regex(
        /^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$/,
        "is no installation name: a-z, 0-9, '.', '_' and '-', at most 63",
      )
      .default("default"),
    ROBOCO_SANDBOX_NETWORK: z
      .string()
      .regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/, "is no network name")
      .refine((name) => !["bridge", "host", "none", "default"].includes(name), "must be a user-defined network")
      .optional(),
    ...Object.fromEntries(
      registry.map(({ name, image }) => [
        imageVariable(name),
        z
          .string()
          .regex(/^[^\s]+$/, "is no image reference")
          .default(image),
      ]),
    ),
    ROBOCO_SANDBOX_MEMORY: z
      .string()
      .transform(parseBytes)
      .default(512 * 1024 * 1024),
    ROBOCO_SANDBOX_CPUS: number({ above: 0, max: 1024 }).default(1),
    ROBOCO_SANDBOX_MAX: integer({ min: 1, max: 100_000 }).default(100),
    ROBOCO_SANDBOX_CONCURRENCY: integer({ min: 1, max: 1000 }).default(() => 2 * availableParallelism()),
    ROBOCO_SANDBOX_PULL_TIMEOUT_SECONDS: integer({ min: 1, max: 86_400 }).default(300),
    ROBOCO_JANITOR_INTERVAL_SECONDS: integer({ min: 1, max: 86_400 }).default(30),
    ROBOCO_JANITOR_GRACE_SECONDS: integer({ min: 1, max: 86_400 }).default(180),
    ROBOCO_TEARDOWN_GRACE_SECONDS: integer({ min: 0, max: 3600 }).default(2),
    ROBOCO_SHARED_DIR: z.string().startsWith("/", "must be an absolute path").default("/roboco"),
    ROBOCO_ROLES_FILE: z.string().optional(),
    ROBOCO_HTTP_LISTEN: z.string().transform(parseListen).default({ host: "127.0.0.1", port: 7070 }),
    ROBOCO_LOG_LEVEL: z
      .enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"], {
        error: "must be one of trace, debug, info, warn, error, fatal, silent",
      })
      .default("info"),
  });

/** Reads the environment once. Throws one ConfigError that names every wrong value. */
export const loadConfig = (registry: Registry, environment: Environment = process.env): Config => {
  // Compose passes "" for an unset ${VAR:-}: the same as unset.
  const present = Object.fromEntries(Object.entries(environment).filter(([, value]) => value?.trim()));
  const parsed = configSchema(registry).safeParse(present);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => {
      const name = String(issue.path[0]);
      return `${name}=${present[name]}: ${issue.message}`;
    });
    throw new ConfigError(
      `The configuration is wrong:\n${problems.map((problem) => `  ${problem}`).join("\n")}`,
      "Correct these variables in the sidecar's environment; docs/configuration.md lists each with its default.",
    );
  }
  const value = parsed.data;
  const images: Record<string, unknown> = value;
  return {
    enabled: value.ROBOCO_SANDBOX_DB_ENABLED,
    engineAddress: value.DOCKER_HOST ?? findSocket(environment),
    installation: value.ROBOCO_INSTALLATION,
    network: value.ROBOCO_SANDBOX_NETWORK,
    images: Object.fromEntries(registry.map(({ name }) => [name, String(images[imageVariable(name)])])),
    memoryBytes: value.ROBOCO_SANDBOX_MEMORY,
    cpus: value.ROBOCO_SANDBOX_CPUS,
    maxSandboxes: value.ROBOCO_SANDBOX_MAX,
    concurrency: value.ROBOCO_SANDBOX_CONCURRENCY,
    pullTimeoutMs: value.ROBOCO_SANDBOX_PULL_TIMEOUT_SECONDS * 1000,
    janitorIntervalMs: value.ROBOCO_JANITOR_INTERVAL_SECONDS * 1000,
    janitorGraceMs: value.ROBOCO_JANITOR_GRACE_SECONDS * 1000,
    teardownGraceMs: value.ROBOCO_TEARDOWN_GRACE_SECONDS * 1000,
    sharedDir: value.ROBOCO_SHARED_DIR,
    rolesFile: value.ROBOCO_ROLES_FILE,
    listen: value.ROBOCO_HTTP_LISTEN,
    logLevel: value.ROBOCO_LOG_LEVEL,
  };
};

const number = ({ above, max }: { above: number; max: number }) =>
  z.string().transform((text, context) => {
    const value = Number(text);
    if (!(value > above && value <= max)) {
      context.addIssue(`must be a number above ${above}, at most ${max}`);
      return z.NEVER;
    }
    return value;
  });

const integer = ({ min, max }: { min: number; max: number }) =>
  z.string().transform((text, context) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      context.addIssue(`must be a whole number from ${min} to ${max}`);
      return z.NEVER;
    }
    return value;
  });

function parseBytes(text: string, context: z.RefinementCtx): number {
  const match = /^(\d+(?:\.\d+)?)([bkmg]?)b?$/i.exec(text);
  const unit = { "": 1, b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }[match?.[2]?.toLowerCase() ?? ""];
  const bytes = match && unit ? Math.floor(Number(match[1]) * unit) : Number.NaN;
  if (!(bytes >= minMemoryBytes)) {
    context.addIssue("must be a size of at least 6m, such as 512m or 1g");
    return z.NEVER;
  }
  return bytes;
}

function parseListen(text: string, context: z.RefinementCtx): { host: string; port: number } {
  const match = /^(?:\[([0-9a-f:]+)\]|([^:\s]*)):(\d{1,5})$/i.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) {
    context.addIssue("must be host:port, such as 127.0.0.1:7070");
    return z.NEVER;
  }
  return { host: match[1] ?? (match[2] || "0.0.0.0"), port };
}

function parseEngineAddress(text: string, context: z.RefinementCtx): EngineAddress {
  const unix = /^unix:\/\/(\/.+)$/.exec(text);
  if (unix?.[1]) return { kind: "unix", socketPath: unix[1] };
  const tcp = /^(?:tcp|http):\/\/([^/:]+):(\d+)\/?$/.exec(text);
  if (tcp?.[1]) return { kind: "tcp", host: tcp[1], port: Number(tcp[2]) };
  context.addIssue("must be unix:///path/to/docker.sock or tcp://host:port");
  return z.NEVER;
}

/** The default socket, then the usual places of a rootless Engine and of Docker Desktop; the first that exists. */
const findSocket = (environment: Environment): EngineAddress => {
  const runtimeDir = environment.XDG_RUNTIME_DIR || `/run/user/${process.getuid?.() ?? 0}`;
  const places = [
    "/var/run/docker.sock",
    `${runtimeDir}/docker.sock`,
    `${homedir()}/.docker/run/docker.sock`,
    `${homedir()}/.docker/desktop/docker.sock`,
  ];
  return { kind: "unix", socketPath: places.find((place) => existsSync(place)) ?? "/var/run/docker.sock" };
};
