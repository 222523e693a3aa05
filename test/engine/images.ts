import { spawn } from "node:child_process";
import { createReadStream, existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Readable } from "node:stream";
import Docker from "dockerode";
import { defaultCacheDir, digest, digestTree } from "./cache.ts";
import { baseTar, imagesDir, nodeModules } from "./stand-ins.ts";
import type { Engine } from "./start-engine.ts";

export interface Images {
  postgres: string;
  redis: string;
  mongo?: string;
  /** Why there is no `mongo`. */
  mongoSkipReason?: string;
  /** Node with the drivers `pg`, `redis` and `mongodb`, and nothing else to do. */
  agent: string;
  /** Node, npm and this machine's CA bundle: a base for building Node images without a registry of images. */
  nodeBase: string;
}

const official = { postgres: "postgres:16-alpine", redis: "redis:8-alpine", mongo: "mongo:8" } as const;
const certificates = "/etc/ssl/certs/ca-certificates.crt";

/** Every image the tests use: pulled where the registry answers, else stand-ins built from Debian's packages. */
export async function ensureImages(engine: Engine, cacheDir = defaultCacheDir()): Promise<Images> {
  const docker = new Docker({ socketPath: engine.socketPath });
  const base = `roboco-test/base:${digest(await digestTree(imagesDir))}`;
  const have = async (image: string) =>
    docker
      .getImage(image)
      .inspect()
      .then(
        () => true,
        () => false,
      );
  const build = async (image: string, name: string, ...extra: string[]) => {
    if (await have(image)) return image;
    if (!(await have(base))) await load(docker, await baseTar(cacheDir), base);
    await buildImage(docker, image, base, [join(imagesDir, name), ...extra]);
    return image;
  };
  const database = async (name: "postgres" | "redis") => {
    const image = official[name];
    if ((await have(image)) || (await pull(docker, image))) return image;
    // The user's engine keeps the official names for the official images.
    const standIn = engine.owned ? image : `roboco-test/${image}`;
    console.error(`engine: ${image} cannot be pulled; a stand-in from Debian's packages is used: ${standIn}`);
    return build(standIn, name);
  };
  const tag = digest(await digestTree(imagesDir), existsSync(certificates));
  const agentModules = await nodeModules("agent", cacheDir);
  const npm = await nodeModules("node", cacheDir);
  return {
    postgres: await database("postgres"),
    redis: await database("redis"),
    mongoSkipReason: "not built yet",
    agent: await build(`roboco-test/agent:${tag}`, "agent", join(agentModules, "node_modules")),
    nodeBase: await build(`roboco-test/node:${tag}`, "node", join(npm, "node_modules"), certificates),
  };
}

async function pull(docker: Docker, image: string): Promise<boolean> {
  try {
    await finished(docker, await docker.pull(image));
    return true;
  } catch {
    return false;
  }
}

async function load(docker: Docker, tar: string, image: string): Promise<void> {
  const [repo = "", tag = ""] = image.split(":");
  await finished(docker, (await docker.importImage(createReadStream(tar), { repo, tag })) as Readable);
}

/** Builds from a directory with a Dockerfile, and files or directories beside it. No step may need the network. */
async function buildImage(docker: Docker, image: string, base: string, context: string[]): Promise<void> {
  const [directory = "", ...extra] = context;
  const more = extra.flatMap((path) => ["-C", dirname(path), basename(path)]);
  const tar = spawn("tar", ["-ch", "--exclude=./package*.json", "-C", directory, ".", ...more], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await finished(docker, await docker.buildImage(tar.stdout, { t: image, buildargs: { BASE: base }, forcerm: true }));
}

/** An error may come inside a stream that began with 200. */
const finished = (docker: Docker, stream: NodeJS.ReadableStream): Promise<void> =>
  new Promise((resolve, reject) => {
    docker.modem.followProgress(stream, (error: Error | null, events: { error?: string }[]) => {
      const failed = events?.find((event) => event.error);
      if (error || failed) reject(error ?? new Error(failed?.error));
      else resolve();
    });
  });
