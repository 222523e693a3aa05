import { createServer } from "node:net";
import type Docker from "dockerode";
import { sidecarLabel } from "../contract/labels.ts";
import { AlreadyRunningError } from "../errors.ts";
import { answers, call } from "./call.ts";
import type { EngineClient } from "./client.ts";
import type { Self } from "./self.ts";

/**
 * One sidecar an installation and Engine: two would undo each other's work. Containers find each other through the
 * Engine (the elder stays), processes on a host through an abstract socket, which ends with its process.
 */
export const claimInstallation = async (
  { docker, engineId }: EngineClient,
  self: Self | undefined,
  installation: string,
): Promise<AsyncDisposable> => {
  const rival = await findRivalContainer(docker, self, installation);
  if (rival !== undefined) throw toError(installation, `the container ${rival}`);
  return await claimSocket(`\0roboco-sidecar/${engineId}/${installation}`, installation);
};

const toError = (installation: string, who: string): AlreadyRunningError =>
  new AlreadyRunningError(
    `Another sidecar of the installation "${installation}" serves this Engine: ${who}.`,
    "Stop it, or give this one an installation of its own (ROBOCO_INSTALLATION; its agents then need the label roboco.agent.installation).",
  );

const findRivalContainer = async (
  docker: Docker,
  self: Self | undefined,
  installation: string,
): Promise<string | undefined> => {
  const others = await call("list of sidecars", (abortSignal) =>
    docker.listContainers({ filters: { label: [sidecarLabel], status: ["running"] }, abortSignal }),
  );
  for (const { Id } of others) {
    if (Id === self?.id) continue;
    const info = await call(`inspect of sidecar ${Id}`, (abortSignal) =>
      docker.getContainer(Id).inspect({ abortSignal }),
    ).catch(answers({ 404: undefined }));
    const setting = info?.Config.Env.find((entry) => entry.startsWith("ROBOCO_INSTALLATION="));
    const theirs = setting?.slice(setting.indexOf("=") + 1) || "default";
    const isElder = !self || (info?.State.StartedAt ?? "") < self.startedAt;
    if (info?.State.Running && theirs === installation && isElder) return info.Name.replace(/^\//, "");
  }
  return undefined;
};

const claimSocket = (path: string, installation: string): Promise<AsyncDisposable> =>
  new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(error.code === "EADDRINUSE" ? toError(installation, "another process on this host") : error),
    );
    server.listen(path, () => {
      server.unref();
      resolve({ [Symbol.asyncDispose]: () => new Promise<void>((done) => server.close(() => done())) });
    });
  });
