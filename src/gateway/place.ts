import { randomBytes } from "node:crypto";
import { chmod, lstat, mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Putting files where others read them, in one step. Everything that is not in place yet, or no longer, is a sibling
 * named `.{name}-…`; whatever of these is not in use is swept after each placing.
 */

const toSibling = (name: string, part: string): string => `.${name}-${part}-${randomBytes(6).toString("hex")}`;

const whenMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if (["ENOENT", "EINVAL"].includes((error as NodeJS.ErrnoException).code ?? "")) return value;
    throw error;
  };

const holds = async (path: string, content: Buffer, mode: number): Promise<boolean> => {
  const stats = await lstat(path).catch(whenMissing(undefined));
  if (!stats?.isFile() || (stats.mode & 0o7777) !== mode) return false;
  return content.equals(await readFile(path));
};

const write = async (path: string, content: Buffer, mode: number): Promise<void> => {
  await writeFile(path, content, { flag: "wx" });
  // Not at creation: the umask would take bits away.
  await chmod(path, mode);
};

/** `rename` replaces everything in one step but a directory, which has to be moved out of the way. */
const switchTo = async (directory: string, prepared: string, name: string): Promise<void> => {
  const target = join(directory, name);
  const stats = await lstat(target).catch(whenMissing(undefined));
  if (stats?.isDirectory()) await rename(target, join(directory, toSibling(name, "displaced")));
  await rename(join(directory, prepared), target);
};

const sweep = async (directory: string, name: string, ...inUse: string[]): Promise<void> => {
  const unused = (await readdir(directory)).filter((entry) => entry.startsWith(`.${name}-`) && !inUse.includes(entry));
  await Promise.all(unused.map((entry) => rm(join(directory, entry), { recursive: true, force: true })));
};

/** Makes `directory` (if need be) and puts the file into it. Returns whether it was not there like that already. */
export const placeFile = async (
  directory: string,
  name: string,
  { content, mode }: { content: Buffer; mode: number },
): Promise<boolean> => {
  await mkdir(directory, { recursive: true });
  // Agents run as any user.
  if (((await lstat(directory)).mode & 0o777) !== 0o755) await chmod(directory, 0o755);
  const changed = !(await holds(join(directory, name), content, mode));
  if (changed) {
    const prepared = toSibling(name, "new");
    await write(join(directory, prepared), content, mode);
    await switchTo(directory, prepared, name);
  }
  await sweep(directory, name);
  return changed;
};

const holdsExactly = async (path: string, files: ReadonlyMap<string, Buffer>, mode: number): Promise<boolean> => {
  const stats = await lstat(path).catch(whenMissing(undefined));
  if (!stats?.isDirectory() || (stats.mode & 0o777) !== 0o755) return false;
  if ((await readdir(path)).length !== files.size) return false;
  const held = await Promise.all([...files].map(([name, content]) => holds(join(path, name), content, mode)));
  return held.every(Boolean);
};

/**
 * Puts a directory of exactly these files at `parent/name`, as a relative symbolic link to a sibling that carries the
 * hash in its name. The directory that it replaces stays until the next call. Returns whether it was not there like that already.
 */
export const placeDirectory = async (
  parent: string,
  name: string,
  { files, mode, hash }: { files: ReadonlyMap<string, Buffer>; mode: number; hash: string },
): Promise<boolean> => {
  const current = await readlink(join(parent, name)).catch(whenMissing(undefined));
  const previous = current?.startsWith(`.${name}-`) && !current.includes("/") ? [current] : [];
  for (const sibling of previous) {
    if (!(await holdsExactly(join(parent, sibling), files, mode))) continue;
    await sweep(parent, name, sibling);
    return false;
  }
  // Never one that exists, even of the same hash: readers may be in it.
  const fresh = toSibling(name, hash);
  await mkdir(join(parent, fresh));
  await Promise.all([...files].map(([file, content]) => write(join(parent, fresh, file), content, mode)));
  await chmod(join(parent, fresh), 0o755);
  const link = toSibling(name, "link");
  await symlink(fresh, join(parent, link));
  await switchTo(parent, link, name);
  // Measured: a reader that followed the link just before the switch finds nothing if the previous one goes at once.
  await sweep(parent, name, fresh, ...previous);
  return true;
};
