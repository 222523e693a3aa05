import { stat } from "node:fs/promises";
import type { EngineAddress } from "./client.ts";

/** distroless' and many other images' nobody. */
const unprivilegedId = 65_532;

/**
 * In the image the process starts as root, since the socket's group differs from host to host; it goes on as nobody
 * with that one group where the group may write to the socket, and stays what it is elsewhere. Resolves to the user id.
 */
export const dropPrivileges = async (address: EngineAddress): Promise<number | undefined> => {
  if (process.getuid?.() !== 0) return process.getuid?.();
  const socket = address.kind === "unix" ? await stat(address.socketPath) : undefined;
  const groupMayWrite = socket === undefined || (socket.gid !== 0 && (socket.mode & 0o020) !== 0);
  if (!groupMayWrite) return 0;
  process.setgroups?.(socket === undefined ? [] : [socket.gid]);
  process.setgid?.(unprivilegedId);
  process.setuid?.(unprivilegedId);
  return unprivilegedId;
};
