import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { type Command, linesOf, runCommand, startCommand } from "../support/command.ts";
import { createFakeEngine, type FakeEngine, json } from "../support/fake-engine.ts";

const { version }: { version: string } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
);
const noEngine = { DOCKER_HOST: "unix:///nonexistent/docker.sock", ROBOCO_HTTP_LISTEN: "127.0.0.1:0" };

vi.setConfig({ testTimeout: 60_000 });

describe("roboco-sidecar", () => {
  it.each([["--help"], ["-h"], ["sweep", "--help"]])(
    "prints its commands without an engine: %s %s",
    async (...args) => {
      const { code, stdout, stderr } = await runCommand(args, noEngine);
      expect([code, stderr]).toEqual([0, ""]);
      for (const command of ["run", "healthcheck", "sweep", "manifest ROLE"]) expect(stdout).toContain(command);
    },
  );

  it("prints its version without an engine", async () => {
    await expect(runCommand(["--version"], noEngine)).resolves.toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  it.each([
    [["dance"], 'no command "dance"'],
    [["toString"], 'no command "toString"'],
    [["--wat"], "--wat"],
    [["run", "extra"], 'Unexpected argument "extra"'],
    [["manifest"], "An argument is missing"],
    [["manifest", "develper"], 'did you mean "developer"?'],
  ])("exits 64 for a wrong command line and says what is wrong: %j", async (args, text) => {
    const { code, stderr } = await runCommand(args, noEngine);
    expect(code).toBe(64);
    expect(stderr).toContain(text);
  });

  it("exits 78 for a wrong configuration and names every problem at once, for people and for log readers", async () => {
    const { code, stdout, stderr } = await runCommand(["run"], {
      ROBOCO_SANDBOX_MEMORY: "plenty",
      ROBOCO_SANDBOX_MAX: "-1",
      ROBOCO_LOG_LEVEL: "loud",
    });
    expect(code).toBe(78);
    for (const name of ["ROBOCO_SANDBOX_MEMORY=plenty", "ROBOCO_SANDBOX_MAX=-1", "ROBOCO_LOG_LEVEL=loud"]) {
      expect(stderr).toContain(name);
    }
    expect(linesOf(stdout)).toEqual([
      expect.objectContaining({
        level: "fatal",
        event: "sidecar.failed",
        service: "roboco-sidecar",
        version,
        code: "CONFIG_INVALID",
        err: expect.objectContaining({ message: expect.stringContaining("ROBOCO_SANDBOX_MEMORY=plenty") }),
      }),
    ]);
  });

  it.each([[], ["run"], ["sweep"]])(
    "exits 69 where there is no Engine, and says where it looked: %s",
    async (...args) => {
      const { code, stderr } = await runCommand(args, noEngine);
      expect(code).toBe(69);
      expect(stderr).toContain("/nonexistent/docker.sock");
      expect(stderr).toContain("DOCKER_HOST");
    },
  );

  it("exits 76 where something else answers", async () => {
    await using other = await createFakeEngine();
    const { code, stderr } = await runCommand(["run"], { ...noEngine, DOCKER_HOST: `unix://${other.socketPath}` });
    expect(code).toBe(76);
    expect(stderr).toContain("no Docker Engine");
  });

  it("prints the manifest of a role without an engine", async () => {
    const { code, stdout } = await runCommand(["manifest", "developer"], noEngine);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ schema: 1, role: "developer" });
  });

  it("is unhealthy where no sidecar runs", async () => {
    const { code, stdout } = await runCommand(["healthcheck"], { ROBOCO_HTTP_LISTEN: "127.0.0.1:1" });
    expect(code).toBe(1);
    expect(stdout).toContain("127.0.0.1:1");
  });
});

/** An Engine without a container. */
const createIdleEngine = async (): Promise<FakeEngine> => {
  const engine = await createFakeEngine();
  engine.on("GET", "/version", json(200, { Version: "28.5", ApiVersion: "1.51", MinAPIVersion: "1.24" }));
  engine.on("GET", "/info", (...args) =>
    json(200, { ID: `cli-${process.pid}-${engine.socketPath}`, SystemTime: new Date().toISOString() })(...args),
  );
  engine.on("GET", "/containers/json", json(200, []));
  engine.on("GET", "/events", (response) => response.writeHead(200).flushHeaders());
  return engine;
};

const ready = (engine: FakeEngine): Promise<void> =>
  vi.waitFor(() => expect(engine.callsTo("GET", /^\/events$/)).toHaveLength(1), { timeout: 30_000, interval: 20 });

const stopped = async (command: Command, signal: NodeJS.Signals) => {
  command.kill(signal);
  return await command.ended;
};

describe("a running sidecar", () => {
  it.each<NodeJS.Signals>(["SIGTERM", "SIGINT"])("exits 0 on %s, and says so in whole JSON lines", async (signal) => {
    await using engine = await createIdleEngine();
    const command = startCommand([], { ...noEngine, DOCKER_HOST: `unix://${engine.socketPath}` });
    await ready(engine);
    const { code, stdout, stderr } = await stopped(command, signal);
    expect([code, stderr]).toEqual([0, ""]);
    const lines = linesOf(stdout);
    for (const line of lines) {
      expect(line).toMatchObject({
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        level: expect.stringMatching(/^[a-z]+$/),
        service: "roboco-sidecar",
        version,
        event: expect.stringMatching(/^[a-z]+\.[a-z]+$/),
        msg: expect.any(String),
      });
    }
    const events = lines.map(({ event }) => event);
    expect(events[0]).toBe("sidecar.started");
    expect(events.slice(-2)).toEqual(["sidecar.stopping", "sidecar.stopped"]);
  });

  it("ends on SIGTERM though its Engine has stopped to answer, and says that it left something undone", async () => {
    await using engine = await createIdleEngine();
    engine.on("GET", "/containers/json", (...args) => {
      if (engine.callsTo("GET", /^\/events$/).length === 0) json(200, [])(...args);
    });
    const sharedDir = mkdtempSync(join(tmpdir(), "roboco-shared-"));
    const command = startCommand([], {
      ...noEngine,
      DOCKER_HOST: `unix://${engine.socketPath}`,
      ROBOCO_SANDBOX_DB_ENABLED: "true",
      ROBOCO_SHARED_DIR: sharedDir,
    });
    await ready(engine);
    const { code, stdout } = await stopped(command, "SIGTERM");
    expect(code).toBe(0);
    expect(linesOf(stdout).at(-1)).toMatchObject({ event: "sidecar.stopped", unfinished: true });
    rmSync(sharedDir, { recursive: true });
  }, 60_000);

  it("makes no call that changes anything while it is switched off", async () => {
    await using engine = await createIdleEngine();
    const command = startCommand([], { ...noEngine, DOCKER_HOST: `unix://${engine.socketPath}` });
    await ready(engine);
    await stopped(command, "SIGTERM");
    expect(engine.calls.filter(({ method }) => method !== "GET")).toEqual([]);
  });

  it("lets no second of its installation run on the same Engine: it exits 73 and says what to set", async () => {
    await using engine = await createIdleEngine();
    const environment = { ...noEngine, DOCKER_HOST: `unix://${engine.socketPath}` };
    const first = startCommand([], environment);
    await ready(engine);
    const second = await runCommand([], environment);
    expect(second.code).toBe(73);
    expect(second.stderr).toContain("ROBOCO_INSTALLATION");
    expect((await stopped(first, "SIGTERM")).code).toBe(0);
  });
});
