import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "./run.ts";

export const defaultCacheDir = (): string =>
  join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "roboco-sidecar", "engine");

export const digest = (...parts: unknown[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 12);

/** One digest over the contents of every file below the directory. */
export async function digestTree(directory: string): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return digest(await Promise.all(paths.sort().map(async (path) => [path, await readFile(path, "utf8")])));
}

/** Recursive, and also over what a killed container left without permissions. */
export const remove = async (...paths: string[]): Promise<void> => {
  await run("rm", ["-rf", "--one-file-system", "--", ...paths]);
};

/** Makes `path` under a temporary name and renames it, so that nobody sees half of it; of two racers one wins. */
export async function makeOnce(path: string, make: (temporary: string) => Promise<void>): Promise<string> {
  if (existsSync(path)) return path;
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.tmp-${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    await make(temporary);
    await rename(temporary, path);
  } catch (error) {
    await remove(temporary);
    if (!existsSync(path)) throw error;
  }
  return path;
}
