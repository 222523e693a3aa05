import type Docker from "dockerode";
import { z } from "zod";
import type { ContainerSpecification, DockerPort } from "../reconcile/ports.ts";
import { packFiles, unpackFiles } from "./archive.ts";
import { answers, call, statusOf } from "./call.ts";
import { pullImage } from "./pull.ts";
import { waitUntilRemoved } from "./removal.ts";
import { toSummary, toView } from "./views.ts";

const logTailLines = 20;

/** A file or a circle of links where the path goes through: no such directory, which the Engine tells as a fault of its own. */
const isNoDirectory = /not a directory|too many levels of symbolic links/;

/** The port on a real Engine. The statuses that are answers are read here: 304 and 404 mean already so. */
export const createDocker = (docker: Docker): DockerPort => {
  const inspect = (id: string) =>
    call(`inspect of container ${id}`, async (abortSignal) =>
      toView(await docker.getContainer(id).inspect({ abortSignal })),
    ).catch(answers({ 404: undefined }));

  const statusAfter = async (id: string) => (await inspect(id))?.status;

  return {
    inspectContainer: inspect,

    listContainers: async (labels) =>
      (
        await call("list of containers", (abortSignal) =>
          docker.listContainers({ all: true, filters: { label: [...labels] }, abortSignal }),
        )
      ).map(toSummary),

    inspectImage: (reference) =>
      call(`inspect of image ${reference}`, async () => {
        const { Config } = await docker.getImage(reference).inspect();
        return { volumes: Object.keys(Config?.Volumes ?? {}) };
      }).catch(answers({ 404: undefined })),

    pullImage: (reference, { signal }) => pullImage(docker, reference, signal),

    createContainer: (specification) =>
      call(`create of container ${specification.name}`, async (abortSignal) => {
        // Told apart, since dockerode puts options into the URL as well: the password would be in a proxy's log.
        const options = { _query: { name: specification.name }, _body: toBody(specification), abortSignal };
        const container = await docker.createContainer(options);
        return container.id;
      }).catch(answers<"no-image" | "conflict">({ 404: "no-image", 409: "conflict" })),

    startContainer: async (id) => {
      try {
        await call(`start of container ${id}`, (abortSignal) => docker.getContainer(id).start({ abortSignal }));
        return "started";
      } catch (error) {
        // 404 stands for a network that is gone, too.
        if (answers({ 304: true, 404: false })(error)) return "started";
        if ((await inspect(id)) === undefined) return "gone";
        throw error;
      }
    },

    pauseContainer: async (id) => {
      try {
        await call(`pause of container ${id}`, (abortSignal) => docker.getContainer(id).pause({ abortSignal }));
        return "paused";
      } catch (error) {
        const status = await statusAfter(id);
        if (status === "paused") return "paused";
        // A conflict is with the state of that moment, which a restart may have ended since.
        if (status !== "running" || statusOf(error) === 409) return "not-running";
        throw error;
      }
    },

    unpauseContainer: async (id) => {
      try {
        await call(`unpause of container ${id}`, (abortSignal) => docker.getContainer(id).unpause({ abortSignal }));
        return "unpaused";
      } catch (error) {
        if ((await statusAfter(id)) !== "paused") return "not-paused";
        throw error;
      }
    },

    killContainer: (id) =>
      call(`kill of container ${id}`, async (abortSignal) => {
        await docker.getContainer(id).kill({ abortSignal });
      }).catch(answers({ 404: undefined, 409: undefined })),

    removeContainer: async (id) => {
      try {
        await call(`removal of container ${id}`, (abortSignal) =>
          docker.getContainer(id).remove({ force: true, v: true, abortSignal }),
        );
      } catch (error) {
        if (answers({ 404: "gone", 409: "going" })(error) === "going") await waitUntilRemoved(id, inspect);
      }
    },

    readFiles: (id, directory) =>
      call(`read of ${directory} in container ${id}`, async (abortSignal) =>
        unpackFiles(await docker.getContainer(id).getArchive({ path: directory, abortSignal })),
      ).catch((error) => {
        if (statusOf(error) === 500 && isNoDirectory.test(error.message)) return undefined;
        return answers({ 404: undefined })(error);
      }),

    writeFiles: async (id, { root, prefix }, files) => {
      const archive = await packFiles(prefix, files);
      try {
        await call(`write into ${root} of container ${id}`, (abortSignal) =>
          docker.getContainer(id).putArchive(archive, { path: root, abortSignal }),
        );
        return "written";
      } catch (error) {
        if ((await inspect(id)) === undefined) return "gone";
        throw error;
      }
    },

    readLogTail: (id) =>
      call(`log of container ${id}`, async (abortSignal) => {
        const raw = await docker
          .getContainer(id)
          .logs({ stdout: true, stderr: true, tail: logTailLines, follow: false, abortSignal });
        return readFrames(Buffer.isBuffer(raw) ? raw : Buffer.from(raw));
      }).catch(answers({ 404: [] })),

    inspectNetwork: (name) =>
      call(`inspect of network ${name}`, async () => {
        const network: Docker.NetworkInspectInfo = await docker.getNetwork(name).inspect();
        return { labels: network.Labels ?? {} };
      }).catch(answers({ 404: undefined })),

    createNetwork: (name, labels) =>
      call(`create of network ${name}`, async (abortSignal) => {
        await docker.createNetwork({ Name: name, CheckDuplicate: true, Labels: labels, abortSignal });
      }).catch(answers({ 409: undefined })),

    removeNetworkIfUnused: async (name) => {
      const users = await call(`list of containers on ${name}`, (abortSignal) =>
        docker.listContainers({ all: true, filters: { network: [name] }, abortSignal }),
      );
      if (users.length > 0) return;
      await call(`removal of network ${name}`, async (abortSignal) => {
        await docker.getNetwork(name).remove({ abortSignal });
      }).catch(answers({ 403: undefined, 404: undefined, 409: undefined }));
    },

    connectNetwork: (network, containerId) =>
      call(`connect of ${containerId} to network ${network}`, async () => {
        await docker.getNetwork(network).connect({ Container: containerId });
      }),

    disconnectNetwork: (network, containerId) =>
      call(`disconnect of ${containerId} from network ${network}`, async () => {
        await docker.getNetwork(network).disconnect({ Container: containerId, Force: true });
      }).catch(answers({ 403: undefined, 404: undefined, 409: undefined, 500: undefined })),
  };
};

/** The Engine's wall clock in ms since the epoch, to the millisecond. */
export const readEngineTime = async (docker: Docker): Promise<number> => {
  const info = await call("GET /info", (): Promise<unknown> => docker.info(), { deadlineMs: 10_000 });
  return Date.parse(z.looseObject({ SystemTime: z.string() }).parse(info).SystemTime);
};

const toBody = (specification: ContainerSpecification): Docker.ContainerCreateOptions => ({
  Image: specification.image,
  ...(specification.command === undefined ? {} : { Cmd: [...specification.command] }),
  Env: Object.entries(specification.environment).map(([name, value]) => `${name}=${value}`),
  Labels: { ...specification.labels },
  HostConfig: {
    NetworkMode: specification.network,
    RestartPolicy: { Name: "no" },
    Memory: specification.memoryBytes,
    MemorySwap: specification.memoryBytes, // the same: no swap
    NanoCpus: Math.round(specification.cpus * 1e9),
    Tmpfs: Object.fromEntries(
      specification.tmpfs.map((path) => [path, `rw,nosuid,nodev,noexec,size=${specification.tmpfsBytes}`]),
    ),
  },
});

/** Lines of a log in the Engine's frames: eight bytes of head, the length in the last four. */
const readFrames = (raw: Buffer): string[] => {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= raw.length; ) {
    const length = raw.readUInt32BE(at + 4);
    parts.push(raw.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return Buffer.concat(parts)
    .toString("utf8")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
};
