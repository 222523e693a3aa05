import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { remove } from "./cache.ts";
import { type EngineNetwork, releaseNetwork } from "./engine-network.ts";
import { run } from "./run.ts";

/** What an engine holds beyond its processes, which die with their owner; written before each part is taken. */
export interface EngineRecord {
  id: string;
  owner: number;
  ownerStarted: string;
  root: string;
  directories: string[];
  network?: EngineNetwork;
}

const recordsOf = (cacheDir: string) => join(cacheDir, "running");

/** Field 22 of /proc/pid/stat, which tells a process from a later one with its number. */
export async function startOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

export async function saveRecord(cacheDir: string, record: EngineRecord): Promise<void> {
  await mkdir(recordsOf(cacheDir), { recursive: true });
  await writeFile(join(recordsOf(cacheDir), `${record.id}.json`), JSON.stringify(record));
}

/** Gives back all that the record names. The engine's processes must be gone. */
export async function cleanUp(cacheDir: string, record: EngineRecord): Promise<void> {
  if (record.network && existsSync(record.root)) await releaseNetwork(record.root, record.network);
  const groups = await run("find", ["/sys/fs/cgroup", "-depth", "-type", "d", "-path", `*/${record.id}*`], {
    anyCode: true,
  });
  if (groups.stdout) await run("rmdir", groups.stdout.trim().split("\n"), { anyCode: true });
  await remove(...record.directories, join(recordsOf(cacheDir), `${record.id}.json`));
}

/** Cleans up after engines whose owner died without stopping them. */
export async function reapLeftovers(cacheDir: string): Promise<void> {
  for (const name of await readdir(recordsOf(cacheDir)).catch(() => [])) {
    const text = await readFile(join(recordsOf(cacheDir), name), "utf8").catch(() => "");
    if (!text) continue;
    const record = JSON.parse(text) as EngineRecord;
    if ((await startOf(record.owner)) !== record.ownerStarted) await cleanUp(cacheDir, record);
  }
  for (const name of await readdir(cacheDir).catch(() => [])) {
    const maker = /\.tmp-(\d+)-[0-9a-f]{8}$/.exec(name)?.[1];
    if (maker && !existsSync(`/proc/${maker}`)) await remove(join(cacheDir, name));
  }
}
