import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Command {
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts the program from its sources, in an environment of its own. */
export const startCommand = (args: readonly string[], environment: Readonly<Record<string, string>> = {}): Command => {
  const child = spawn(process.execPath, ["--import", "tsx", "src/main.ts", ...args], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: "/nonexistent", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const code = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return {
    ended: Promise.all([code, text(child.stdout), text(child.stderr)]).then(([its, stdout, stderr]) => ({
      code: its,
      stdout,
      stderr,
    })),
    kill: (signal) => {
      child.kill(signal);
    },
  };
};

export const runCommand = (args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Ended> =>
  startCommand(args, environment).ended;

/** One JSON object a line. */
export const linesOf = (stdout: string): readonly Record<string, unknown>[] =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Record<string, unknown> => JSON.parse(line));
