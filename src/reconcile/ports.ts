import type { Observable } from "rxjs";
import type { Labels } from "../contract/labels.ts";

/**
 * All that the product asks of a Docker Engine. This list is the security surface: `docs/security.md` prints it.
 * Already so (304, 404 on removal) is success. Others reject with the classes of `errors.ts`.
 */
export interface DockerPort {
  /** `undefined`: no such container. */
  inspectContainer(id: string): Promise<ContainerView | undefined>;
  /** Containers in every state that have all of these labels, `key` or `key=value`. */
  listContainers(labels: readonly string[]): Promise<readonly ContainerSummary[]>;
  /** Volumes that the image declares; `undefined`: not present locally. */
  inspectImage(reference: string): Promise<{ readonly volumes: readonly string[] } | undefined>;
  pullImage(reference: string, options: { signal: AbortSignal }): Promise<void>;
  /** `conflict`: the name is taken. `no-image`: it vanished. */
  createContainer(specification: ContainerSpecification): Promise<string | "conflict" | "no-image">;
  startContainer(id: string): Promise<"started" | "gone">;
  /** `not-running`: it ended in between. Paused already is `paused`. */
  pauseContainer(id: string): Promise<"paused" | "not-running">;
  unpauseContainer(id: string): Promise<"unpaused" | "not-paused">;
  killContainer(id: string): Promise<void>;
  /** By force, with its anonymous volumes; returns when it is gone. */
  removeContainer(id: string): Promise<void>;
  /** Text files of a directory in a container, by name; `undefined`: no such directory or container. */
  readFiles(id: string, directory: string): Promise<Readonly<Record<string, string>> | undefined>;
  /** Written in the order given, below `prefix` of the file system mounted at `root`. */
  writeFiles(
    id: string,
    target: { readonly root: string; readonly prefix: string },
    files: Readonly<Record<string, string>>,
  ): Promise<"written" | "gone">;
  /** The last lines that a container wrote, oldest first. */
  readLogTail(id: string): Promise<readonly string[]>;
  inspectNetwork(name: string): Promise<NetworkView | undefined>;
  createNetwork(name: string, labels: Labels): Promise<void>;
  /** Only when no container in any state refers to it. */
  removeNetworkIfUnused(name: string): Promise<void>;
  connectNetwork(network: string, containerId: string): Promise<void>;
  /** By force. Not connected, or gone: done. */
  disconnectNetwork(network: string, containerId: string): Promise<void>;
}

/** The Engine's own wall clock, in ms since the epoch: grace periods are counted by it. */
export interface Clock {
  now(): number;
  /** Reads the Engine's clock anew. */
  synchronise(): Promise<void>;
}

export type EngineEvent =
  | { readonly kind: "connected" }
  | { readonly kind: "disconnected"; readonly err?: Error }
  | { readonly kind: "garbled"; readonly line: string }
  | { readonly kind: "container"; readonly id: string; readonly action: string; readonly labels: Labels };

/** Never completes or errors by itself: reconnects with back-off. Subscribe, wait for `connected`, then list. */
export type EventStream = Observable<EngineEvent>;

/** Makes a network's addresses reachable for this process while the returned handle is not disposed. */
export interface Reach {
  hold(network: string): Promise<AsyncDisposable>;
}

export type ContainerStatus = "created" | "running" | "paused" | "restarting" | "removing" | "exited" | "dead";

export interface ContainerSummary {
  readonly id: string;
  readonly name: string;
  readonly status: ContainerStatus;
  /** ms since the epoch, by the Engine's clock, whole seconds. */
  readonly createdAt: number;
  readonly labels: Labels;
  readonly networkMode: string;
  /** Address by network name; "" while it has none. */
  readonly networks: Readonly<Record<string, string>>;
}

export interface Mount {
  readonly destination: string;
  readonly kind: "volume" | "bind" | "tmpfs" | "other";
  readonly writable: boolean;
}

export interface ContainerView extends ContainerSummary {
  /** ms since the epoch; `undefined`: never. */
  readonly startedAt: number | undefined;
  readonly finishedAt: number | undefined;
  readonly exitCode: number;
  readonly oomKilled: boolean;
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  readonly readonlyRootfs: boolean;
  /** Program and arguments of its first process. */
  readonly command: readonly string[];
}

export interface NetworkView {
  readonly labels: Labels;
}

export interface ContainerSpecification {
  readonly name: string;
  readonly image: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly command: readonly string[] | undefined;
  readonly labels: Labels;
  readonly network: string;
  readonly tmpfs: readonly string[];
  readonly tmpfsBytes: number;
  readonly memoryBytes: number;
  readonly cpus: number;
}
