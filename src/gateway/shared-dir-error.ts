import { SidecarError, toError } from "../errors.ts";

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  ENOTDIR: "it is not a directory, or a part of its path is not",
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  EROFS: "it is mounted read-only",
  ENOSPC: "no space is left on it",
  EDQUOT: "no space is left on it",
};

/** The shared directory cannot be published to. */
export class SharedDirError extends SidecarError {
  override readonly code = "SHARED_DIR_UNUSABLE";
  readonly directory: string;
  constructor(directory: string, cause: unknown) {
    const { message, code = "" } = toError(cause) as NodeJS.ErrnoException;
    super(
      `Cannot publish to the shared directory ${directory}: ${reasons[code] ? `${reasons[code]} (${message})` : message}`,
      "Mount a volume that this process may write at the directory that ROBOCO_SHARED_DIR names (read-write for the sidecar, read-only for the agents).",
      { cause },
    );
    this.directory = directory;
  }
}
