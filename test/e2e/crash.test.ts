import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { labels } from "../../src/contract/labels.ts";
import { until } from "./support/until.ts";
import { World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.create();
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
});

const slowStart = ["sh", "-c", "while :; do sleep 0.1; done"];

test("an agent held by a sidecar that was killed is released by the next one", async () => {
  const first = await world.sidecar();
  await first.line("sidecar.ready");
  const agent = await world.running({ services: "postgres", command: slowStart });
  await first.line("agent.held", ({ container }) => container === agent.id);
  await first.kill();
  expect(await world.status(agent)).toBe("paused");
  await using second = await world.sidecar();
  await second.line("sidecar.ready");
  await world.released(agent);
  expect(await world.status(agent)).toBe("running");
  expect(await world.sandboxes(agent)).toHaveLength(1);
  await agent.remove({ force: true });
  await world.gone();
});

test("an agent paused by its user while no sidecar ran stays paused", async () => {
  const first = await world.sidecar();
  await first.line("sidecar.ready");
  const agent = await world.running();
  const before = await world.released(agent);
  await first.kill();
  await agent.pause();
  await using second = await world.sidecar();
  await second.line("sidecar.ready");
  expect(await world.status(agent)).toBe("paused");
  expect((await world.files(agent))["sandbox.env"]?.text).toContain(before.ROBOCO_TEST_REDIS_PASSWORD);
  await agent.remove({ force: true });
  await world.gone();
});

test("an agent that its user paused before any sidecar saw it gets its files and stays paused", async () => {
  const agent = await world.running();
  await agent.pause();
  await using sidecar = await world.sidecar();
  await sidecar.line("sidecar.ready");
  expect(await world.file(agent, "sandbox.env")).not.toBe("");
  expect(await world.status(agent)).toBe("paused");
  await agent.remove({ force: true });
  await world.gone();
});

test("orphans of every kind are removed at start-up, and living agents keep theirs", async () => {
  const first = await world.sidecar();
  await first.line("sidecar.ready");
  const [lives, dies, vanishes] = await Promise.all([world.running(), world.running(), world.running()]);
  await Promise.all([lives, dies, vanishes].map((agent) => world.released(agent)));
  await first.kill();
  await dies.kill();
  await vanishes.remove({ force: true });
  await using second = await world.sidecar();
  await world.gone(dies);
  await world.gone(vanishes);
  await second.line("sidecar.ready");
  expect(await world.sandboxes(lives)).toHaveLength(1);
  expect(await world.file(dies, "sandbox.env")).toBe("");
  await lives.remove({ force: true });
  await world.gone();
});

test("killed while it makes sandboxes, it leaves them to its successor, which finishes or removes them", async () => {
  const first = await world.sidecar();
  await first.line("sidecar.ready");
  const [stays, goes] = await Promise.all([
    world.running({ services: "postgres,redis" }),
    world.running({ services: "postgres,redis" }),
  ]);
  await until("sandboxes are being made", async () => (await world.sandboxes()).length >= 2);
  await first.kill();
  await goes.remove({ force: true });
  await using second = await world.sidecar();
  await world.released(stays);
  await world.gone(goes);
  await second.line("sidecar.ready");
  expect(await world.sandboxes(stays)).toHaveLength(2);
  await stays.remove({ force: true });
  await world.gone();
});

test("SIGTERM finishes the teardowns that are due, keeps those of living agents and exits 0", async () => {
  const sidecar = await world.sidecar({ ROBOCO_TEARDOWN_GRACE_SECONDS: "3600" });
  await sidecar.line("sidecar.ready");
  const [lives, dies] = await Promise.all([world.running(), world.running()]);
  await Promise.all([lives, dies].map((agent) => world.released(agent)));
  await dies.kill();
  await until("the agent is dead", async () => (await world.status(dies)) === "exited");
  expect(await sidecar.stop()).toBe(0);
  expect(await world.sandboxes(dies)).toEqual([]);
  expect(await world.sandboxes(lives)).toHaveLength(1);
  expect(sidecar.lines.at(-1)).toMatchObject({ event: "sidecar.stopped" });
  await using second = await world.sidecar();
  await second.line("sidecar.ready");
  await lives.remove({ force: true });
  await world.gone();
});

test("an agent that never starts keeps its sandbox for the grace, and gets another when it does start", async () => {
  await using sidecar = await world.sidecar({
    ROBOCO_JANITOR_GRACE_SECONDS: "3",
    ROBOCO_JANITOR_INTERVAL_SECONDS: "1",
  });
  await sidecar.line("sidecar.ready");
  const agent = await world.agent();
  await sidecar.line("agent.released", ({ container }) => container === agent.id);
  await world.gone(agent);
  expect(await world.file(agent, "sandbox.env")).toBe("");
  await sidecar.line("resync.completed", ({ tick }) => tick === true);
  expect(await world.sandboxes(agent)).toEqual([]);
  await agent.start();
  await world.released(agent);
  await agent.remove({ force: true });
  await world.gone();
});

test("a sandbox that names no owner container is left alone for the grace, then removed", async () => {
  await using sidecar = await world.sidecar({
    ROBOCO_JANITOR_GRACE_SECONDS: "3",
    ROBOCO_JANITOR_INTERVAL_SECONDS: "1",
  });
  await sidecar.line("sidecar.ready");
  const ahead = await world.running({
    services: "",
    labels: { [labels.sandbox]: "1", [labels.installation]: world.installation },
  });
  await sidecar.line("resync.completed", ({ tick }) => tick === true);
  expect(await world.status(ahead)).toBe("running");
  await until("it is gone", async () => (await world.status(ahead)) === "gone");
});

test("two of one installation: the second refuses to start and says what to set", async () => {
  await using first = await world.sidecar();
  await first.line("sidecar.ready");
  const second = await world.sidecar();
  expect(await second.exit).toBe(73);
  expect(second.output()).toMatch(/ROBOCO_INSTALLATION/);
});

test("sweep removes orphans once and exits, beside a sidecar or without one", async () => {
  const first = await world.sidecar();
  await first.line("sidecar.ready");
  const [lives, vanishes] = await Promise.all([world.running(), world.running()]);
  await Promise.all([lives, vanishes].map((agent) => world.released(agent)));
  await first.kill();
  await vanishes.remove({ force: true });
  const sweeper = await world.sidecar({}, ["sweep"]);
  expect(await sweeper.exit).toBe(0);
  expect(await world.sandboxes(vanishes)).toEqual([]);
  expect(await world.sandboxes(lives)).toHaveLength(1);
  await lives.remove({ force: true });
  const again = await world.sidecar({}, ["sweep"]);
  expect(await again.exit).toBe(0);
  expect(await world.sandboxes()).toEqual([]);
});

test("disabled, it watches and changes nothing", async () => {
  await using sidecar = await world.sidecar({ ROBOCO_SANDBOX_DB_ENABLED: "false" });
  await sidecar.line("sidecar.ready");
  const agent = await world.running({ services: "redis,nonsense" });
  await sidecar.line("watch.changed", ({ container }) => container === agent.id);
  expect(await world.status(agent)).toBe("running");
  expect(await world.files(agent)).toEqual({});
  expect(await world.sandboxes()).toEqual([]);
  await agent.remove({ force: true });
});

test("strangers and other installations' agents are never written to", async () => {
  const other = await World.create();
  await using _other = other;
  const stranger = await world.running({ services: "", labels: { unrelated: "yes" } });
  const theirs = await other.running({ services: "redis" });
  const events = await world.recordEvents({ container: [stranger.id, theirs.id] });
  const actions = () => events.lines.map((line): string => JSON.parse(line).Action);
  await using sidecar = await world.sidecar({ ROBOCO_JANITOR_INTERVAL_SECONDS: "1" });
  await sidecar.line("resync.completed", ({ tick }) => tick === true);
  const mine = await world.running();
  await world.released(mine);
  await mine.remove({ force: true });
  await world.gone();
  await stranger.exec({ Cmd: ["true"] }); // the stream is known to be alive by this one
  await until("the marker arrives", () => actions().some((action) => action.startsWith("exec_create")));
  expect(actions().filter((action) => !action.startsWith("exec_create"))).toEqual([]);
  events.stop();
});

test("no secret is in an event, a log line, a label, a command line or a health check", async () => {
  const recorded = await world.recordEvents();
  const sidecar = await world.sidecar({ ROBOCO_LOG_LEVEL: "trace" });
  await sidecar.line("sidecar.ready");
  const agent = await world.running({ services: world.images.mongo ? "postgres,redis,mongo" : "postgres,redis" });
  const environment = await world.released(agent);
  const secrets = Object.entries(environment).flatMap(([name, value]) => (name.endsWith("_PASSWORD") ? [value] : []));
  expect(secrets.length).toBeGreaterThanOrEqual(2);
  const seen: string[] = [];
  for (const { Id } of await world.sandboxes(agent)) {
    const { Config, Args, Path } = await world.docker.getContainer(Id).inspect();
    const top = await world.docker.getContainer(Id).top({ ps_args: "-eo pid,args" });
    seen.push(JSON.stringify([Config.Labels, Config.Cmd, Config.Entrypoint, Config.Healthcheck, Args, Path, top]));
  }
  await agent.stop({ t: 0 });
  await world.gone();
  await agent.remove({ force: true });
  const marker = randomBytes(4).toString("hex");
  const last = await world.running({ services: "", labels: { marker } });
  await until("the marker arrives", () => recorded.lines.some((text) => text.includes(marker)));
  await sidecar.stop();
  const everything = [...recorded.lines, ...seen, sidecar.output()].join("\n");
  expect(everything).toContain(agent.id);
  for (const secret of secrets) expect(everything).not.toContain(secret);
  await last.remove({ force: true });
  recorded.stop();
});
