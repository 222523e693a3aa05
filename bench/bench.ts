import { readFile, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import Docker from "dockerode";
import { postgres } from "../src/engines/postgres.ts";
import { redis } from "../src/engines/redis.ts";
import { startSidecar } from "../test/e2e/support/sidecar.ts";
import { until } from "../test/e2e/support/until.ts";
import { resolveEngine } from "../test/engine/resolve-engine.ts";
import { run } from "../test/engine/run.ts";
import { watchEvents } from "./events.ts";
import { makePlainly } from "./plain.ts";
import { median, report } from "./report.ts";
import { withTestcontainers } from "./testcontainers.ts";

// Ratios within one run: the two sides take turns, so that what the machine does meanwhile meets both.
const rounds = Number(process.env.BENCH_ROUNDS ?? 15);

const { engine, images } = await resolveEngine();
const docker = new Docker({ socketPath: engine.socketPath });
const network = `roboco-bench-${process.pid}`;
await docker.createNetwork({ Name: network, CheckDuplicate: true });
const events = await watchEvents(docker);
const installation = `bench-${process.pid}`;
await run("npm", ["run", "build"]);
const settings = {
  DOCKER_HOST: engine.dockerHost,
  ROBOCO_INSTALLATION: installation,
  ROBOCO_LOG_LEVEL: "info",
  ROBOCO_SANDBOX_POSTGRES_IMAGE: images.postgres,
  ROBOCO_SANDBOX_REDIS_IMAGE: images.redis,
  ...(images.mongo ? { ROBOCO_SANDBOX_MONGO_IMAGE: images.mongo } : {}),
};
// As users run it: the memory of a TypeScript loader is not the product's.
const sidecar = await startSidecar(settings, [], [new URL("../dist/main.js", import.meta.url).pathname]);
await sidecar.line("sidecar.ready");

/** An agent by the sidecar: ms from its `create` event to its release, and then from its `destroy` to its last sandbox's. */
const withSidecar = async (services: readonly string[]): Promise<{ releasedMs: number; tornDownMs: number }> => {
  const agent = await docker.createContainer({
    Image: images.agent,
    Cmd: ["sleep", "infinity"],
    Labels: { "roboco.sandbox.services": services.join(","), "roboco.agent.installation": installation },
    HostConfig: { NetworkMode: network },
  });
  await agent.start();
  const created = await events.first("create", agent.id);
  const unpaused = await events.first("unpause", agent.id);
  await sidecar.line("agent.released", ({ container }) => container === agent.id);
  const sandboxes = (
    await docker.listContainers({ all: true, filters: { label: [`roboco.sandbox.owner.container=${agent.id}`] } })
  ).map(({ Id }) => Id);
  if (sandboxes.length !== services.length) throw new Error(`${sandboxes.length} sandboxes for ${services}`);
  await agent.remove({ force: true, v: true });
  const destroyed = await events.first("destroy", agent.id);
  const last = Math.max(...(await Promise.all(sandboxes.map((id) => events.first("destroy", id)))));
  return { releasedMs: unpaused - created, tornDownMs: last - destroyed };
};

/** One sandbox container made and removed by force, by hand: the floor of a teardown. */
const removeOne = async (): Promise<number> => {
  const container = await docker.createContainer({
    Image: images.postgres,
    Env: ["POSTGRES_PASSWORD=x"],
    HostConfig: { NetworkMode: network, Tmpfs: { "/var/lib/postgresql/data": "" } },
  });
  await container.start();
  await until("its server is there", async () => {
    const log = await container.logs({ stdout: true, stderr: true, follow: false });
    return log.toString().includes("init process complete");
  });
  const startedAt = performance.now();
  await container.remove({ force: true, v: true });
  return performance.now() - startedAt;
};

const measured: Record<string, number[]> = {};
const note = (what: string, ms: number): void => {
  measured[what] ??= [];
  measured[what].push(ms);
};

const both = [
  { engine: postgres, image: images.postgres },
  { engine: redis, image: images.redis },
];
const all = images.mongo ? ["postgres", "redis", "mongo"] : ["postgres", "redis"];
const plain = { docker, events, network, agentImage: images.agent };
console.log(`Docker ${engine.version}, ${rounds} rounds, one to warm up. Few rounds or a busy machine prove nothing.`);
for (let round = 0; round <= rounds; round += 1) {
  const results: Record<string, number> = {
    "plain script, Postgres + Redis": await makePlainly(both, plain),
    "sidecar, Postgres + Redis": (await withSidecar(["postgres", "redis"])).releasedMs,
    "plain script, Postgres": await makePlainly(both.slice(0, 1), plain),
    "sidecar, Postgres": (await withSidecar(["postgres"])).releasedMs,
    "testcontainers-node, Postgres + Redis": await withTestcontainers(engine, images, ["postgres", "redis"]),
    "testcontainers-node, Postgres": await withTestcontainers(engine, images, ["postgres"]),
    "one forced removal": await removeOne(),
    [`teardown by the sidecar, ${all.length} sandboxes`]: (await withSidecar(all)).tornDownMs,
  };
  if (round > 0) for (const [what, ms] of Object.entries(results)) note(what, ms);
}

report(measured, [
  ["sidecar, Postgres + Redis", "plain script, Postgres + Redis", 1.15],
  ["sidecar, Postgres", "plain script, Postgres", 1.15],
  ["testcontainers-node, Postgres + Redis", "plain script, Postgres + Redis", undefined],
  [`teardown by the sidecar, ${all.length} sandboxes`, "one forced removal", 1.5],
]);

const idleSeconds = 20;
const cpuTicks = async (): Promise<number> => {
  const stat = await readFile(`/proc/${sidecar.pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
};
const residentMb = async (): Promise<number> => {
  const status = await readFile(`/proc/${sidecar.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
};
const before = await cpuTicks();
const memory: number[] = [];
for (let second = 0; second < idleSeconds; second += 1) {
  await delay(1000);
  memory.push(await residentMb());
}
// USER_HZ is 100 on every Linux.
const cpuPercent = (await cpuTicks()) - before;
console.log(
  `\nidle sidecar: ${median(memory).toFixed(0)} MB resident, ${(cpuPercent / idleSeconds).toFixed(2)} % of one CPU`,
);

await sidecar[Symbol.asyncDispose]();
await rm(sidecar.sharedDir, { recursive: true, force: true });
events.stop();
await docker.getNetwork(network).remove();
await engine.stop();
process.exit(0);
