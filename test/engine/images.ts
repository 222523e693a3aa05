import { spawn } from "node:child_process";
import { createReadStream, existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Readable } from "node:stream";
import Docker from "dockerode";
import { defaultCacheDir, digest, digestTree } from "./cache.ts";
import { ferretdb, ferretdbObstacle, ferretdbVersion } from "./ferretdb.ts";
import { baseTar, baseTarName, imagesDir, nodeModules } from "./stand-ins.ts";
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

/** Changes with anything that goes into the images. */
export const imagesKey = async (): Promise<string> =>
  digest(
    await digestTree(imagesDir),
    baseTarName(),
    existsSync(certificates) ? await readFile(certificates, "utf8") : "",
    (await ferretdbObstacle()) ?? ferretdbVersion,
    process.arch,
  );

/** Every image the tests use: pulled where the registry answers, else stand-ins built from Debian's packages. */
export async function ensureImages(
  engine: Engine,
  { cacheDir = defaultCacheDir(), mongo = true } = {},
): Promise<Images> {
  const docker = new Docker({ socketPath: engine.socketPath });
  const key = await imagesKey();
  const base = `roboco-test/base:${key}`;
  const have = async (image: string) =>
    docker
      .getImage(image)
      .inspect()
      .catch(() => undefined);
  const build = async (image: string, name: string, ...extra: string[]) => {
    if (await have(image)) return image;
    if (!(await have(base))) await load(docker, await baseTar(cacheDir), base);
    console.error(`engine: building ${image} (once)`);
    await buildImage(docker, image, base, [join(imagesDir, name), ...extra]);
    return image;
  };
  let registryAnswers = true;
  const database = async (name: keyof typeof official, parts: () => Promise<string[]>) => {
    const image = official[name];
    let here = await have(image);
    if (!here && registryAnswers) {
      registryAnswers = await pull(docker, image);
      here = await have(image);
    }
    // The user's engine keeps the official names for the official images.
    const named = here || engine.owned ? image : `roboco-test/${image.replace(":", `:${key}-`)}`;
    if (!here) await build(named, name, ...(await parts()));
    if ((await have(named))?.Config.Labels?.["test.stand-in"])
      console.error(`engine: ${named} is a stand-in, see CONTRIBUTING.md`);
    return named;
  };
  const postgres = await database("postgres", async () => []);
  const redis = await database("redis", async () => []);
  const agent = await build(`roboco-test/agent:${key}`, "agent", await nodeModules("agent", cacheDir));
  const nodeBase = await build(
    `roboco-test/node:${key}`,
    "node",
    await nodeModules("node", cacheDir),
    ...(existsSync(certificates) ? [certificates] : []),
  );
  const images = { postgres, redis, agent, nodeBase };
  if (!mongo) return { ...images, mongoSkipReason: "not asked for" };
  try {
    return {
      ...images,
      mongo: await database("mongo", async () => [await ferretdb(cacheDir), await nodeModules("mongo", cacheDir)]),
    };
  } catch (error) {
    const mongoSkipReason = error instanceof Error ? error.message : String(error);
    return { ...images, mongoSkipReason };
  }
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
