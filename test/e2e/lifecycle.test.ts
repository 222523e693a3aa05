import { afterAll, beforeAll, expect, test } from "vitest";
import type { Sidecar } from "./support/sidecar.ts";
import { until } from "./support/until.ts";
import { World } from "./support/world.ts";

let world: World;
let sidecar: Sidecar;
beforeAll(async () => {
  world = await World.create();
  sidecar = await world.sidecar();
  await sidecar.line("sidecar.ready");
});
afterAll(async () => {
  await sidecar?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

const enter = ["/roboco/bin/enter"];
const withLauncher = () => ({ Binds: [`${sidecar.sharedDir}:/roboco:ro`] });

test("an agent reads and writes rows and keys with nothing but the environment it was given", async () => {
  const script = `
    const pg = require("pg"); const { createClient } = require("redis");
    (async () => {
      const e = process.env;
      const db = new pg.Client({ host: e.ROBOCO_TEST_DB_HOST, port: e.ROBOCO_TEST_DB_PORT, user: e.ROBOCO_TEST_DB_USER,
        password: e.ROBOCO_TEST_DB_PASSWORD, database: e.ROBOCO_TEST_DB_ADMIN_DB });
      await db.connect();
      await db.query("CREATE TABLE notes (text text)");
      await db.query("INSERT INTO notes VALUES ('row')");
      const { rows } = await db.query("SELECT text FROM notes");
      await db.query("CREATE DATABASE another");
      await db.end();
      const kv = createClient({ socket: { host: e.ROBOCO_TEST_REDIS_HOST, port: +e.ROBOCO_TEST_REDIS_PORT }, password: e.ROBOCO_TEST_REDIS_PASSWORD });
      await kv.connect(); await kv.set("k", "key"); console.log(rows[0].text, await kv.get("k")); await kv.quit();
    })().catch((error) => { console.error(error); process.exit(1); });`;
  const agent = await world.running({
    services: "postgres,redis",
    command: [...enter, "node", "-e", script],
    host: withLauncher(),
  });
  await world.ended(agent);
  const log = (await agent.logs({ stdout: true, stderr: true, follow: false })).toString();
  expect(log).toContain("row key");
  expect((await agent.inspect()).State.ExitCode).toBe(0);
  await world.gone(agent);
});

test("an agent that starts before its sandboxes are ready is paused, and runs on with its files in place", async () => {
  const agent = await world.running({
    services: "postgres",
    command: ["sh", "-c", "while :; do test -s /run/roboco/sandbox.env && echo has || echo lacks; sleep 0.05; done"],
  });
  const lacks = async () => (await agent.logs({ stdout: true, follow: false })).toString().split("lacks").length - 1;
  await until("the agent is paused", async () => (await world.status(agent)) === "paused");
  const beforeItWasPaused = await lacks();
  await world.released(agent);
  await until("the agent's code sees its files", async () =>
    (await agent.logs({ stdout: true, follow: false })).toString().includes("has"),
  );
  // One look may have been under way when it was frozen; Postgres needed many times as long as a look.
  expect(await lacks()).toBeLessThanOrEqual(beforeItWasPaused + 1);
  await agent.remove({ force: true });
  await world.gone(agent);
});

test("sandboxes, files and labels are as the contract has them", async () => {
  const agent = await world.running({ services: "redis postgres", labels: { "roboco.agent.id": `look-${world.id}` } });
  const environment = await world.released(agent);
  expect(Object.keys(environment).sort()).toEqual([
    "ROBOCO_TEST_DB_ADMIN_DB",
    "ROBOCO_TEST_DB_HOST",
    "ROBOCO_TEST_DB_PASSWORD",
    "ROBOCO_TEST_DB_PORT",
    "ROBOCO_TEST_DB_USER",
    "ROBOCO_TEST_REDIS_HOST",
    "ROBOCO_TEST_REDIS_PASSWORD",
    "ROBOCO_TEST_REDIS_PORT",
  ]);
  expect(environment.ROBOCO_TEST_DB_HOST).toBe(`roboco-sandbox-pg-look-${world.id}`);
  expect(environment.ROBOCO_TEST_DB_PASSWORD).toMatch(/^[0-9a-f]{32}$/);
  expect(environment.ROBOCO_TEST_REDIS_PASSWORD).not.toBe(environment.ROBOCO_TEST_DB_PASSWORD);

  const files = await world.files(agent);
  expect(files["sandbox.env"]).toMatchObject({ mode: 0o444, uid: 0 });
  expect(files["sandbox.json"]).toMatchObject({ mode: 0o444, uid: 0 });
  expect(files["refused.json"]).toBeUndefined();
  expect(Object.values(files).find(({ mode }) => mode === 0o755)).toMatchObject({ uid: 0 });
  expect(JSON.parse(files["sandbox.json"]?.text ?? "")).toMatchObject({
    schema: 1,
    agent: `look-${world.id}`,
    state: "ready",
    services: {
      postgres: { port: 5432, user: "sandbox", database: "sandbox" },
      redis: { port: 6379, password: environment.ROBOCO_TEST_REDIS_PASSWORD },
    },
  });

  for (const { Id } of await world.sandboxes(agent)) {
    const { Config, HostConfig, Mounts, NetworkSettings } = await world.docker.getContainer(Id).inspect();
    expect(HostConfig).toMatchObject({
      Memory: 512 * 1024 * 1024,
      MemorySwap: 512 * 1024 * 1024,
      NanoCpus: 1e9,
      RestartPolicy: { Name: "no" },
    });
    expect(Object.values(HostConfig.PortBindings ?? {})).toEqual([]);
    expect(Mounts.filter(({ Type }) => Type === "volume")).toEqual([]);
    expect(Object.keys(NetworkSettings.Networks)).toEqual([world.network]);
    expect(Config.Labels).toMatchObject({
      "roboco.sandbox": "1",
      "roboco.sandbox.owner": `roboco-agent-look-${world.id}`,
      "roboco.sandbox.owner.container": agent.id,
      "roboco.sandbox.installation": world.installation,
    });
  }
  await agent.remove({ force: true });
  await world.gone(agent);
});

test("docker restart keeps the sandbox and its data", async () => {
  const agent = await world.running();
  const before = await world.released(agent);
  const [sandbox] = await world.sandboxes(agent);
  await agent.restart({ t: 0 });
  await agent.restart({ t: 0 });
  await until("it runs again", async () => (await world.status(agent)) === "running");
  // Long enough for a wrong teardown: the look after a die.
  await sidecarIdle(agent.id, 3000);
  expect((await world.sandboxes(agent)).map(({ Id }) => Id)).toEqual([sandbox?.Id]);
  expect(await world.released(agent)).toEqual(before);
  await agent.remove({ force: true });
});

test("a crash-looping agent under a restart policy keeps one sandbox", async () => {
  const agent = await world.running({
    command: ["sh", "-c", "sleep 0.3; exit 1"],
    host: { RestartPolicy: { Name: "always" } },
  });
  await world.released(agent);
  const [sandbox] = await world.sandboxes(agent);
  await until("it was restarted three times", async () => (await agent.inspect()).RestartCount >= 3);
  expect((await world.sandboxes(agent)).map(({ Id }) => Id)).toEqual([sandbox?.Id]);
  await agent.remove({ force: true });
  await world.gone(agent);
});

test("an agent that is stopped loses its sandbox, and gets a fresh one when it starts again", async () => {
  const agent = await world.running();
  const before = await world.released(agent);
  await agent.stop({ t: 0 });
  await world.gone(agent);
  expect(await world.file(agent, "sandbox.env")).toBe("");
  expect(JSON.parse(await world.file(agent, "sandbox.json"))).toMatchObject({ state: "gone" });
  await agent.start();
  const after = await world.released(agent);
  expect(after.ROBOCO_TEST_REDIS_PASSWORD).not.toBe(before.ROBOCO_TEST_REDIS_PASSWORD);
  await agent.remove({ force: true });
  await world.gone(agent);
});

test.each([
  ["killed", async (agent: { kill(): Promise<unknown> }) => agent.kill()],
  [
    "removed by force",
    async (agent: { remove(o: { force: true }): Promise<unknown> }) => agent.remove({ force: true }),
  ],
])("an agent that is %s takes its sandboxes with it", async (_title, end) => {
  const agent = await world.running({ services: "postgres,redis" });
  await world.released(agent);
  await end(agent);
  await world.gone(agent);
});

test("docker run --rm leaves nothing", async () => {
  const agent = await world.running({ command: ["sh", "-c", "sleep 0.5"], host: { AutoRemove: true } });
  await until("it is gone", async () => (await world.status(agent)) === "gone");
  await world.gone(agent);
});

test("an agent that ends within milliseconds leaves nothing", async () => {
  const agent = await world.running({ command: ["true"], services: "postgres,redis" });
  await world.ended(agent);
  await world.gone(agent);
  await sidecarSettles(agent.id);
  expect(await world.sandboxes(agent)).toEqual([]);
});

test("an agent removed while its sandboxes are being made leaves nothing", async () => {
  const agent = await world.agent({ services: "postgres,redis" });
  await until("a sandbox is there", async () => (await world.sandboxes(agent)).length > 0);
  await agent.remove({ force: true });
  await sidecarSettles(agent.id);
  await world.gone(agent);
});

test("a sandbox that dies under a living agent comes back with the same name and credentials, loudly", async () => {
  const agent = await world.running();
  const before = await world.released(agent);
  const [sandbox] = await world.sandboxes(agent);
  await world.docker.getContainer(sandbox?.Id ?? "").remove({ force: true });
  await sidecar.line("sandbox.lost", ({ container }) => container === agent.id);
  await until("another is there", async () => {
    const [now] = await world.sandboxes(agent);
    return now?.State === "running" && now.Id !== sandbox?.Id;
  });
  await until(
    "it is ready",
    () =>
      sidecar.lines.filter(({ event, container }) => event === "sandbox.ready" && container === agent.id).length === 2,
  );
  expect(await world.released(agent)).toEqual(before);
  expect(await world.status(agent)).toBe("running");
  await agent.remove({ force: true });
  await world.gone(agent);
});

test("an agent paused by its user stays paused", async () => {
  const agent = await world.running();
  await world.released(agent);
  await agent.pause();
  const [sandbox] = await world.sandboxes(agent);
  await world.docker.getContainer(sandbox?.Id ?? "").remove({ force: true });
  await until(
    "its lost sandbox is ready again",
    () =>
      sidecar.lines.filter(({ event, container }) => event === "sandbox.ready" && container === agent.id).length === 2,
  );
  expect(await world.status(agent)).toBe("paused");
  await agent.remove({ force: true });
  await world.gone(agent);
});

test("hold=none never pauses: the launcher waits instead", async () => {
  const agent = await world.running({
    services: "postgres",
    labels: { "roboco.sandbox.hold": "none" },
    command: [...enter, "sh", "-c", 'echo "host $ROBOCO_TEST_DB_HOST"; sleep infinity'],
    host: withLauncher(),
  });
  await world.released(agent);
  await until("the agent's command runs", async () =>
    (await agent.logs({ stdout: true, follow: false })).toString().includes("host roboco-sandbox-pg-"),
  );
  expect(sidecar.lines.some(({ event, container }) => event === "agent.held" && container === agent.id)).toBe(false);
  await agent.remove({ force: true });
});

test("an agent without a network of its own is joined to roboco-sandbox, which goes with the last of its users", async () => {
  const agent = await world.running({ host: { NetworkMode: "bridge" } });
  const environment = await world.released(agent);
  const { NetworkSettings } = await agent.inspect();
  expect(Object.keys(NetworkSettings.Networks)).toContain("roboco-sandbox");
  const found = await world.exec(agent, ["getent", "hosts", environment.ROBOCO_TEST_REDIS_HOST ?? ""]);
  expect(found).toMatch(/\d+\.\d+\.\d+\.\d+/);
  await agent.remove({ force: true });
  await world.gone(agent);
  await until("the network is gone", async () => {
    const networks = await world.docker.listNetworks({ filters: { name: ["roboco-sandbox"] } });
    return !networks.some(({ Name }) => Name === "roboco-sandbox");
  });
});

/** The sidecar has looked at this container and found nothing more to do. */
const sidecarSettles = (id: string) => sidecar.line("agent.gone", ({ container }) => container === id);

/** No line about this container for a while of the sidecar's own time. */
const sidecarIdle = async (id: string, ms: number) => {
  const count = () => sidecar.lines.filter(({ container, event }) => container === id && event !== "agent.held").length;
  let [seen, since] = [count(), performance.now()];
  await until("the sidecar has nothing to say about it for a while", () => {
    if (count() !== seen) [seen, since] = [count(), performance.now()];
    return performance.now() - since > ms;
  });
};
