import { existsSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./run.ts";

/** Image layers: written once, so a hard link will do for a copy. */
const layers = new Set(["overlay2", "vfs"]);
/** What belongs to one engine only. */
const own = new Set(["network", "containers", "runtimes", "tmp", "swarm", "plugins", "engine-id"]);

/** Copies the images of a stopped engine's data directory; the big part costs links only, on one file system. */
export async function copyDataRoot(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o710 });
  for (const name of await readdir(from)) {
    if (own.has(name) || !existsSync(join(from, name))) continue;
    await run("cp", ["-a", ...(layers.has(name) ? ["--link"] : ["--reflink=auto"]), join(from, name), to]);
  }
}
