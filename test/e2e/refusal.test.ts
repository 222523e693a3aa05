import type Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Sidecar } from "./support/sidecar.ts";
import { until } from "./support/until.ts";
import { type AgentOptions, World } from "./support/world.ts";

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

/** Started, it must end by our hand, told why, with nothing left of what was made for it. */
const expectRefusal = async (agent: Docker.Container, error: string, by: Sidecar = sidecar) => {
  await world.ended(agent);
  const line = await by.line("agent.refused", ({ container }) => container === agent.id);
  expect(line).toMatchObject({ level: "error", error });
  await world.gone(agent);
  return line as typeof line & { reason: string; remediate: string; missing: string[] };
};

describe("an agent is refused, told why and what to do, and does not run", () => {
  test.each<[string, AgentOptions, string, RegExp]>([
    ["an unknown engine", { services: "postgress" }, "OPT_IN_INVALID", /"postgress".*did you mean "postgres"/],
    [
      "a misspelt label",
      { labels: { "roboco.sandbox.servicse": "redis" } },
      "OPT_IN_INVALID",
      /did you mean "roboco.sandbox.services"/,
    ],
    ["an unknown role", { labels: { "roboco.agent.role": "develper" } }, "OPT_IN_INVALID", /did you mean "developer"/],
    ["a bad agent id", { labels: { "roboco.agent.id": "Not_An_Id" } }, "OPT_IN_INVALID", /"Not_An_Id" is no agent id/],
    [
      "an environment that already has credentials",
      { environment: ["ROBOCO_TEST_DB_HOST=production"] },
      "ENVIRONMENT_CONFLICT",
      /already sets ROBOCO_TEST_DB_HOST/,
    ],
    ["the host's network", { host: { NetworkMode: "host" } }, "NETWORK_UNSUPPORTED", /host's network/],
    ["no network", { host: { NetworkMode: "none" } }, "NETWORK_UNSUPPORTED", /no network/],
    ["a read-only root file system", { host: { ReadonlyRootfs: true } }, "RUN_DIRECTORY_UNUSABLE", /read-only/],
    ["a tmpfs over the run directory", { host: { Tmpfs: { "/run": "" } } }, "RUN_DIRECTORY_UNUSABLE", /tmpfs at \/run/],
  ])("for %s", async (_title, options, error, reason) => {
    const agent = await world.running(options);
    const line = await expectRefusal(agent, error);
    expect(line.reason).toMatch(reason);
    expect(line.remediate).not.toBe("");
  });

  test("for every problem of its labels at once", async () => {
    const agent = await world.agent({
      services: "mysql,redis",
      labels: { "roboco.sandbox.hold": "stop", "roboco.agent.rolle": "qa" },
    });
    const { message, missing } = await world.refused(agent);
    expect(message).toMatch(/"mysql".*"stop".*/);
    expect(missing.sort()).toEqual(["roboco.agent.rolle", "roboco.sandbox.hold", "roboco.sandbox.services"]);
  });

  test("for another container's network", async () => {
    const other = await world.running({ services: "", labels: {} });
    const agent = await world.running({ host: { NetworkMode: `container:${other.id}` } });
    await expectRefusal(agent, "NETWORK_UNSUPPORTED");
  });

  test("for a writable /roboco when it has a role", async () => {
    const agent = await world.running({
      labels: { "roboco.agent.role": "developer" },
      host: { Binds: [`${sidecar.sharedDir}:/roboco`] },
    });
    await expectRefusal(agent, "SHARED_MOUNT_WRITABLE");
  });

  test("for a name that a foreign container holds, which is left alone", async () => {
    const foreign = await world.running({ services: "", name: `roboco-sandbox-redis-taken-${world.id}` });
    const agent = await world.running({ labels: { "roboco.agent.id": `taken-${world.id}` } });
    const line = await expectRefusal(agent, "NAME_TAKEN");
    expect(line.reason).toContain(foreign.id.slice(0, 12));
    expect(await world.status(foreign)).toBe("running");
  });

  test("for an agent id that a running agent has, which keeps its sandbox", async () => {
    const id = { "roboco.agent.id": `twice-${world.id}` };
    const first = await world.running({ labels: id });
    await world.released(first);
    const second = await world.running({ labels: id });
    const line = await expectRefusal(second, "AGENT_ID_TAKEN");
    expect(line.reason).toContain((await first.inspect()).Name.slice(1));
    expect(await world.status(first)).toBe("running");
    expect(await world.sandboxes(first)).toHaveLength(1);
    await first.remove({ force: true });
  });
});

test("refused before it starts, an agent is killed as soon as it does, and its launcher says why", async () => {
  const agent = await world.agent({
    services: "postgras",
    command: ["/roboco/bin/enter", "sh", "-c", "echo must not run"],
    host: { Binds: [`${sidecar.sharedDir}:/roboco:ro`] },
  });
  await world.refused(agent);
  await agent.start();
  await world.ended(agent);
  const log = (await agent.logs({ stdout: true, stderr: true, follow: false })).toString();
  expect(log).not.toContain("must not run");
  const { ExitCode } = (await agent.inspect()).State;
  expect([69, 137]).toContain(ExitCode);
  if (ExitCode === 69) expect(log).toMatch(/did you mean "postgres"/);
});

test("a refused agent gets another chance at its next start, once what was wrong is mended", async () => {
  await using other = await World.create();
  await using own = await other.sidecar({ ROBOCO_SANDBOX_REDIS_IMAGE: `roboco-test/late:${other.id}` });
  await own.line("sidecar.ready");
  const agent = await other.running();
  const { error } = await other.refused(agent);
  expect(error).toBe("IMAGE_UNAVAILABLE");
  await other.ended(agent);
  await until("the sidecar expects a next start", async () => (await other.file(agent, ".phase")).startsWith("armed"));
  // Told for as long as it does not run.
  expect((await other.refused(agent)).error).toBe("IMAGE_UNAVAILABLE");
  await world.docker.getImage(world.images.redis).tag({ repo: "roboco-test/late", tag: other.id });
  await agent.start();
  await other.released(agent);
  expect(await other.file(agent, "refused.json")).toBe("");
  await world.docker.getImage(`roboco-test/late:${other.id}`).remove();
});

describe("with images of another kind", () => {
  const withImage = async (script: string, run: (by: Sidecar, there: World) => Promise<void>) => {
    await using other = await World.create();
    const image = await other.imageWith(world.images.redis, "odd", "/usr/local/bin/docker-entrypoint.sh", script);
    try {
      await using own = await other.sidecar({ ROBOCO_SANDBOX_REDIS_IMAGE: image });
      await own.line("sidecar.ready");
      await run(own, other);
    } finally {
      await other[Symbol.asyncDispose]();
      await other.docker.getImage(image).remove({ force: true });
    }
  };

  test("a server that exits at once is told with its last log lines, its password taken out", async () => {
    await withImage("#!/bin/sh\necho about to fail; env; exit 3\n", async (by, there) => {
      const agent = await there.running();
      await there.ended(agent);
      const { message, error, missing } = await there.refused(agent);
      expect(error).toBe("SANDBOX_EXITED");
      expect(missing).toEqual(["redis"]);
      expect(message).toMatch(/exit code 3.*about to fail.*REDIS_PASSWORD=\*\*\*/);
      expect(by.output()).not.toMatch(/[^0-9a-f][0-9a-f]{32}[^0-9a-f]/);
      await there.gone(agent);
    });
  });

  test("a server that never answers is given up at its deadline", async () => {
    await withImage("#!/bin/sh\nexec sleep infinity\n", async (_by, there) => {
      const agent = await there.running();
      await there.ended(agent);
      const { error, message } = await there.refused(agent);
      expect(error).toBe("SANDBOX_NOT_READY");
      expect(message).toMatch(/within 15 s/);
      await there.gone(agent);
    });
  });

  test("too little memory for the server is told as such", async () => {
    await using other = await World.create();
    await using own = await other.sidecar({ ROBOCO_SANDBOX_MEMORY: "8m" });
    await own.line("sidecar.ready");
    const agent = await other.running({ services: "postgres" });
    await other.ended(agent);
    const { error, message, remediate } = await other.refused(agent);
    expect(["SANDBOX_EXITED", "SANDBOX_REJECTED"]).toContain(error);
    expect(`${message} ${remediate}`).toMatch(/memory/i);
    await other.gone(agent);
  });
});

test("one failing engine takes its siblings with it", async () => {
  await using other = await World.create();
  await using own = await other.sidecar({ ROBOCO_SANDBOX_REDIS_IMAGE: "roboco-test/does-not-exist:1" });
  await own.line("sidecar.ready");
  const agent = await other.running({ services: "postgres,redis" });
  const { error, missing } = await other.refused(agent);
  expect({ error, missing }).toEqual({ error: "IMAGE_UNAVAILABLE", missing: ["redis"] });
  await other.ended(agent);
  await other.gone(agent);
});

test("above ROBOCO_SANDBOX_MAX an agent is refused with that reason, and those before it are served", async () => {
  await using other = await World.create();
  await using own = await other.sidecar({ ROBOCO_SANDBOX_MAX: "1" });
  await own.line("sidecar.ready");
  const first = await other.running();
  await other.released(first);
  const second = await other.running();
  await other.ended(second);
  expect(await other.refused(second)).toMatchObject({ error: "SANDBOX_LIMIT_REACHED" });
  expect(await other.sandboxes(first)).toHaveLength(1);
});

test("one bad agent does not disturb another", async () => {
  const [bad, good] = await Promise.all([world.running({ services: "nonsense" }), world.running()]);
  await world.released(good);
  await world.ended(bad);
  expect(await world.status(good)).toBe("running");
  await good.remove({ force: true });
});

test("a read-only agent with a volume of its own at /run/roboco is served", async () => {
  const volume = await world.volume();
  const agent = await world.running({ host: { ReadonlyRootfs: true, Binds: [`${volume}:/run/roboco`] } });
  const environment = await world.released(agent);
  expect(environment.ROBOCO_TEST_REDIS_PORT).toBe("6379");
  expect(await world.exec(agent, ["cat", "/run/roboco/sandbox.env"])).toContain(environment.ROBOCO_TEST_REDIS_PASSWORD);
  await agent.remove({ force: true });
  await world.gone(agent);
});
