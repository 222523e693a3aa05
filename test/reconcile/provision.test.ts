import { describe, expect, it, vi } from "vitest";
import { EngineFaultError, EngineUnavailableError } from "../../src/errors.ts";
import { type Provisioned, type ProvisionRequest, provision } from "../../src/reconcile/provision.ts";
import { deferred } from "../support/deferred.ts";
import { addSandbox, createProvisioningWorld } from "../support/provisioning.ts";

type World = Awaited<ReturnType<typeof createProvisioningWorld>>;

const make = (world: World, over: Partial<ProvisionRequest> & { name?: string } = {}, signal?: AbortSignal) =>
  provision(world.request(over), world.provisionOptions, signal ?? new AbortController().signal);

const refusalOf = (result: Provisioned) => {
  if (result.kind !== "failed") throw new Error("is ready, not failed");
  return result.refusal;
};

describe("a sandbox that is made", () => {
  it("runs with the contract's name, labels, limits and password", async () => {
    await using world = await createProvisioningWorld();
    const result = await make(world, { name: "postgres" });
    const sandbox = world.sandbox("pg");
    expect(result).toEqual({
      kind: "ready",
      containerId: sandbox?.id,
      password: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(sandbox?.status).toBe("running");
    expect(sandbox?.specification).toEqual({
      name: "roboco-sandbox-pg-ada",
      image: "postgres:16-alpine",
      environment: {
        POSTGRES_USER: "sandbox",
        POSTGRES_DB: "sandbox",
        POSTGRES_PASSWORD: result.kind === "ready" ? result.password : "",
      },
      command: undefined,
      labels: {
        "roboco.sandbox": "1",
        "roboco.sandbox.owner": "roboco-agent-ada",
        "roboco.sandbox.owner.container": "owner",
        "roboco.sandbox.engine": "postgres",
        "roboco.sandbox.installation": "default",
      },
      network: "shop_default",
      tmpfs: ["/var/lib/postgresql/data"],
      tmpfsBytes: 384 * 1024 * 1024,
      memoryBytes: 512 * 1024 * 1024,
      cpus: 1,
    });
  });

  it.each([
    ["redis", ["/data"], ["/data"]],
    ["mongo", ["/data/configdb", "/data/db"], ["/data/configdb", "/data/db"]],
    ["mongo", [], ["/data/db"]],
    ["mongo", ["/data"], ["/data"]],
    ["postgres", ["/var/lib/postgresql"], ["/var/lib/postgresql"]],
  ])("covers every volume of its image and its own data: %s with %j", async (name, volumes, covered) => {
    await using world = await createProvisioningWorld();
    world.fake.images.set(world.engine(name).image, volumes);
    await make(world, { name });
    expect([...world.fake.containers.values()][0]?.specification?.tmpfs).toEqual(covered);
  });

  it.each(["postgres", "redis", "mongo"])("has its password in no label, command or log line: %s", async (name) => {
    await using world = await createProvisioningWorld();
    const result = await make(world, { name });
    const password = result.kind === "ready" ? result.password : "";
    const { labels, command } = [...world.fake.containers.values()][0]?.specification ?? {};
    expect(JSON.stringify([labels, command, world.lines])).not.toContain(password);
  });

  it("has another password each time", async () => {
    await using world = await createProvisioningWorld();
    const [a, b] = [await make(world, { name: "redis" }), await make(world, { name: "mongo" })];
    expect(a.kind === "ready" && b.kind === "ready" && a.password !== b.password).toBe(true);
  });

  it("keeps the password of an earlier delivery", async () => {
    await using world = await createProvisioningWorld();
    const password = "ab".repeat(16);
    await expect(make(world, { password })).resolves.toMatchObject({ kind: "ready", password });
    expect(world.sandbox("redis")?.environment.REDIS_PASSWORD).toBe(password);
  });

  it("is of the configured image", async () => {
    await using world = await createProvisioningWorld();
    world.fake.images.set("valkey/valkey:8", []);
    await provision(
      world.request(),
      { ...world.provisionOptions, images: { redis: "valkey/valkey:8" } },
      new AbortController().signal,
    );
    expect(world.sandbox("redis")?.specification?.image).toBe("valkey/valkey:8");
  });

  it("is logged in to at its address on the agent's network, which the sidecar leaves again", async () => {
    const seen: string[] = [];
    let heldDuringLogin = 0;
    await using world = await createProvisioningWorld({
      login: async (_engine, { host }) => {
        seen.push(host);
        heldDuringLogin = world.held();
      },
    });
    await make(world);
    expect(seen).toEqual(["127.0.0.1"]);
    expect(heldDuringLogin).toBe(1);
    expect(world.held()).toBe(0);
  });
});

describe("a name that is taken", () => {
  it("by this owner's own sandbox is taken over with its password, as a sidecar that died left it", async () => {
    await using world = await createProvisioningWorld();
    const left = addSandbox(world.fake, { status: "created" });
    await expect(make(world)).resolves.toEqual({ kind: "ready", containerId: left.id, password: "5e".repeat(16) });
    expect(left.status).toBe("running");
  });

  it("by this owner's own ended sandbox is freed, and the new one has the same password", async () => {
    await using world = await createProvisioningWorld();
    const ended = addSandbox(world.fake, { status: "exited" });
    const result = await make(world);
    expect(result).toMatchObject({ kind: "ready", password: "5e".repeat(16) });
    expect(world.sandbox("redis")?.id).not.toBe(ended.id);
  });

  it("by this owner's own sandbox without a password is freed, and the new one has a fresh one", async () => {
    await using world = await createProvisioningWorld();
    addSandbox(world.fake, { environment: {} });
    await expect(make(world)).resolves.toMatchObject({
      kind: "ready",
      password: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
  });

  it.each<[string, { exists: boolean; status?: "exited" }]>([
    ["gone", { exists: false }],
    ["ended", { exists: true, status: "exited" }],
  ])(
    "by a stale sandbox of an owner that is %s is freed, and nothing is inherited",
    async (_title, { exists, status }) => {
      await using world = await createProvisioningWorld();
      const predecessor = exists ? world.fake.add({ name: "old", status: status ?? "running" }).id : "gone";
      const stale = addSandbox(world.fake, { owner: predecessor });
      const result = await make(world);
      expect(result).toMatchObject({ kind: "ready" });
      expect(result.kind === "ready" && result.password).not.toBe("5e".repeat(16));
      expect(world.fake.get("roboco-sandbox-redis-ada").id).not.toBe(stale.id);
    },
  );

  it.each<[string, (world: World) => string]>([
    ["a foreign container", (world) => world.fake.add({ name: "roboco-sandbox-redis-ada", status: "running" }).id],
    ["a sandbox of another installation", (world) => addSandbox(world.fake, { installation: "other" }).id],
    [
      "a sandbox of a living agent",
      (world) => addSandbox(world.fake, { owner: world.fake.add({ name: "b", status: "running" }).id }).id,
    ],
    [
      "a foreign container that ended",
      (world) => world.fake.add({ name: "roboco-sandbox-redis-ada", status: "exited" }).id,
    ],
  ])("by %s is a refusal that names it, and it stays", async (_title, holder) => {
    await using world = await createProvisioningWorld();
    const id = holder(world);
    const refusal = refusalOf(await make(world));
    expect(refusal).toMatchObject({ error: "NAME_TAKEN", missing: ["redis"] });
    expect(refusal.message).toContain("roboco-sandbox-redis-ada");
    expect(refusal.message).toContain(id.slice(0, 12));
    expect(world.fake.containers.has(id)).toBe(true);
  });

  it("by a container that went in between is tried again", async () => {
    await using world = await createProvisioningWorld();
    const passing = world.fake.add({ name: "roboco-sandbox-redis-ada" });
    world.fake.hook("inspectContainer", () => world.fake.containers.delete(passing.id));
    await expect(make(world)).resolves.toMatchObject({ kind: "ready" });
  });

  it("and stays taken, though its holder was removed, is a refusal and no endless loop", async () => {
    await using world = await createProvisioningWorld();
    world.fake.hook("createContainer", () => {
      if (!world.sandbox("redis")) addSandbox(world.fake, { owner: "gone" });
    });
    expect(refusalOf(await make(world))).toMatchObject({ error: "NAME_TAKEN" });
  });
});

describe("an image", () => {
  it("that vanishes between pull and create is pulled again", async () => {
    await using world = await createProvisioningWorld();
    let isFirst = true;
    world.fake.hook("createContainer", () => {
      if (isFirst) world.fake.images.delete("redis:8-alpine");
      isFirst = false;
    });
    await expect(make(world)).resolves.toMatchObject({ kind: "ready" });
    expect(world.events()).toContain("image.pulled");
  });

  it("that vanishes each time is a refusal and no endless loop", async () => {
    await using world = await createProvisioningWorld();
    world.fake.hook("createContainer", () => world.fake.images.delete("redis:8-alpine"));
    expect(refusalOf(await make(world))).toMatchObject({ error: "IMAGE_UNAVAILABLE", missing: ["redis"] });
  });
});

describe("a server that does not come up", () => {
  const dies = (world: World, over: { exitCode: number; oomKilled?: boolean; log?: string[] }): void => {
    world.fake.hook("inspectContainer", () => {
      const sandbox = world.sandbox("redis");
      if (sandbox?.status !== "running") return;
      world.fake.end(sandbox, over.exitCode);
      sandbox.oomKilled = over.oomKilled ?? false;
      sandbox.log = (over.log ?? []).map((line) => line.replace("$P", sandbox.environment.REDIS_PASSWORD ?? ""));
    });
  };

  it("is refused with its exit code and its last words, the password taken out", async () => {
    await using world = await createProvisioningWorld();
    dies(world, { exitCode: 1, log: ["loading config", "bad directive: requirepass $P"] });
    const refusal = refusalOf(await make(world));
    expect(refusal).toMatchObject({ error: "SANDBOX_EXITED", missing: ["redis"] });
    expect(refusal.message).toContain("exit code 1");
    expect(refusal.message).toContain("loading config | bad directive: requirepass ***");
    expect(JSON.stringify(refusal)).not.toMatch(/[0-9a-f]{32}/);
  });

  it.each([
    ["was killed for its memory", { exitCode: 137, oomKilled: true }],
    ["was killed", { exitCode: 137 }],
  ])("and %s is refused with the variable to raise", async (_title, end) => {
    await using world = await createProvisioningWorld();
    dies(world, end);
    expect(refusalOf(await make(world)).remediate).toContain("ROBOCO_SANDBOX_MEMORY");
  });

  it("is refused as soon as it ended, though it was up for a moment", async () => {
    await using world = await createProvisioningWorld({
      login: async () => {
        const sandbox = world.sandbox("redis");
        if (sandbox) world.fake.end(sandbox, 3);
        throw new Error("no");
      },
    });
    const refusal = refusalOf(await make(world));
    expect(refusal).toMatchObject({ error: "SANDBOX_EXITED", message: expect.stringContaining("exit code 3") });
  });

  it("is refused when it was removed under our hands", async () => {
    await using world = await createProvisioningWorld();
    world.fake.hook("startContainer", (id) => world.fake.containers.delete(String(id)));
    expect(refusalOf(await make(world))).toMatchObject({
      error: "SANDBOX_EXITED",
      message: expect.stringContaining("removed"),
    });
  });

  it("is refused when it does not answer in time, with the last reason", async () => {
    await using world = await createProvisioningWorld({
      readyWithinMs: 60,
      login: () => Promise.reject(new Error("LOADING Redis is loading")),
    });
    const refusal = refusalOf(await make(world));
    expect(refusal).toMatchObject({ error: "SANDBOX_NOT_READY", missing: ["redis"] });
    expect(refusal.message).toContain("LOADING Redis is loading");
    expect(refusal.message).toContain(`127.0.0.1:${world.port}`);
  });

  it("is refused when its network is gone", async () => {
    await using world = await createProvisioningWorld();
    world.fake.networks.delete("shop_default");
    const refusal = refusalOf(await make(world));
    expect(refusal).toMatchObject({
      error: "SANDBOX_REJECTED",
      message: expect.stringContaining("network shop_default not found"),
    });
    expect(world.held()).toBe(0);
  });

  it("is refused with the Engine's words when the Engine will not make it", async () => {
    await using world = await createProvisioningWorld();
    world.fake.hook("createContainer", () => {
      throw new EngineFaultError("no space left on device", 500);
    });
    expect(refusalOf(await make(world)).message).toContain("no space left on device");
  });
});

describe("an Engine that goes away", () => {
  it("is no refusal: the error comes through, to be tried again", async () => {
    await using world = await createProvisioningWorld();
    const away = new EngineUnavailableError("socket hang up", "Start it.");
    world.fake.hook("startContainer", () => {
      throw away;
    });
    await expect(make(world)).rejects.toBe(away);
    expect(world.held()).toBe(0);
  });
});

describe("a cancelled provisioning", () => {
  it("ends with no call in flight, and begins nothing more", async () => {
    await using world = await createProvisioningWorld();
    const gate = deferred();
    world.fake.hook("createContainer", () => gate.promise);
    const cancel = new AbortController();
    const making = make(world, {}, cancel.signal);
    await vi.waitFor(() => expect(world.fake.inFlight()).toBe(1));
    cancel.abort();
    gate.resolve();
    await expect(making).rejects.toBe(cancel.signal.reason);
    expect(world.fake.inFlight()).toBe(0);
    expect(world.fake.calls("startContainer")).toEqual([]);
    expect(world.held()).toBe(0);
  });

  it("gives up a login that would go on for a minute", async () => {
    const cancel = new AbortController();
    await using world = await createProvisioningWorld({
      readyWithinMs: 60_000,
      login: async () => {
        cancel.abort();
        throw new Error("no");
      },
    });
    await expect(make(world, {}, cancel.signal)).rejects.toThrow();
    expect(world.fake.inFlight()).toBe(0);
  });
});
