import { readFile } from "node:fs/promises";
import type Docker from "dockerode";
import { answers, call } from "./call.ts";

export interface Self {
  readonly id: string;
  readonly startedAt: string;
  /** Shares the host's network: every bridge is reachable as it is. */
  readonly onHostNetwork: boolean;
  readonly networks: readonly { readonly name: string; readonly aliases: readonly string[] }[];
}

/** The container that this process runs in, on this very Engine; `undefined`: it runs on the host. */
export const findSelf = async (docker: Docker): Promise<Self | undefined> => {
  const id = parseContainerId(await readFile("/proc/self/mountinfo", "utf8").catch(() => ""));
  return id === undefined ? undefined : await inspectSelf(docker, id);
};

export const inspectSelf = (docker: Docker, id: string): Promise<Self | undefined> =>
  call("inspect of the sidecar's own container", async (abortSignal) => {
    const info = await docker.getContainer(id).inspect({ abortSignal });
    return {
      id: info.Id,
      startedAt: info.State.StartedAt,
      onHostNetwork: info.HostConfig.NetworkMode === "host",
      networks: Object.entries(info.NetworkSettings.Networks ?? {}).map(([name, endpoint]) => ({
        name,
        aliases: endpoint.Aliases ?? [],
      })),
    };
  }).catch(answers({ 404: undefined }));

/** The Engine mounts each container's host names from a directory named by its full id. */
export const parseContainerId = (mountInfo: string): string | undefined =>
  /\/containers\/([0-9a-f]{64})\/(?:hostname|hosts|resolv\.conf) /.exec(mountInfo)?.[1];
