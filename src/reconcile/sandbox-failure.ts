import type { Refusal } from "../contract/refusal.ts";
import type { SandboxEngine } from "../engines/engine.ts";
import { toError } from "../errors.ts";
import type { DockerPort } from "./ports.ts";

interface Server {
  readonly id: string;
  readonly password: string;
}

export const refuseSandbox = (
  { name }: SandboxEngine,
  error: Refusal["error"],
  message: string,
  remediate: string,
): Refusal => ({ error, message: `Sandbox ${name}: ${message}`, remediate, missing: [name] });

/** Why a server ended before it was ready, as far as the Engine knows. */
export const explainExit = async (engine: SandboxEngine, docker: DockerPort, server: Server): Promise<Refusal> => {
  const view = await docker.inspectContainer(server.id);
  const isKilled = view !== undefined && (view.oomKilled || view.exitCode === 137);
  const how = !view
    ? "the container was removed"
    : `exit code ${view.exitCode}${isKilled ? ", killed, most likely out of memory" : ""}`;
  return refuseSandbox(
    engine,
    "SANDBOX_EXITED",
    `Its server ended before it was ready: ${how}.${view ? await readTail(docker, server) : ""}`,
    `${isKilled ? "Raise ROBOCO_SANDBOX_MEMORY. " : ""}Correct the cause and recreate the agent.`,
  );
};

export const explainSilence = async (
  engine: SandboxEngine,
  docker: DockerPort,
  { address, lastError, ...server }: Server & { address: string; lastError: string },
): Promise<Refusal> =>
  refuseSandbox(
    engine,
    "SANDBOX_NOT_READY",
    `It answered no login at ${address} within ${engine.readyWithinMs / 1000} s (last: ${lastError}).${await readTail(docker, server)}`,
    "If it cannot be reached at all, run the sidecar as a container on this Engine; if it is slow, give it more CPU or memory.",
  );

/** The server's last words, its password taken out. */
const readTail = async (docker: DockerPort, { id, password }: Server): Promise<string> => {
  const lines = await docker.readLogTail(id).catch((error) => [`(no log: ${toError(error).message})`]);
  return lines.length === 0 ? "" : ` Its last log lines: ${lines.join(" | ").replaceAll(password, "***")}`;
};
