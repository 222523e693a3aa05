import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import Docker from "dockerode";
import { extract } from "tar-stream";
import { inject } from "vitest";
import { labels } from "../../../src/contract/labels.ts";
import { createLineSplitter } from "../../../src/docker/lines.ts";
import { type Sidecar, startSidecar } from "./sidecar.ts";
import { until } from "./until.ts";

export interface AgentOptions {
  readonly name?: string;
  /** A list of engines for `roboco.sandbox.services`; "" leaves the label out. */
  readonly services?: string;
  readonly labels?: Record<string, string>;
  readonly command?: readonly string[];
  readonly environment?: readonly string[];
  readonly image?: string;
  readonly host?: Docker.HostConfig;
  readonly readOnlyRootfs?: boolean;
}

/** One installation, one network and what is made on it; all of it is removed at the end, and only that. */
export class World implements AsyncDisposable {
  readonly engine = inject("engine");
  readonly docker: Docker;
  readonly id = randomBytes(4).toString("hex");
  readonly installation = `test-${this.id}`;
  readonly network = `roboco-test-${this.id}`;
  readonly images = this.engine.images;
  readonly #containers = new Set<string>();
  readonly #volumes = new Set<string>();
  readonly #directories = new Set<string>();

  constructor() {
    this.docker = new Docker({ socketPath: this.engine.dockerHost.replace("unix://", "") });
  }

  static async create(): Promise<World> {
    const world = new World();
    await world.docker.createNetwork({ Name: world.network, CheckDuplicate: true });
    return world;
  }

  async sidecar(environment: Record<string, string> = {}, args: readonly string[] = []): Promise<Sidecar> {
    const settings = {
      DOCKER_HOST: this.engine.dockerHost,
      ROBOCO_INSTALLATION: this.installation,
      ROBOCO_SANDBOX_POSTGRES_IMAGE: this.images.postgres,
      ROBOCO_SANDBOX_REDIS_IMAGE: this.images.redis,
      ...(this.images.mongo ? { ROBOCO_SANDBOX_MONGO_IMAGE: this.images.mongo } : {}),
      ...environment,
    };
    const sidecar = await startSidecar(settings, args);
    this.#directories.add(sidecar.sharedDir);
    return sidecar;
  }

  /** A created agent of this installation, on this world's network. Runs node by default, for ever. */
  async agent(options: AgentOptions = {}): Promise<Docker.Container> {
    const services = options.services ?? "redis";
    const container = await this.docker.createContainer({
      name: options.name ?? `agent-${randomBytes(4).toString("hex")}`,
      Image: options.image ?? this.images.agent,
      Cmd: [...(options.command ?? ["sleep", "infinity"])],
      Env: [...(options.environment ?? [])],
      Labels: {
        ...(services === "" ? {} : { [labels.services]: services }),
        [labels.agentInstallation]: this.installation,
        ...options.labels,
      },
      HostConfig: { NetworkMode: this.network, ...options.host },
      StopTimeout: 0,
    } as Docker.ContainerCreateOptions);
    this.#containers.add(container.id);
    return container;
  }

  async running(options: AgentOptions = {}): Promise<Docker.Container> {
    const agent = await this.agent(options);
    await agent.start();
    return agent;
  }

  /** Every line of the Engine's event stream from now on, as it is. */
  async recordEvents(
    filters: Record<string, string[]> = {},
  ): Promise<{ readonly lines: readonly string[]; stop(): void }> {
    const lines: string[] = [];
    const connection = new AbortController();
    const stream = await this.docker.getEvents({ filters, abortSignal: connection.signal });
    const splitter = createLineSplitter((line) => lines.push(line));
    stream.on("data", (chunk: Buffer) => splitter.write(chunk));
    stream.on("error", () => {}); // its own end
    return { lines, stop: () => connection.abort() };
  }

  async volume(): Promise<string> {
    const name = `roboco-test-${randomBytes(4).toString("hex")}`;
    await this.docker.createVolume({ Name: name });
    this.#volumes.add(name);
    return name;
  }

  sandboxes(owner?: { id: string }): Promise<Docker.ContainerInfo[]> {
    return this.docker.listContainers({
      all: true,
      filters: {
        label: [
          `${labels.sandbox}=1`,
          `${labels.installation}=${this.installation}`,
          ...(owner ? [`${labels.ownerContainer}=${owner.id}`] : []),
        ],
      },
    });
  }

  status(container: Docker.Container): Promise<string> {
    return container.inspect().then(
      ({ State }) => State.Status,
      () => "gone",
    );
  }

  /** A file of the agent's run directory, or "" where there is none. */
  async file(container: Docker.Container, name: string): Promise<string> {
    const files = await this.files(container);
    return files[name]?.text ?? "";
  }

  async files(container: Docker.Container): Promise<Record<string, { text: string; mode: number; uid: number }>> {
    const found: Record<string, { text: string; mode: number; uid: number }> = {};
    const archive = await container.getArchive({ path: "/run/roboco" }).catch(() => undefined);
    if (!archive) return found;
    const unpack = extract();
    archive.pipe(unpack);
    for await (const entry of unpack) {
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      const { name, mode = 0, uid = 0 } = entry.header;
      found[name.replace(/^roboco\//, "")] = { text: Buffer.concat(chunks).toString("utf8"), mode: mode & 0o7777, uid };
    }
    return found;
  }

  /** Awaits that the agent has its files and is not held. */
  async released(container: Docker.Container): Promise<Record<string, string>> {
    return await until(`agent ${container.id.slice(0, 12)} is released`, async () => {
      const [environment, phase, status] = [
        await this.file(container, "sandbox.env"),
        await this.file(container, ".phase"),
        await this.status(container),
      ];
      if (!phase.startsWith("released") || status === "paused" || environment === "") return undefined;
      return Object.fromEntries(
        environment
          .trim()
          .split("\n")
          .map((line) => line.split("=") as [string, string]),
      );
    });
  }

  async refused(
    container: Docker.Container,
  ): Promise<{ error: string; message: string; remediate: string; missing: string[] }> {
    return await until(`agent ${container.id.slice(0, 12)} is refused`, async () => {
      const text = await this.file(container, "refused.json");
      return text === "" ? undefined : JSON.parse(text);
    });
  }

  ended(container: Docker.Container): Promise<true> {
    return until(`agent ${container.id.slice(0, 12)} ended`, async () =>
      ["exited", "dead", "gone"].includes(await this.status(container)),
    ).then(() => true);
  }

  /** Runs a command in a running agent; its output. */
  async exec(container: Docker.Container, command: readonly string[]): Promise<string> {
    const exec = await container.exec({ Cmd: [...command], AttachStdout: true, AttachStderr: true, Tty: true });
    const stream = await exec.start({ Tty: true });
    let text = "";
    for await (const chunk of stream) text += chunk;
    return text;
  }

  /** A new image: a container's file system with one executable more. */
  async imageWith(base: string, tag: string, path: string, script: string): Promise<string> {
    const { pack } = await import("tar-stream");
    const { buffer } = await import("node:stream/consumers");
    const container = await this.docker.createContainer({ Image: base, Cmd: ["true"] });
    try {
      const archive = pack();
      archive.entry({ name: path.slice(1), mode: 0o755 }, script);
      archive.finalize();
      await container.putArchive(await buffer(archive), { path: "/" });
      await container.commit({ repo: `roboco-test/${tag}`, tag: this.id });
    } finally {
      await container.remove({ force: true, v: true });
    }
    return `roboco-test/${tag}:${this.id}`;
  }

  async gone(owner?: { id: string }): Promise<void> {
    await until("no sandbox is left", async () => (await this.sandboxes(owner)).length === 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ours = [...this.#containers, ...(await this.sandboxes()).map(({ Id }) => Id)];
    await Promise.all(
      ours.map((id) =>
        this.docker
          .getContainer(id)
          .remove({ force: true, v: true })
          .catch(() => {}),
      ),
    );
    // Last: an Engine makes the source of a bind mount anew for a container that starts without it.
    for (const directory of this.#directories) await rm(directory, { recursive: true, force: true });
    for (const volume of this.#volumes)
      await this.docker
        .getVolume(volume)
        .remove()
        .catch(() => {});
    await this.docker
      .getNetwork(this.network)
      .remove()
      .catch(() => {});
  }
}
