import { describe, expect, it, vi } from "vitest";
import { createClock } from "../../src/docker/clock.ts";
import { createReach } from "../../src/docker/reach.ts";
import { claimInstallation } from "../../src/docker/rival.ts";
import { parseContainerId, type Self } from "../../src/docker/self.ts";
import { AlreadyRunningError } from "../../src/errors.ts";
import { createFakeEngine, inspection, json, status } from "../support/fake-engine.ts";

const id = "0123456789abcdef".repeat(4);

describe("parseContainerId", () => {
  it.each([
    [
      "a common Engine",
      `590 580 259:1 /var/lib/docker/containers/${id}/hostname /etc/hostname rw,relatime - ext4 /dev/root rw`,
    ],
    [
      "a rootless Engine",
      `1 2 0:1 /home/me/.local/share/docker/containers/${id}/resolv.conf /etc/resolv.conf rw - ext4 /dev/sda rw`,
    ],
    ["an Engine with a data root of its own", `1 2 0:1 /containers/${id}/hosts /etc/hosts rw - xfs /dev/sdb rw`],
  ])("finds the container's id as %s mounts it", (_title, line) => {
    expect(parseContainerId(`21 1 0:19 / /proc rw - proc proc rw\n${line}\n`)).toBe(id);
  });

  it.each([
    ["a host", "21 1 0:19 / /sys rw - sysfs sysfs rw\n"],
    ["nothing", ""],
    [
      "a host that mounts other containers' directories",
      `1 2 0:1 /var/lib/docker/containers/${id}/mounts/shm /x rw - tmpfs shm rw`,
    ],
    ["a short id", "1 2 0:1 /containers/0123456789ab/hostname /etc/hostname rw"],
  ])("finds none on %s", (_title, text) => {
    expect(parseContainerId(text)).toBeUndefined();
  });
});

const self = (over: Partial<Self> = {}): Self => ({
  id: "me",
  startedAt: "2026-01-01T00:00:00Z",
  onHostNetwork: false,
  networks: [],
  ...over,
});

/** An Engine on which the sidecar's own container joins and leaves networks. */
const createNetworkedEngine = async (own: readonly string[] = ["home"]) => {
  const engine = await createFakeEngine();
  const networks = new Set(own);
  engine.on("GET", "/containers/me/json", (...args) =>
    json(
      200,
      inspection({
        Id: "me",
        NetworkSettings: { Networks: Object.fromEntries([...networks].map((name) => [name, {}])) },
      }),
    )(...args),
  );
  engine.on("POST", /^\/networks\/\w+\/connect$/, (response, call) => {
    networks.add(call.path.split("/")[2] ?? "");
    response.writeHead(200).end();
  });
  engine.on("POST", /^\/networks\/\w+\/disconnect$/, (response, call) => {
    networks.delete(call.path.split("/")[2] ?? "");
    response.writeHead(200).end();
  });
  return { engine, networks, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() };
};

describe("reach", () => {
  it("joins a network while somebody needs it, and leaves it with the last", async () => {
    await using world = await createNetworkedEngine();
    const reach = createReach(world.engine.docker, self());
    const [first, second] = await Promise.all([reach.hold("shop"), reach.hold("shop")]);
    expect([...world.networks]).toEqual(["home", "shop"]);
    expect(world.engine.callsTo("POST", /connect$/)).toHaveLength(1);
    await first[Symbol.asyncDispose]();
    expect([...world.networks]).toEqual(["home", "shop"]);
    await second[Symbol.asyncDispose]();
    expect([...world.networks]).toEqual(["home"]);
  });

  it("can join again after it left", async () => {
    await using world = await createNetworkedEngine();
    const reach = createReach(world.engine.docker, self());
    await (await reach.hold("shop"))[Symbol.asyncDispose]();
    await reach.hold("shop");
    expect([...world.networks]).toEqual(["home", "shop"]);
  });

  it("stays on a network of the sidecar's own", async () => {
    await using world = await createNetworkedEngine();
    const reach = createReach(world.engine.docker, self());
    await (await reach.hold("home"))[Symbol.asyncDispose]();
    expect([...world.networks]).toEqual(["home"]);
    expect(world.engine.callsTo("POST", /./)).toEqual([]);
  });

  it.each<[string, Self | undefined]>([
    ["on the host", undefined],
    ["in a container on the host's network", self({ onHostNetwork: true })],
  ])("joins nothing %s", async (_title, where) => {
    await using world = await createNetworkedEngine();
    const reach = createReach(world.engine.docker, where);
    await (await reach.hold("shop"))[Symbol.asyncDispose]();
    await reach.leaveStale();
    expect(world.engine.calls).toEqual([]);
  });

  it("rejects when it may not join, and tries anew the next time", async () => {
    await using world = await createNetworkedEngine();
    const reach = createReach(world.engine.docker, self());
    world.engine.on("POST", "/networks/gone/connect", status(404, "network gone not found"));
    await expect(reach.hold("gone")).rejects.toThrow("network gone not found");
    world.engine.on("POST", "/networks/gone/connect", status(200));
    await expect(reach.hold("gone")).resolves.toBeDefined();
  });

  it("leaves what a killed predecessor of this container had joined, and no network of the user's", async () => {
    await using world = await createNetworkedEngine(["home", "shop"]);
    const networks = [
      { name: "home", aliases: ["sidecar"] },
      { name: "shop", aliases: ["roboco-sidecar-probe"] },
    ];
    await createReach(world.engine.docker, self({ networks })).leaveStale();
    expect([...world.networks]).toEqual(["home"]);
  });
});

describe("claimInstallation", () => {
  const sidecar = (Id: string, StartedAt: string, installation?: string) => ({
    id: Id,
    answer: json(
      200,
      inspection({
        Id,
        Name: `/${Id}`,
        State: { ...inspection().State, StartedAt, Running: true },
        Config: { Labels: {}, Env: installation === undefined ? [] : [`ROBOCO_INSTALLATION=${installation}`] },
      }),
    ),
  });

  const claimBeside = async (rivals: readonly ReturnType<typeof sidecar>[], me?: Self) => {
    await using engine = await createFakeEngine();
    engine.on(
      "GET",
      "/containers/json",
      json(
        200,
        rivals.map(({ id: Id }) => ({ Id })),
      ),
    );
    for (const rival of rivals) engine.on("GET", `/containers/${rival.id}/json`, rival.answer);
    const engineId = `test-${process.pid}-${Math.random()}`;
    const client = { docker: engine.docker, streams: engine.docker, engineId, version: "", apiVersion: "" };
    await using claim = await claimInstallation(client, me, "default");
    return claim;
  };
  const before = "2025-12-31T00:00:00Z";
  const after = "2026-01-02T00:00:00Z";

  it("is granted when nobody else is there", async () => {
    await expect(claimBeside([])).resolves.toBeDefined();
  });

  it.each<[string, ReturnType<typeof sidecar>, Self | undefined]>([
    ["an elder container serves it", sidecar("elder", before), self()],
    ["an elder container serves it, its setting empty", sidecar("elder", before, ""), self()],
    ["any container serves it and this one runs on the host", sidecar("elder", after, "default"), undefined],
  ])("is refused when %s, by name and with what to set", async (_title, rival, me) => {
    const claiming = claimBeside([rival], me);
    await expect(claiming).rejects.toBeInstanceOf(AlreadyRunningError);
    await expect(claiming).rejects.toMatchObject({
      message: expect.stringContaining("elder"),
      remediate: expect.stringContaining("ROBOCO_INSTALLATION"),
    });
  });

  it.each<[string, ReturnType<typeof sidecar>]>([
    ["another installation's sidecar", sidecar("other", before, "ci")],
    ["a younger sidecar, which is to give way", sidecar("younger", after)],
    ["its own container", sidecar("me", before)],
  ])("is granted beside %s", async (_title, rival) => {
    await expect(claimBeside([rival], self())).resolves.toBeDefined();
  });

  it("is held by one process of a host until it lets go", async () => {
    await using engine = await createFakeEngine();
    engine.on("GET", "/containers/json", json(200, []));
    const client = {
      docker: engine.docker,
      streams: engine.docker,
      engineId: `e-${process.pid}`,
      version: "",
      apiVersion: "",
    };
    const first = await claimInstallation(client, undefined, "default");
    await expect(claimInstallation(client, undefined, "default")).rejects.toBeInstanceOf(AlreadyRunningError);
    const other = await claimInstallation(client, undefined, "other");
    await first[Symbol.asyncDispose]();
    const second = await claimInstallation(client, undefined, "default");
    await Promise.all([second, other].map((claim) => claim[Symbol.asyncDispose]()));
  });
});

describe("the clock", () => {
  it("is the Engine's, and follows it when it is read anew", async () => {
    await using engine = await createFakeEngine();
    const far = Date.parse("2020-01-01T00:00:00Z");
    engine.on("GET", "/info", json(200, { SystemTime: "2020-01-01T00:00:00Z" }));
    const clock = await createClock(engine.docker);
    expect(Math.abs(clock.now() - far)).toBeLessThan(60_000);
    engine.on("GET", "/info", json(200, { SystemTime: "2021-01-01T00:00:00Z" }));
    await clock.synchronise();
    expect(Math.abs(clock.now() - Date.parse("2021-01-01T00:00:00Z"))).toBeLessThan(60_000);
  });

  it("does not jump with the sidecar's own wall clock", async () => {
    await using engine = await createFakeEngine();
    engine.on("GET", "/info", json(200, { SystemTime: "2020-01-01T00:00:00Z" }));
    const clock = await createClock(engine.docker);
    const jump = vi.spyOn(Date, "now").mockReturnValue(0);
    expect(Math.abs(clock.now() - Date.parse("2020-01-01T00:00:00Z"))).toBeLessThan(60_000);
    jump.mockRestore();
  });
});
