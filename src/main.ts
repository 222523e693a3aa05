#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { usage } from "./cli/usage.ts";
import { loadConfig } from "./config.ts";
import { registry } from "./engines/registry.ts";
import {
  AlreadyRunningError,
  ConfigError,
  EngineUnavailableError,
  EngineUnsupportedError,
  SidecarError,
  toError,
  UsageError,
} from "./errors.ts";
import { createLog } from "./logger.ts";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/** From sysexits.h where it has a word for it; docs/errors.md holds the same table. */
const exitCodeOf = (error: Error): number => {
  if (error instanceof UsageError) return 64;
  if (error instanceof EngineUnavailableError) return 69;
  if (error instanceof AlreadyRunningError) return 73;
  if (error instanceof EngineUnsupportedError) return 76;
  if (error instanceof ConfigError || (error instanceof SidecarError && configurationCodes.has(error.code))) return 78;
  return 70;
};
const configurationCodes = new Set(["ROLES_FILE_INVALID", "SHARED_DIR_UNUSABLE"]);

/** Teardowns that are due at a stop have this long; Docker's own patience is 10 s. */
const drainDeadlineMs = 8000;

const commands: Readonly<Record<string, (args: readonly string[]) => Promise<number>>> = {
  run: async (args) => {
    expectArguments(args, 0);
    const config = loadConfig(registry);
    const log = createLog({ level: config.logLevel, version });
    const stop = new AbortController();
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (stop.signal.aborted) process.exit(1); // asked twice: now
        stop.abort();
        // An Engine that does not answer must not hold up an end that was asked for; the next start puts it right.
        setTimeout(() => {
          log("sidecar.stopped", { unfinished: true });
          process.exit(0);
        }, drainDeadlineMs).unref();
      });
    }
    const { run } = await import("./app.ts");
    await run({ config, registry, log, stop: stop.signal });
    return 0;
  },

  sweep: async (args) => {
    expectArguments(args, 0);
    const config = loadConfig(registry);
    const { sweep } = await import("./app.ts");
    await sweep({ config, registry, log: createLog({ level: config.logLevel, version }) });
    return 0;
  },

  healthcheck: async (args) => {
    expectArguments(args, 0);
    const { healthcheck } = await import("./cli/healthcheck.ts");
    const { code, output } = await healthcheck(loadConfig(registry));
    process.stdout.write(`${output}\n`);
    return code;
  },

  manifest: async (args) => {
    const [role = ""] = expectArguments(args, 1);
    const { printManifest } = await import("./cli/manifest.ts");
    process.stdout.write(await printManifest(role, loadConfig(registry).rolesFile));
    return 0;
  },
};

const expectArguments = (args: readonly string[], count: number): readonly string[] => {
  if (args.length === count) return args;
  throw new UsageError(
    args.length < count ? "An argument is missing." : `Unexpected argument "${args[count]}".`,
    "See roboco-sidecar --help.",
  );
};

const main = async (argv: readonly string[]): Promise<number> => {
  const { values, positionals } = parse(argv);
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (values.version) {
    process.stdout.write(`${version}\n`);
    return 0;
  }
  const [name = "run", ...args] = positionals;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command) throw new UsageError(`There is no command "${name}".`, "See roboco-sidecar --help.");
  return await command(args);
};

const parse = (argv: readonly string[]) => {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: { help: { type: "boolean", short: "h" }, version: { type: "boolean", short: "v" } },
    });
  } catch (error) {
    throw new UsageError(`${toError(error).message}.`, "See roboco-sidecar --help.");
  }
};

const fail = (thrown: unknown): never => {
  const error = toError(thrown);
  const isOurs = error instanceof SidecarError;
  // For people at a terminal on stderr; for log readers, who see `run` only, as an event on stdout.
  process.stderr.write(isOurs ? `${error.message}\n${error.remediate}\n` : `${error.stack ?? error.message}\n`);
  if (!(error instanceof UsageError)) {
    createLog({ level: "info", version })("sidecar.failed", {
      ...(isOurs ? { code: error.code, remediate: error.remediate } : {}),
      err: error,
    });
  }
  process.exit(exitCodeOf(error));
};

process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);
main(process.argv.slice(2)).then((code) => process.exit(code), fail);
