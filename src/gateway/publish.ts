import { createHash } from "node:crypto";
import { access, constants, readFile } from "node:fs/promises";
import { join } from "node:path";
import { formatManifest, toManifest } from "./manifest.ts";
import { placeDirectory, placeFile } from "./place.ts";
import type { RoleConfiguration } from "./role-schema.ts";
import { SharedDirError } from "./shared-dir-error.ts";

/** The same place from `src/` and from `dist/`. */
const enterAsset = new URL("../../assets/enter", import.meta.url);

export interface Published {
  /** SHA-256 in hex of the names and contents of all manifests. */
  readonly hash: string;
  readonly roles: readonly string[];
  /** False when everything was in place already, byte for byte. */
  readonly changed: boolean;
}

const isErrno = (error: unknown): boolean => error instanceof Error && "syscall" in error;

/**
 * Brings `bin/enter` and `manifests/{role}.json` of the shared directory to what they should be, each in one step: a
 * reader sees the old or the new, whole. Repairs what was tampered with, removes roles that are no more and what a
 * crashed publisher left. One publisher per directory.
 * @throws {SharedDirError} the directory is missing, not writable, full or read-only
 */
export const publishShared = async ({
  sharedDir,
  roles,
}: {
  sharedDir: string;
  roles: RoleConfiguration;
}): Promise<Published> => {
  const enter = await readFile(enterAsset);
  const names = Object.keys(roles).sort();
  const manifests = new Map(
    names.map((role) => [`${role}.json`, Buffer.from(formatManifest(toManifest(role, roles)))] as const),
  );
  const hash = createHash("sha256")
    .update(JSON.stringify([...manifests].map(([name, content]) => [name, content.toString()])))
    .digest("hex");
  try {
    // Also when there is nothing to do: a directory that will fail the next change is told now.
    // The dot, so that a file is told to be no directory.
    await access(`${sharedDir}/.`, constants.W_OK | constants.X_OK);
    const enterChanged = await placeFile(join(sharedDir, "bin"), "enter", { content: enter, mode: 0o555 });
    const manifestsChanged = await placeDirectory(sharedDir, "manifests", { files: manifests, mode: 0o444, hash });
    return { hash, roles: names, changed: enterChanged || manifestsChanged };
  } catch (error) {
    throw isErrno(error) ? new SharedDirError(sharedDir, error) : error;
  }
};
