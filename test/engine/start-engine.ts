import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defaultCacheDir } from "./cache.ts";
import { copyDataRoot } from "./data-root.ts";
import { claimNetwork, type EngineNetwork } from "./engine-network.ts";
import { type EngineRoom, onlyChildOf, openRoom, roomPath } from "./engine-room.ts";
import { engineRoot, type Suite } from "./engine-root.ts";
import { cleanUp, type EngineRecord, reapLeftovers, saveRecord, startOf } from "./leftovers.ts";
import { engineVersion } from "./ping.ts";
import type { RunOptions, RunResult } from "./run.ts";

export interface Engine extends AsyncDisposable {
  dockerHost: string;
  socketPath: string;
  version: string;
  apiVersion: string;
  /** False when it is the user's: nothing may be tagged there with an official name. */
  owned: boolean;
  docker(args: readonly string[], options?: RunOptions): Promise<RunResult>;
  compose(args: readonly string[], options?: RunOptions): Promise<RunResult>;
  stop(): Promise<void>;
}

export interface PrivateEngine extends Engine {
  owned: true;
  suite: Suite;
  dataDir: string;
  logFile: string;
  /** dockerd, as the host numbers it; another one after a restart. */
  readonly pid: number;
  /** Ends dockerd (containers end with it, as there is no live-restore) and starts it on the same data. */
  restart(signal?: "SIGTERM" | "SIGKILL", whileStopped?: () => Promise<void>): Promise<void>;
}

export interface EngineOptions {
  suite?: Suite;
  cacheDir?: string;
  registryMirror?: string;
  /** A data directory to begin with a copy of. */
  seed?: string | undefined;
}

/** Starts a Docker Engine of a Debian suite of this process's own; it ends when this process does. */
export async function startEngine(options: EngineOptions = {}): Promise<PrivateEngine> {
  const { suite = "trixie", cacheDir = defaultCacheDir() } = options;
  if (process.getuid?.() !== 0) throw new Error("a private Docker Engine needs root; or set DOCKER_HOST");
  await reapLeftovers(cacheDir);
  const root = await engineRoot(suite, cacheDir);
  const id = `roboco-engine-${randomBytes(4).toString("hex")}`;
  const stateDir = await mkdtemp(join(tmpdir(), "roboco-engine-"));
  // Beside the cache and not in /tmp: images are hard links to the cache's, and /tmp may be small.
  const dataDir = join(cacheDir, "data", id);
  const record: EngineRecord = {
    id,
    owner: process.pid,
    ownerStarted: (await startOf(process.pid)) ?? "",
    root,
    directories: [stateDir, dataDir],
  };
  await saveRecord(cacheDir, record);
  let room: EngineRoom | undefined;
  const stop = async () => {
    await room?.close();
    await cleanUp(cacheDir, record);
  };
  try {
    record.network = await claimNetwork(root);
    await saveRecord(cacheDir, record);
    await mkdir(dataDir, { recursive: true });
    if (options.seed) await copyDataRoot(options.seed, dataDir);
    room = await openRoom(root, [cacheDir, stateDir, process.cwd()]);
    return await serve({ ...options, suite, id, room, network: record.network, stateDir, dataDir, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Parts extends EngineOptions {
  suite: Suite;
  id: string;
  room: EngineRoom;
  network: EngineNetwork;
  stateDir: string;
  dataDir: string;
  stop(): Promise<void>;
}

async function serve({ room, stateDir, dataDir, suite, stop, ...parts }: Parts): Promise<PrivateEngine> {
  const socketPath = join(stateDir, "docker.sock");
  const dockerHost = `unix://${socketPath}`;
  const logFile = join(stateDir, "dockerd.log");
  const flags = [
    `--data-root=${dataDir}`,
    `--exec-root=${join(stateDir, "exec")}`,
    `--pidfile=${join(stateDir, "docker.pid")}`,
    `--host=${dockerHost}`,
    "--host=unix:///run/docker.sock", // what a compose file mounts
    `--bridge=${parts.network.bridge}`,
    `--default-address-pool=base=${parts.network.pool},size=24`,
    "--iptables=false",
    "--ip6tables=false",
    "--exec-opt=native.cgroupdriver=cgroupfs",
    `--cgroup-parent=/${parts.id}`,
    "--shutdown-timeout=5",
    ...(parts.registryMirror ? [`--registry-mirror=${parts.registryMirror}`] : []),
  ];
  let daemon: ChildProcess;
  let pid = 0;
  const start = async () => {
    const log = openSync(logFile, "a");
    const [file, args] = room.enter(["dockerd", ...flags]);
    daemon = spawn(file, args, { detached: true, stdio: ["ignore", log, log], env: { PATH: roomPath, HOME: "/root" } });
    daemon.unref();
    for (let waited = 0; ; waited += 50) {
      const answer = await engineVersion(socketPath);
      if (answer) {
        pid = onlyChildOf(daemon.pid ?? 0);
        return answer;
      }
      if (daemon.exitCode !== null || waited > 60_000) {
        const tail = readFileSync(logFile, "utf8").trim().split("\n").slice(-10).join("\n");
        throw new Error(`dockerd of ${suite} does not answer:\n${tail}`);
      }
      await sleep(50);
    }
  };
  const docker: Engine["docker"] = (args, { env, ...options } = {}) =>
    room.run(["docker", ...args], { ...options, env: { ...env, DOCKER_HOST: dockerHost } });
  return {
    ...(await start()),
    dockerHost,
    socketPath,
    owned: true,
    suite,
    dataDir,
    logFile,
    get pid() {
      return pid;
    },
    docker,
    compose: (args, options) => docker(["compose", ...args], options),
    async restart(signal = "SIGTERM", whileStopped = async () => undefined) {
      daemon.ref();
      const gone = once(daemon, "exit");
      process.kill(pid, signal);
      await gone;
      await rm(join(stateDir, "docker.pid"), { force: true });
      await whileStopped();
      await start();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
