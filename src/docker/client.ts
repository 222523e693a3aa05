import Docker from "dockerode";
import { z } from "zod";
import { EngineUnsupportedError } from "../errors.ts";
import { answers, call } from "./call.ts";

export type EngineAddress =
  | { readonly kind: "unix"; readonly socketPath: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

export interface EngineClient {
  readonly docker: Docker;
  /** For streams that may be quiet for hours. */
  readonly streams: Docker;
  readonly engineId: string;
  readonly version: string;
  readonly apiVersion: string;
}

/** Docker 20.10 and 28.5: the oldest and the newest Engine that the tests run on. */
const oldestApi = "1.41";
const newestApi = "1.51";

const versionAnswer = z.looseObject({
  Version: z.string(),
  ApiVersion: z.string(),
  MinAPIVersion: z.string().optional(),
});

/** Agrees with the Engine on an API version: an unversioned client changes its behaviour with an Engine upgrade. */
export const connectEngine = async (address: EngineAddress): Promise<EngineClient> => {
  const place = address.kind === "unix" ? address.socketPath : `${address.host}:${address.port}`;
  const options =
    address.kind === "unix"
      ? { socketPath: address.socketPath }
      : { host: address.host, port: address.port, protocol: "http" as const };
  const probe = new Docker(options);
  const answer = versionAnswer.safeParse(
    await call(`GET /version at ${place}`, (): Promise<unknown> => probe.version(), { deadlineMs: 10_000 }).catch(
      answers({ 404: undefined }),
    ),
  );
  if (!answer.success) {
    throw new EngineUnsupportedError(
      `What answers at ${place} is no Docker Engine.`,
      "Set DOCKER_HOST to the Engine's socket.",
    );
  }
  const { Version: version, ApiVersion: newest, MinAPIVersion: oldest = newest } = answer.data;
  if (compareVersions(newest, oldestApi) < 0 || compareVersions(oldest, newestApi) > 0) {
    throw new EngineUnsupportedError(
      `The Docker Engine ${version} at ${place} speaks API ${oldest} to ${newest}; this program speaks ${oldestApi} to ${newestApi}.`,
      compareVersions(newest, oldestApi) < 0 ? "Upgrade Docker to 20.10 or later." : "Upgrade roboco-sidecar.",
    );
  }
  const apiVersion = compareVersions(newest, newestApi) < 0 ? newest : newestApi;
  const versioned = { ...options, version: `v${apiVersion}` };
  const docker = new Docker(versioned);
  const info: { ID?: string } = await call("GET /info", () => docker.info());
  return { docker, streams: new Docker(versioned), engineId: info.ID ?? place, version, apiVersion };
};

const compareVersions = (a: string, b: string): number => {
  const [majorA = 0, minorA = 0] = a.split(".").map(Number);
  const [majorB = 0, minorB = 0] = b.split(".").map(Number);
  return majorA - majorB || minorA - minorB;
};
