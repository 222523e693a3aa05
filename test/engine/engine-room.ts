import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type RunOptions, type RunResult, run } from "./run.ts";

/** A Debian root entered with mount and process namespaces of its own; the network is the host's. */
export interface EngineRoom {
  /** Its first process, as the host numbers it. */
  pid: number;
  /** The command line that runs `command` inside, for `spawn`. */
  enter(command: readonly string[]): [string, string[]];
  /** Runs a command inside, with the same working directory and no more environment than given. */
  run(command: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Kills everything inside; the kernel drops its mounts. */
  close(): Promise<void>;
}

// The host's other directories appear under their own names, so a bind mount means the same inside and outside.
// pivot_root and not chroot: dockerd remounts / when it unpacks images.
const script = `set -eu
root=$1; shift
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
for dir in /*; do
  case $dir in /bin|/boot|/dev|/etc|/lib*|/lost+found|/proc|/run|/sbin|/sys|/usr|/var) continue ;; esac
  if [ ! -d "$dir" ] || [ -L "$dir" ]; then continue; fi
  mkdir -p ".$dir"; mount --rbind "$dir" ".$dir"
done
for dir in "$@"; do mkdir -p ".$dir"; mount --rbind "$dir" ".$dir"; done
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
  if [ -e "$file" ]; then touch ".$file"; mount --bind "$(readlink -f "$file")" ".$file"; fi
done
mkdir -p .outside
pivot_root . .outside
umount -l /.outside
echo ready
exec /usr/bin/docker-init -s -- sleep infinity`;

export const roomPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export async function openRoom(root: string, visible: readonly string[]): Promise<EngineRoom> {
  // Each link of the chain dies with the one before it, even by SIGKILL; the last takes the process namespace along.
  const [first, ...chain] = [
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child=KILL",
  ] as const;
  const child = spawn(first, [...chain, "sh", "-c", script, "sh", root, ...visible], {
    detached: true, // a terminal's Ctrl-C is ours to handle
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = once(child, "close");
  let said = "";
  child.stderr.on("data", (text) => {
    said += text;
  });
  await Promise.race([once(child.stdout, "data"), closed]);
  if (child.pid === undefined || child.exitCode !== null) throw new Error(`cannot enter ${root}: ${said}`);
  const pid = onlyChildOf(child.pid);
  child.unref();
  child.stdout.destroy();
  child.stderr.destroy();

  const enter = (command: readonly string[]): [string, string[]] => [
    "nsenter",
    ["--target", String(pid), "--mount", "--pid", "--", ...command],
  ];
  return {
    pid,
    enter,
    run(command, { cwd = process.cwd(), env = {}, ...options } = {}) {
      const [file, args] = enter(["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", cwd, ...command]);
      return run(file, args, { ...options, env: { PATH: roomPath, HOME: "/root", ...env } });
    },
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.ref();
      process.kill(pid, "SIGKILL");
      await closed;
    },
  };
}

export function onlyChildOf(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
  if (!child) throw new Error(`process ${pid} has no child`);
  return Number(child);
}
