import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { run } from "../../src/app.ts";
import { loadConfig } from "../../src/config.ts";
import type { Log } from "../../src/contract/log-events.ts";
import type { SandboxEngine } from "../../src/engines/engine.ts";
import { redis } from "../../src/engines/redis.ts";
import { registry } from "../../src/engines/registry.ts";
import { until } from "./support/until.ts";
import { World } from "./support/world.ts";

const { images } = inject("engine");
const mongoTitle = images.mongo ? "" : ` (skipped: ${images.mongoSkipReason})`;

let world: World;
beforeAll(async () => {
  world = await World.create();
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
});

test.skipIf(!images.mongo)(
  `an agent writes and reads documents in its Mongo with nothing but the environment it was given${mongoTitle}`,
  async () => {
    await using sidecar = await world.sidecar();
    await sidecar.line("sidecar.ready");
    const script = `
      const { MongoClient } = require("mongodb");
      (async () => {
        const e = process.env;
        const at = e.ROBOCO_TEST_MONGO_HOST + ":" + e.ROBOCO_TEST_MONGO_PORT;
        const connect = (password) => new MongoClient("mongodb://" + at, {
          auth: { username: e.ROBOCO_TEST_MONGO_USER, password }, authSource: e.ROBOCO_TEST_MONGO_AUTH_DB, serverSelectionTimeoutMS: 5000 }).connect();
        const client = await connect(e.ROBOCO_TEST_MONGO_PASSWORD);
        const notes = client.db("app").collection("notes");
        await notes.insertOne({ text: "document" });
        console.log("read", (await notes.findOne({})).text);
        await client.close();
        const refused = await connect("wrong").then((c) => c.db("app").collection("notes").findOne({})).then(() => "no", () => "yes");
        console.log("wrong password refused:", refused);
        process.exit(0);
      })().catch((error) => { console.error(error); process.exit(1); });`;
    const agent = await world.running({
      services: "mongo",
      command: ["/roboco/bin/enter", "node", "-e", script],
      host: { Binds: [`${sidecar.sharedDir}:/roboco:ro`] },
    });
    await world.ended(agent);
    const log = (await agent.logs({ stdout: true, stderr: true, follow: false })).toString();
    expect(log).toContain("read document");
    expect(log).toContain("wrong password refused: yes");
    await world.gone(agent);
  },
);

test.skipIf(!images.mongo)(`mongosh logs in with what the agent was given${mongoTitle}`, async () => {
  await using sidecar = await world.sidecar();
  await sidecar.line("sidecar.ready");
  const agent = await world.running({
    services: "mongo",
    image: images.mongo ?? "",
    command: [
      "/roboco/bin/enter",
      "sh",
      "-c",
      'mongosh --quiet "mongodb://$ROBOCO_TEST_MONGO_USER:$ROBOCO_TEST_MONGO_PASSWORD@$ROBOCO_TEST_MONGO_HOST:$ROBOCO_TEST_MONGO_PORT/app?authSource=$ROBOCO_TEST_MONGO_AUTH_DB" --eval \'db.notes.insertOne({ text: "by shell" }); print(db.notes.findOne().text)\'',
    ],
    host: { Binds: [`${sidecar.sharedDir}:/roboco:ro`], Tmpfs: { "/data/db": "", "/data/configdb": "" } },
  });
  await world.ended(agent);
  expect((await agent.logs({ stdout: true, stderr: true, follow: false })).toString()).toContain("by shell");
  await world.gone(agent);
});

test.skipIf(!images.mongo)(
  `every volume that Mongo's image declares is in memory, and none is left behind${mongoTitle}`,
  async () => {
    const volumes = async () => ((await world.docker.listVolumes()).Volumes ?? []).map(({ Name }) => Name).sort();
    const before = await volumes();
    await using sidecar = await world.sidecar();
    await sidecar.line("sidecar.ready");
    const agent = await world.running({ services: "postgres,redis,mongo" });
    await world.released(agent);
    expect(await world.sandboxes(agent)).toHaveLength(3);
    expect(await volumes()).toEqual(before);
    await agent.remove({ force: true });
    await world.gone(agent);
    expect(await volumes()).toEqual(before);
  },
);

test("a fourth engine is one object in the registry: provisioned, delivered, configured and torn down like the others", async () => {
  const cache: SandboxEngine = {
    ...redis,
    name: "cache",
    shortName: "cache",
    image: images.redis,
    agentVariables: ({ host, port, password }) => ({
      ROBOCO_TEST_CACHE_URL: `redis://:${password}@${host}:${port}`,
    }),
  };
  const four = [...registry, cache];
  const config = loadConfig(four, {
    DOCKER_HOST: world.engine.dockerHost,
    ROBOCO_SANDBOX_DB_ENABLED: "true",
    ROBOCO_INSTALLATION: `${world.installation}-four`,
    ROBOCO_HTTP_LISTEN: "127.0.0.1:0",
    ROBOCO_SHARED_DIR: await mkdtemp(join(tmpdir(), "roboco-four-")),
    ROBOCO_SANDBOX_REDIS_IMAGE: images.redis,
    ROBOCO_SANDBOX_CACHE_IMAGE: images.redis,
  });
  expect(config.images.cache).toBe(images.redis);
  const events: string[] = [];
  const log: Log = (event) => {
    events.push(event);
  };
  const stop = new AbortController();
  const running = run({ config, registry: four, log, stop: stop.signal });
  await until("it is ready", () => events.includes("sidecar.ready"));
  const agent = await world.running({
    services: "cache,redis",
    labels: { "roboco.agent.installation": `${world.installation}-four`, "roboco.agent.id": `four-${world.id}` },
  });
  const environment = await world.released(agent);
  expect(environment.ROBOCO_TEST_CACHE_URL).toMatch(
    new RegExp(`^redis://:[0-9a-f]{32}@roboco-sandbox-cache-four-${world.id}:6379$`),
  );
  expect(environment.ROBOCO_TEST_REDIS_HOST).toBe(`roboco-sandbox-redis-four-${world.id}`);
  const siblings = () =>
    world.docker.listContainers({ all: true, filters: { label: [`roboco.sandbox.owner.container=${agent.id}`] } });
  expect((await siblings()).map(({ Labels }) => Labels["roboco.sandbox.engine"]).sort()).toEqual(["cache", "redis"]);
  await agent.remove({ force: true });
  await until("its sandboxes are gone", async () => (await siblings()).length === 0);
  stop.abort();
  await running;
  await rm(config.sharedDir, { recursive: true });
});

test("an agent reads its role's manifest, and cannot write it", async () => {
  await using sidecar = await world.sidecar();
  await sidecar.line("sidecar.ready");
  const agent = await world.running({
    services: "",
    labels: { "roboco.agent.role": "qa" },
    command: ["/roboco/bin/enter", "sleep", "infinity"],
    host: { Binds: [`${sidecar.sharedDir}:/roboco:ro`] },
  });
  await world.released(agent);
  const manifest = JSON.parse(await world.exec(agent, ["cat", "/roboco/manifests/qa.json"]));
  expect(manifest).toMatchObject({ schema: 1, role: "qa", files: { write: false } });
  expect(manifest.servers.flow.tools).toContain("claim_review");
  expect(manifest.servers.do.tools).not.toContain("commit");
  expect(await world.exec(agent, ["sh", "-c", "echo x > /roboco/manifests/qa.json"])).toMatch(/read-only/i);
  expect(await world.sandboxes(agent)).toEqual([]);
  await agent.remove({ force: true });
});
