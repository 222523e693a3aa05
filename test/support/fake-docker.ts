import { EngineRejectedError } from "../../src/errors.ts";
import type {
  Clock,
  ContainerSpecification,
  ContainerStatus,
  ContainerView,
  DockerPort,
  Mount,
  NetworkView,
} from "../../src/reconcile/ports.ts";
import { t0 } from "./observed.ts";

type Writable<T> = { -readonly [key in keyof T]: T[key] };

export interface FakeContainer extends Writable<Omit<ContainerView, "networks" | "mounts">> {
  networks: Record<string, string>;
  mounts: readonly Mount[];
  /** Path to text, of the whole container. */
  files: Record<string, string>;
  log: string[];
  specification?: ContainerSpecification;
}

type Method = keyof DockerPort;
/** Called before a method does its work: throw to make it fail, wait to hold it. */
type Hook = (...args: readonly unknown[]) => unknown;

const writes: ReadonlySet<Method> = new Set<Method>([
  "pullImage",
  "createContainer",
  "startContainer",
  "pauseContainer",
  "unpauseContainer",
  "killContainer",
  "removeContainer",
  "writeFiles",
  "createNetwork",
  "removeNetworkIfUnused",
  "connectNetwork",
  "disconnectNetwork",
]);

const alive: readonly ContainerStatus[] = ["running", "paused", "restarting"];

/** An Engine in memory: containers, images and networks as plain data, and the answers a real one gives. */
export const createFakeDocker = () => {
  const containers = new Map<string, FakeContainer>();
  const images = new Map<string, readonly string[]>([
    ["postgres:16-alpine", ["/var/lib/postgresql/data"]],
    ["redis:8-alpine", ["/data"]],
    ["mongo:8", ["/data/configdb", "/data/db"]],
  ]);
  /** What a registry would have. */
  const registryImages = new Map(images);
  const networks = new Map<string, NetworkView>();
  const hooks = new Map<Method, Hook>();
  const calls: { method: Method; args: readonly unknown[] }[] = [];
  let inFlight = 0;
  let sequence = 0;
  let now = t0;

  const addNetwork = (name: string, labels: NetworkView["labels"] = {}): void => {
    networks.set(name, { labels });
  };
  addNetwork("shop_default");

  const find = (idOrName: string): FakeContainer | undefined =>
    containers.get(idOrName) ?? [...containers.values()].find(({ name }) => name === idOrName);

  const add = (over: Partial<FakeContainer> & { name: string }): FakeContainer => {
    sequence += 1;
    const container: FakeContainer = {
      id: `${sequence}`.padStart(8, "0").padEnd(64, "c"),
      status: "created",
      createdAt: now,
      labels: {},
      startedAt: undefined,
      finishedAt: undefined,
      exitCode: 0,
      oomKilled: false,
      environment: {},
      networkMode: "shop_default",
      networks: { shop_default: "127.0.0.1" },
      mounts: [],
      readonlyRootfs: false,
      command: ["sleep", "infinity"],
      files: {},
      log: [],
      ...structuredClone(over),
    };
    containers.set(container.id, container);
    return container;
  };

  const start = (container: FakeContainer): void => {
    container.status = "running";
    container.startedAt = now;
  };
  const end = (container: FakeContainer, exitCode = 0): void => {
    container.status = "exited";
    container.exitCode = exitCode;
    container.finishedAt = now;
  };
  const get = (id: string): FakeContainer => {
    const container = find(id);
    if (!container) throw new EngineRejectedError(`No such container: ${id}`, 404);
    return container;
  };

  const method =
    <A extends readonly unknown[], R>(name: Method, work: (...args: A) => R) =>
    async (...args: A): Promise<R> => {
      calls.push({ method: name, args });
      inFlight += 1;
      try {
        await Promise.resolve();
        await hooks.get(name)?.(...args);
        return work(...args);
      } finally {
        inFlight -= 1;
      }
    };

  const docker: DockerPort = {
    inspectContainer: method("inspectContainer", (id) => {
      const found = find(id);
      return found && structuredClone(found);
    }),
    listContainers: method("listContainers", (labels) =>
      [...containers.values()]
        .filter((container) =>
          labels.every((label) => {
            const [key = "", ...value] = label.split("=");
            return value.length === 0 ? key in container.labels : container.labels[key] === value.join("=");
          }),
        )
        .map((container) => structuredClone(container)),
    ),
    inspectImage: method("inspectImage", (reference) => {
      const volumes = images.get(reference);
      return volumes && { volumes };
    }),
    pullImage: method("pullImage", (reference) => {
      const volumes = registryImages.get(reference);
      if (!volumes) throw new EngineRejectedError(`pull of ${reference}: manifest unknown`, 404);
      images.set(reference, volumes);
    }),
    createContainer: method("createContainer", (specification) => {
      if (find(specification.name)) return "conflict";
      if (!images.has(specification.image)) return "no-image";
      return add({
        name: specification.name,
        labels: specification.labels,
        environment: specification.environment,
        networkMode: specification.network,
        networks: { [specification.network]: "" },
        specification,
      }).id;
    }),
    startContainer: method("startContainer", (id) => {
      const container = find(id);
      if (!container) return "gone";
      if (container.status === "paused") {
        throw new EngineRejectedError("cannot start a paused container, try unpause instead", 409);
      }
      for (const network of Object.keys(container.networks)) {
        if (!networks.has(network)) throw new EngineRejectedError(`network ${network} not found`, 404);
        container.networks[network] = "127.0.0.1";
      }
      if (!alive.includes(container.status)) start(container);
      return "started";
    }),
    pauseContainer: method("pauseContainer", (id) => {
      const container = find(id);
      if (!container || (container.status !== "running" && container.status !== "paused")) return "not-running";
      container.status = "paused";
      return "paused";
    }),
    unpauseContainer: method("unpauseContainer", (id) => {
      const container = find(id);
      if (container?.status !== "paused") return "not-paused";
      container.status = "running";
      return "unpaused";
    }),
    killContainer: method("killContainer", (id) => {
      const container = find(id);
      if (container && alive.includes(container.status)) end(container, 137);
    }),
    removeContainer: method("removeContainer", (id) => {
      const container = find(id);
      if (container) containers.delete(container.id);
    }),
    readFiles: method("readFiles", (id, directory) => {
      const found = Object.entries(find(id)?.files ?? {}).filter(([path]) => path.startsWith(`${directory}/`));
      if (found.length === 0) return undefined;
      return Object.fromEntries(found.map(([path, text]) => [path.slice(directory.length + 1), text]));
    }),
    writeFiles: method("writeFiles", (id, { root, prefix }, files) => {
      const container = find(id);
      if (!container) return "gone";
      if (container.readonlyRootfs && root === "/") {
        throw new EngineRejectedError("container rootfs is marked read-only", 403);
      }
      for (const [name, text] of Object.entries(files)) {
        container.files[`/${[root, prefix, name].join("/")}`.replace(/\/+/g, "/")] = text;
      }
      return "written";
    }),
    readLogTail: method("readLogTail", (id) => [...(find(id)?.log ?? [])]),
    inspectNetwork: method("inspectNetwork", (name) => networks.get(name)),
    createNetwork: method("createNetwork", (name, labels) => {
      if (!networks.has(name)) addNetwork(name, labels);
    }),
    removeNetworkIfUnused: method("removeNetworkIfUnused", (name) => {
      if (![...containers.values()].some((container) => name in container.networks)) networks.delete(name);
    }),
    connectNetwork: method("connectNetwork", (network, id) => {
      if (!networks.has(network)) throw new EngineRejectedError(`network ${network} not found`, 404);
      get(id).networks[network] = "127.0.0.1";
    }),
    disconnectNetwork: method("disconnectNetwork", (network, id) => {
      const container = find(id);
      if (container) delete container.networks[network];
    }),
  };

  const clock: Clock = { now: () => now, synchronise: async () => {} };

  return {
    docker,
    clock,
    containers,
    images,
    registryImages,
    networks,
    addNetwork,
    add,
    start,
    end,
    find,
    get,
    hook: (name: Method, hook: Hook | undefined): void => {
      if (hook) hooks.set(name, hook);
      else hooks.delete(name);
    },
    advance: (ms: number): void => {
      now += ms;
    },
    inFlight: () => inFlight,
    calls: (name: Method) => calls.filter((call) => call.method === name).map(({ args }) => args),
    /** The calls that change something. */
    writes: () => calls.filter((call) => writes.has(call.method)),
  };
};

export type FakeDocker = ReturnType<typeof createFakeDocker>;
