import { describe, expect, it } from "vitest";
import { packFiles } from "../../src/docker/archive.ts";
import { createDocker, readEngineTime } from "../../src/docker/engine.ts";
import { EngineFaultError, EngineRejectedError } from "../../src/errors.ts";
import type { ContainerSpecification } from "../../src/reconcile/ports.ts";
import { type Answer, createFakeEngine, inspection, json, status } from "../support/fake-engine.ts";

const setUp = async (...routes: readonly [method: string, path: string, answer: Answer][]) => {
  const engine = await createFakeEngine();
  for (const route of routes) engine.on(...route);
  return { engine, port: createDocker(engine.docker), [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() };
};

const inState = (Status: string): Answer => json(200, inspection({ State: { ...inspection().State, Status } }));
const inspect = "/containers/x/json";

const specification: ContainerSpecification = {
  name: "roboco-sandbox-redis-ada",
  image: "redis:8-alpine",
  environment: { REDIS_PASSWORD: "p=q" },
  command: ["sh", "-c", "x"],
  labels: { "roboco.sandbox": "1" },
  network: "shop",
  tmpfs: ["/data"],
  tmpfsBytes: 100,
  memoryBytes: 512,
  cpus: 0.5,
};

describe("inspectContainer", () => {
  it("reads what a decision rests on", async () => {
    await using world = await setUp(["GET", inspect, json(200, inspection())]);
    await expect(world.port.inspectContainer("x")).resolves.toEqual({
      id: "a".repeat(64),
      name: "ada",
      status: "running",
      createdAt: Date.parse("2026-01-01T00:00:00Z"), // whole seconds, as a listing has them
      labels: { "roboco.sandbox.services": "redis" },
      startedAt: Date.parse("2026-01-01T00:00:01Z"),
      finishedAt: undefined,
      exitCode: 0,
      oomKilled: false,
      environment: { PATH: "/bin", URL: "a=b", EMPTY: "" },
      networkMode: "shop",
      networks: { shop: "10.0.0.2", later: "" },
      mounts: [],
      readonlyRootfs: false,
      command: ["sh", "-c", "x"],
    });
  });

  it("reads volumes, binds and every way to ask for a tmpfs", async () => {
    const answer = inspection({
      HostConfig: {
        NetworkMode: "shop",
        ReadonlyRootfs: true,
        Tmpfs: { "/run": "rw" },
        Mounts: [
          { Type: "tmpfs", Target: "/tmp" },
          { Type: "volume", Target: "/v" },
        ],
      },
      Mounts: [
        { Type: "volume", Destination: "/v", RW: true },
        { Type: "bind", Destination: "/b", RW: false },
        { Type: "npipe", Destination: "/n", RW: true },
      ],
    });
    await using world = await setUp(["GET", inspect, json(200, answer)]);
    await expect(world.port.inspectContainer("x")).resolves.toMatchObject({
      readonlyRootfs: true,
      mounts: [
        { destination: "/v", kind: "volume", writable: true },
        { destination: "/b", kind: "bind", writable: false },
        { destination: "/n", kind: "other", writable: true },
        { destination: "/run", kind: "tmpfs", writable: true },
        { destination: "/tmp", kind: "tmpfs", writable: true },
      ],
    });
  });

  it("reads an answer that lacks what an Engine may leave out", async () => {
    const answer = inspection({
      Config: { Env: null, Labels: null },
      NetworkSettings: {},
      HostConfig: {},
      Mounts: null,
    });
    await using world = await setUp(["GET", inspect, json(200, answer)]);
    await expect(world.port.inspectContainer("x")).resolves.toMatchObject({
      environment: {},
      labels: {},
      networks: {},
      networkMode: "",
      mounts: [],
    });
  });

  it("says that there is no such container, and tells an Engine that fails from that", async () => {
    await using world = await setUp(["GET", inspect, status(404)]);
    await expect(world.port.inspectContainer("x")).resolves.toBeUndefined();
    world.engine.on("GET", inspect, status(500));
    await expect(world.port.inspectContainer("x")).rejects.toBeInstanceOf(EngineFaultError);
  });
});

describe("listContainers", () => {
  it("asks for containers in every state by all the labels", async () => {
    await using world = await setUp([
      "GET",
      "/containers/json",
      json(200, [{ Id: "x", Names: ["/ada"], State: "exited", Created: 1_700_000_000, Labels: null }]),
    ]);
    await expect(world.port.listContainers(["a=1", "b"])).resolves.toEqual([
      {
        id: "x",
        name: "ada",
        status: "exited",
        createdAt: 1_700_000_000_000,
        labels: {},
        networkMode: "",
        networks: {},
      },
    ]);
    const query = world.engine.calls[0]?.query;
    expect(query?.get("all")).toBe("true");
    expect(JSON.parse(query?.get("filters") ?? "")).toEqual({ label: ["a=1", "b"] });
  });

  it("rejects when the Engine fails: nothing is decided on an empty list", async () => {
    await using world = await setUp(["GET", "/containers/json", status(500)]);
    await expect(world.port.listContainers([])).rejects.toBeInstanceOf(EngineFaultError);
  });
});

describe("createContainer", () => {
  it("asks for no swap, no restart, no port, and only tmpfs for data", async () => {
    await using world = await setUp(["POST", "/containers/create", json(201, { Id: "new" })]);
    await expect(world.port.createContainer(specification)).resolves.toBe("new");
    const [call] = world.engine.calls;
    // Nothing else: a URL, and a password in it, is what proxies and a debugging Engine log.
    expect([...(call?.query ?? [])]).toEqual([["name", "roboco-sandbox-redis-ada"]]);
    const body: unknown = JSON.parse(call?.body.toString() ?? "");
    expect(body).toMatchObject({
      Image: "redis:8-alpine",
      Cmd: ["sh", "-c", "x"],
      Env: ["REDIS_PASSWORD=p=q"],
      Labels: { "roboco.sandbox": "1" },
      HostConfig: {
        NetworkMode: "shop",
        RestartPolicy: { Name: "no" },
        Memory: 512,
        MemorySwap: 512,
        NanoCpus: 500_000_000,
        Tmpfs: { "/data": "rw,nosuid,nodev,noexec,size=100" },
      },
    });
    expect(body).not.toHaveProperty("HostConfig.PortBindings");
    expect(body).not.toHaveProperty("HostConfig.Binds");
  });

  it("leaves the image's own command where none is given", async () => {
    await using world = await setUp(["POST", "/containers/create", json(201, { Id: "new" })]);
    await world.port.createContainer({ ...specification, command: undefined });
    expect(JSON.parse(world.engine.calls[0]?.body.toString() ?? "")).not.toHaveProperty("Cmd");
  });

  it.each([
    [404, "no-image"],
    [409, "conflict"],
  ])("reads %d as %j", async (code, answer) => {
    await using world = await setUp(["POST", "/containers/create", status(code)]);
    await expect(world.port.createContainer(specification)).resolves.toBe(answer);
  });

  it("rejects with the Engine's words for anything else", async () => {
    await using world = await setUp(["POST", "/containers/create", status(400, "bad memory limit")]);
    await expect(world.port.createContainer(specification)).rejects.toThrow("bad memory limit");
  });
});

describe("startContainer", () => {
  it.each([
    [204, "started"],
    [304, "started"],
  ])("reads %d as %j", async (code, answer) => {
    await using world = await setUp(["POST", "/containers/x/start", status(code)]);
    await expect(world.port.startContainer("x")).resolves.toBe(answer);
  });

  it("tells a container that is gone from a network that is gone, which are both 404", async () => {
    await using world = await setUp(
      ["POST", "/containers/x/start", status(404, "network shop not found")],
      ["GET", inspect, status(404)],
    );
    await expect(world.port.startContainer("x")).resolves.toBe("gone");
    world.engine.on("GET", inspect, inState("created"));
    await expect(world.port.startContainer("x")).rejects.toThrow("network shop not found");
  });

  it("rejects when the Engine fails", async () => {
    await using world = await setUp(["POST", "/containers/x/start", status(500, "oci runtime error")]);
    await expect(world.port.startContainer("x")).rejects.toThrow("oci runtime error");
  });
});

describe("pauseContainer and unpauseContainer", () => {
  it.each<[number, string, string]>([
    [204, "running", "paused"],
    [409, "paused", "paused"],
    [409, "exited", "not-running"],
    [409, "running", "not-running"],
    [500, "exited", "not-running"],
  ])("after %d of a container that is %s then: %s", async (code, state, answer) => {
    await using world = await setUp(["POST", "/containers/x/pause", status(code)], ["GET", inspect, inState(state)]);
    await expect(world.port.pauseContainer("x")).resolves.toBe(answer);
  });

  it("says not-running of a container that is gone", async () => {
    await using world = await setUp(["POST", "/containers/x/pause", status(404)], ["GET", inspect, status(404)]);
    await expect(world.port.pauseContainer("x")).resolves.toBe("not-running");
  });

  it("rejects when an Engine cannot pause what runs", async () => {
    await using world = await setUp(
      ["POST", "/containers/x/pause", status(500, "no freezer")],
      ["GET", inspect, inState("running")],
    );
    await expect(world.port.pauseContainer("x")).rejects.toThrow("no freezer");
  });

  it("reads an unpause of what is not paused as already so, and rejects when it stays paused", async () => {
    await using world = await setUp(["POST", "/containers/x/unpause", status(204)]);
    await expect(world.port.unpauseContainer("x")).resolves.toBe("unpaused");
    world.engine.on("POST", "/containers/x/unpause", status(500, "stuck"));
    world.engine.on("GET", inspect, inState("running"));
    await expect(world.port.unpauseContainer("x")).resolves.toBe("not-paused");
    world.engine.on("GET", inspect, inState("paused"));
    await expect(world.port.unpauseContainer("x")).rejects.toThrow("stuck");
  });
});

describe("killContainer", () => {
  it.each([204, 404, 409])("takes %d for done", async (code) => {
    await using world = await setUp(["POST", "/containers/x/kill", status(code)]);
    await expect(world.port.killContainer("x")).resolves.toBeUndefined();
  });

  it("rejects when the Engine fails", async () => {
    await using world = await setUp(["POST", "/containers/x/kill", status(500)]);
    await expect(world.port.killContainer("x")).rejects.toBeInstanceOf(EngineFaultError);
  });
});

describe("removeContainer", () => {
  it("removes by force and with the anonymous volumes", async () => {
    await using world = await setUp(["DELETE", "/containers/x", status(204)]);
    await world.port.removeContainer("x");
    expect(world.engine.calls[0]?.query.get("force")).toBe("true");
    expect(world.engine.calls[0]?.query.get("v")).toBe("true");
  });

  it("takes a container that is gone for removed", async () => {
    await using world = await setUp(["DELETE", "/containers/x", status(404)]);
    await expect(world.port.removeContainer("x")).resolves.toBeUndefined();
  });

  it("waits out a removal that somebody else began", async () => {
    let looks = 0;
    await using world = await setUp(
      ["DELETE", "/containers/x", status(409, "removal of container x is already in progress")],
      [
        "GET",
        inspect,
        (...args) => {
          looks += 1;
          return (looks < 3 ? inState("removing") : status(404))(...args);
        },
      ],
    );
    await world.port.removeContainer("x");
    expect(looks).toBe(3);
  });

  it("rejects when the Engine fails", async () => {
    await using world = await setUp(["DELETE", "/containers/x", status(500)]);
    await expect(world.port.removeContainer("x")).rejects.toBeInstanceOf(EngineFaultError);
  });
});

describe("files in a container", () => {
  it("are read by name", async () => {
    const archive = await packFiles("roboco", { "sandbox.env": "A=é\n", ".phase": "armed x\n" });
    await using world = await setUp([
      "GET",
      "/containers/x/archive",
      (response) => response.writeHead(200).end(archive),
    ]);
    await expect(world.port.readFiles("x", "/run/roboco")).resolves.toEqual({
      "sandbox.env": "A=é\n",
      ".phase": "armed x\n",
    });
    expect(world.engine.calls[0]?.query.get("path")).toBe("/run/roboco");
  });

  it("are not there where there is no such directory or container", async () => {
    await using world = await setUp(["GET", "/containers/x/archive", status(404)]);
    await expect(world.port.readFiles("x", "/run/roboco")).resolves.toBeUndefined();
  });

  it.each(["lstat /run/roboco: not a directory", "lstat /run/roboco: too many levels of symbolic links"])(
    "are not there where the path leads nowhere: %s",
    async (message) => {
      await using world = await setUp(["GET", "/containers/x/archive", status(500, message)]);
      await expect(world.port.readFiles("x", "/run/roboco")).resolves.toBeUndefined();
    },
  );

  it("are not taken for absent when the Engine fails", async () => {
    await using world = await setUp(["GET", "/containers/x/archive", status(500, "input/output error")]);
    await expect(world.port.readFiles("x", "/run/roboco")).rejects.toBeInstanceOf(EngineFaultError);
  });

  it("are written below the mount that holds them", async () => {
    await using world = await setUp(["PUT", "/containers/x/archive", status(200)]);
    await expect(world.port.writeFiles("x", { root: "/run", prefix: "roboco" }, { "a.env": "A=1\n" })).resolves.toBe(
      "written",
    );
    const [call] = world.engine.calls;
    expect(call?.query.get("path")).toBe("/run");
    expect(call?.body).toEqual(await packFiles("roboco", { "a.env": "A=1\n" }));
  });

  it("that cannot be written tell a container that is gone from one that refuses", async () => {
    await using world = await setUp(
      ["PUT", "/containers/x/archive", status(403, "read-only")],
      ["GET", inspect, status(404)],
    );
    await expect(world.port.writeFiles("x", { root: "/", prefix: "run/roboco" }, {})).resolves.toBe("gone");
    world.engine.on("GET", inspect, inState("created"));
    await expect(world.port.writeFiles("x", { root: "/", prefix: "run/roboco" }, {})).rejects.toBeInstanceOf(
      EngineRejectedError,
    );
  });
});

describe("readLogTail", () => {
  const frame = (stream: number, text: string): Buffer => {
    const body = Buffer.from(text);
    const head = Buffer.alloc(8);
    head[0] = stream;
    head.writeUInt32BE(body.length, 4);
    return Buffer.concat([head, body]);
  };

  it("reads the lines of both streams out of their frames, also where a frame ends within a character", async () => {
    const [first, second] = [Buffer.from("é").subarray(0, 1), Buffer.from("é").subarray(1)];
    const raw = Buffer.concat([
      frame(1, "starting\n\n  loading  \n"),
      frame(2, "FATAL: no"),
      frame(2, " room\n"),
      Buffer.concat([Buffer.from([1, 0, 0, 0, 0, 0, 0, 1]), first]),
      Buffer.concat([Buffer.from([1, 0, 0, 0, 0, 0, 0, 1]), second]),
    ]);
    await using world = await setUp(["GET", "/containers/x/logs", (response) => response.writeHead(200).end(raw)]);
    await expect(world.port.readLogTail("x")).resolves.toEqual(["starting", "loading", "FATAL: no room", "é"]);
    expect(world.engine.calls[0]?.query.get("tail")).toBe("20");
  });

  it.each([
    ["half a head", Buffer.from([1, 0, 0])],
    ["half a body", frame(1, "cut here").subarray(0, 11)],
    ["nothing", Buffer.alloc(0)],
  ])("bears %s at the end", async (_title, rest) => {
    await using world = await setUp([
      "GET",
      "/containers/x/logs",
      (response) => response.writeHead(200).end(Buffer.concat([frame(1, "whole\n"), rest])),
    ]);
    const lines = await world.port.readLogTail("x");
    expect(lines[0]).toBe("whole");
  });

  it("is empty for a container that is gone", async () => {
    await using world = await setUp(["GET", "/containers/x/logs", status(404)]);
    await expect(world.port.readLogTail("x")).resolves.toEqual([]);
  });
});

describe("images", () => {
  it("tell the volumes that they declare", async () => {
    await using world = await setUp([
      "GET",
      "/images/mongo:8/json",
      json(200, { Config: { Volumes: { "/data/db": {}, "/x": {} } } }),
    ]);
    await expect(world.port.inspectImage("mongo:8")).resolves.toEqual({ volumes: ["/data/db", "/x"] });
  });

  it.each([{ Config: { Volumes: null } }, { Config: {} }, {}])("may declare none: %j", async (answer) => {
    await using world = await setUp(["GET", "/images/mongo:8/json", json(200, answer)]);
    await expect(world.port.inspectImage("mongo:8")).resolves.toEqual({ volumes: [] });
  });

  it("may be absent", async () => {
    await using world = await setUp(["GET", "/images/mongo:8/json", status(404)]);
    await expect(world.port.inspectImage("mongo:8")).resolves.toBeUndefined();
  });
});

describe("networks", () => {
  it("are not removed while a container in any state refers to them", async () => {
    await using world = await setUp(
      ["GET", "/containers/json", json(200, [{ Id: "x", Names: ["/x"], State: "exited", Created: 1, Labels: {} }])],
      ["DELETE", "/networks/n", status(204)],
    );
    await world.port.removeNetworkIfUnused("n");
    expect(world.engine.callsTo("DELETE", /./)).toEqual([]);
    expect(world.engine.calls[0]?.query.get("all")).toBe("true");
    world.engine.on("GET", "/containers/json", json(200, []));
    await world.port.removeNetworkIfUnused("n");
    expect(world.engine.callsTo("DELETE", /./)).toHaveLength(1);
  });

  it.each([403, 404, 409])("that are gone or in use again (%d) are left", async (code) => {
    await using world = await setUp(
      ["GET", "/containers/json", json(200, [])],
      ["DELETE", "/networks/n", status(code)],
    );
    await expect(world.port.removeNetworkIfUnused("n")).resolves.toBeUndefined();
  });

  it("that somebody else made at the same time are there", async () => {
    await using world = await setUp(["POST", "/networks/create", status(409)]);
    await expect(world.port.createNetwork("n", { a: "1" })).resolves.toBeUndefined();
    expect(JSON.parse(world.engine.calls[0]?.body.toString() ?? "")).toMatchObject({ Name: "n", Labels: { a: "1" } });
  });

  it("are joined by the container that is named", async () => {
    await using world = await setUp(["POST", "/networks/n/connect", status(200)]);
    await world.port.connectNetwork("n", "x");
    expect(JSON.parse(world.engine.calls[0]?.body.toString() ?? "")).toMatchObject({ Container: "x" });
  });
});

describe("readEngineTime", () => {
  it("reads the Engine's own clock", async () => {
    await using world = await setUp(["GET", "/info", json(200, { SystemTime: "2026-01-01T00:00:00.123456789+01:00" })]);
    await expect(readEngineTime(world.engine.docker)).resolves.toBe(Date.parse("2025-12-31T23:00:00.123Z"));
  });
});
