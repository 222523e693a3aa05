import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { LogEvent } from "../../../src/contract/log-events.ts";
import { until } from "./until.ts";

interface Line {
  readonly event: LogEvent;
  readonly level: string;
  readonly agent?: string;
  readonly container?: string;
  readonly engine?: string;
  readonly [key: string]: unknown;
}

export interface Sidecar extends AsyncDisposable {
  readonly lines: readonly Line[];
  readonly sharedDir: string;
  /** Everything it wrote, as it is. */
  output(): string;
  /** The first line of this event that fits, past or to come. */
  line(event: LogEvent, fits?: (line: Line) => boolean): Promise<Line>;
  readonly pid: number | undefined;
  exit: Promise<number>;
  /** SIGTERM, then its exit code. */
  stop(): Promise<number>;
  /** SIGKILL. */
  kill(): Promise<void>;
}

const main = new URL("../../../src/main.ts", import.meta.url).pathname;
const tsx = import.meta.resolve("tsx");

/** The product as a process of its own on this host: from the sources, or by `program` from what was built of them. */
export const startSidecar = async (
  environment: Record<string, string>,
  args: readonly string[] = [],
  program: readonly string[] = ["--import", tsx, main],
): Promise<Sidecar> => {
  const sharedDir = environment.ROBOCO_SHARED_DIR ?? (await mkdtemp(join(tmpdir(), "roboco-shared-")));
  const child: ChildProcess = spawn(process.execPath, [...program, ...args], {
    env: {
      PATH: process.env.PATH,
      ROBOCO_SANDBOX_DB_ENABLED: "true",
      ROBOCO_HTTP_LISTEN: "127.0.0.1:0",
      ROBOCO_LOG_LEVEL: "debug",
      ROBOCO_SHARED_DIR: sharedDir,
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: Line[] = [];
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk) => {
      output += chunk;
    });
  }
  if (child.stdout) createInterface({ input: child.stdout }).on("line", (text) => lines.push(JSON.parse(text)));
  const exit = once(child, "exit").then(([code, signal]) => (signal ? -1 : (code as number)));
  let hasExited = false;
  void exit.then(() => {
    hasExited = true;
  });

  const sidecar: Sidecar = {
    lines,
    sharedDir,
    pid: child.pid,
    output: () => output,
    line: (event, fits = () => true) =>
      until(`the sidecar logs ${event}`, () => {
        const found = lines.find((line) => line.event === event && fits(line));
        if (!found && hasExited)
          throw new Error(`the sidecar ended before it logged ${event}:\n${output.slice(-3000)}`);
        return found;
      }),
    exit,
    stop: async () => {
      child.kill("SIGTERM");
      return await exit;
    },
    kill: async () => {
      child.kill("SIGKILL");
      await exit;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await exit;
    },
  };
  return sidecar;
};
