import type { ContainerInfo, ContainerInspectInfo } from "dockerode";
import type { ContainerStatus, ContainerSummary, ContainerView, Mount } from "../reconcile/ports.ts";

const toName = (name: string | undefined): string => (name ?? "").replace(/^\//, "");

/** "0001-01-01T00:00:00Z" is Go's way to say never. */
const toTime = (text: string | undefined): number | undefined => {
  const time = Date.parse(text ?? "");
  return time > 0 ? time : undefined;
};

export const toSummary = (info: ContainerInfo): ContainerSummary => ({
  id: info.Id,
  name: toName(info.Names[0]),
  status: info.State as ContainerStatus,
  createdAt: info.Created * 1000,
  labels: info.Labels ?? {},
  networkMode: info.HostConfig?.NetworkMode ?? "",
  networks: toNetworks(info.NetworkSettings?.Networks),
});

const toNetworks = (networks: Record<string, { IPAddress?: string }> | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(networks ?? {}).map(([name, endpoint]) => [name, endpoint.IPAddress ?? ""]));

export const toView = (info: ContainerInspectInfo): ContainerView => ({
  id: info.Id,
  name: toName(info.Name),
  status: info.State.Status as ContainerStatus,
  // Whole seconds, as in a listing: by them two containers tell which is the elder, from one view and one listing each.
  createdAt: Math.floor((toTime(info.Created) ?? 0) / 1000) * 1000,
  labels: info.Config.Labels ?? {},
  startedAt: toTime(info.State.StartedAt),
  finishedAt: toTime(info.State.FinishedAt),
  exitCode: info.State.ExitCode,
  oomKilled: info.State.OOMKilled,
  environment: Object.fromEntries(
    (info.Config.Env ?? []).map((entry) => {
      const [name = "", ...value] = entry.split("=");
      return [name, value.join("=")];
    }),
  ),
  networkMode: info.HostConfig.NetworkMode ?? "",
  networks: toNetworks(info.NetworkSettings.Networks),
  mounts: toMounts(info),
  readonlyRootfs: info.HostConfig.ReadonlyRootfs === true,
  command: [info.Path, ...(info.Args ?? [])],
});

/** Volumes and binds stand in Mounts; a tmpfs only where it was asked for. */
const toMounts = (info: ContainerInspectInfo): Mount[] => {
  const tmpfs = [
    ...Object.keys((info.HostConfig.Tmpfs ?? {}) as Record<string, string>),
    ...(info.HostConfig.Mounts ?? []).filter(({ Type }) => Type === "tmpfs").map(({ Target }) => Target),
  ];
  return [
    ...(info.Mounts ?? []).map(
      (mount): Mount => ({
        destination: mount.Destination,
        kind: mount.Type === "volume" || mount.Type === "bind" || mount.Type === "tmpfs" ? mount.Type : "other",
        writable: mount.RW,
      }),
    ),
    ...tmpfs.map((destination): Mount => ({ destination, kind: "tmpfs", writable: true })),
  ];
};
