import { spawn } from "node:child_process";

export interface RunOptions {
  cwd?: string | undefined;
  /** The whole environment of the command; the process's own if left out. */
  env?: NodeJS.ProcessEnv | undefined;
  input?: string | undefined;
  /** Resolve, whatever the exit code (default: reject unless it is 0). */
  anyCode?: boolean | undefined;
}

export interface RunResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a command to its end without a shell. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: options.cwd, env: options.env, stdio: "pipe" });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0 || (options.anyCode === true && code !== null)) return resolve({ code, stdout, stderr });
      const said = (stderr || stdout).trim().split("\n").slice(-15).join("\n");
      reject(new Error(`${command} ${args[0] ?? ""} … ended with ${signal ?? code}:\n${said}`));
    });
    // A command that ends without reading its input is no error.
    child.stdin.on("error", () => undefined).end(options.input ?? "");
  });
}
