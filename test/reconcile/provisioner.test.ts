import { describe, expect, it, vi } from "vitest";
import { EngineUnavailableError } from "../../src/errors.ts";
import { createProvisioner } from "../../src/reconcile/provisioner.ts";
import { deferred } from "../support/deferred.ts";
import { createProvisioningWorld } from "../support/provisioning.ts";

const setUp = async (
  limits: { concurrency?: number; maxSandboxes?: number } = {},
  options: Parameters<typeof createProvisioningWorld>[0] = {},
) => {
  const world = await createProvisioningWorld(options);
  const settled: { owner: string; retry: unknown }[] = [];
  const provisioner = createProvisioner(
    world.provisionOptions,
    { concurrency: limits.concurrency ?? 8, maxSandboxes: limits.maxSandboxes ?? 100 },
    (owner, retry) => settled.push({ owner, retry }),
  );
  const start = (
    over: Parameters<typeof world.request>[0] = {},
    more: { lost?: boolean; existing?: readonly string[] } = {},
  ): void =>
    provisioner.start(world.request(over), { lost: more.lost ?? false, existing: new Set(more.existing ?? []) });
  const state = (owner: string, engine: string) => provisioner.jobs(owner)[engine]?.state;
  return { ...world, provisioner, settled, start, state };
};

describe("the provisioner", () => {
  it("tells what is being made, and when it is there", async () => {
    await using world = await setUp();
    world.start();
    expect(world.state("owner", "redis")).toBe("running");
    expect(world.provisioner.owners()).toEqual(["owner"]);
    expect(world.provisioner.passwords("owner")).toEqual({});
    await vi.waitFor(() => expect(world.settled).toEqual([{ owner: "owner", retry: undefined }]));
    const sandbox = world.sandbox("redis");
    expect(world.provisioner.jobs("owner")).toEqual({ redis: { state: "ready", containerId: sandbox?.id } });
    expect(world.provisioner.passwords("owner")).toEqual({ redis: sandbox?.environment.REDIS_PASSWORD });
    expect(world.events()).toEqual(["sandbox.provisioning", "sandbox.ready"]);
  });

  it("makes all engines of an agent at once", async () => {
    const gate = deferred();
    const waiting = new Set<string>();
    await using world = await setUp(
      {},
      {
        login: (engine) => {
          waiting.add(engine);
          return gate.promise;
        },
      },
    );
    for (const name of ["postgres", "redis", "mongo"]) world.start({ name });
    await vi.waitFor(() => expect(waiting.size).toBe(3));
    gate.resolve();
    await vi.waitFor(() => expect(world.settled).toHaveLength(3));
  });

  it("makes no more at once than it may", async () => {
    let busy = 0;
    let most = 0;
    await using world = await setUp(
      { concurrency: 2 },
      {
        login: async () => {
          busy += 1;
          most = Math.max(most, busy);
          await new Promise((resolve) => setImmediate(resolve));
          busy -= 1;
        },
      },
    );
    for (let index = 0; index < 8; index += 1) world.start({ agentId: `a${index}`, ownerContainer: `owner-${index}` });
    await vi.waitFor(() => expect(world.settled).toHaveLength(8));
    expect(most).toBe(2);
  });

  it("lets nobody wait for another's pull", async () => {
    await using world = await setUp({ concurrency: 1 });
    world.fake.images.delete("mongo:8");
    const gate = deferred();
    world.fake.hook("pullImage", () => gate.promise);
    world.start({ name: "mongo" });
    world.start({ name: "redis" });
    await vi.waitFor(() => expect(world.state("owner", "redis")).toBe("ready"));
    expect(world.state("owner", "mongo")).toBe("running");
    gate.resolve();
    await vi.waitFor(() => expect(world.state("owner", "mongo")).toBe("ready"));
  });

  it("names the engine, not the image, that is missing when a pull fails", async () => {
    await using world = await setUp();
    world.fake.images.delete("redis:8-alpine");
    world.fake.registryImages.clear();
    world.start();
    await vi.waitFor(() => expect(world.state("owner", "redis")).toBe("failed"));
    expect(world.provisioner.jobs("owner").redis).toMatchObject({
      refusal: { error: "IMAGE_UNAVAILABLE", missing: ["redis"], message: expect.stringContaining("redis:8-alpine") },
    });
    expect(world.of("sandbox.failed")).toEqual([
      expect.objectContaining({ engine: "redis", reason: "IMAGE_UNAVAILABLE" }),
    ]);
  });

  it("forgets a job when the Engine goes away, and asks for another look", async () => {
    await using world = await setUp();
    const away = new EngineUnavailableError("socket hang up", "Start it.");
    world.fake.hook("createContainer", () => {
      throw away;
    });
    world.start();
    await vi.waitFor(() => expect(world.settled).toEqual([{ owner: "owner", retry: away }]));
    expect(world.provisioner.jobs("owner")).toEqual({});
  });

  it("says loudly that a sandbox was lost", async () => {
    await using world = await setUp();
    world.start({}, { lost: true });
    await vi.waitFor(() => expect(world.settled).toHaveLength(1));
    expect(world.of("sandbox.lost")).toEqual([{ agent: "ada", container: "owner", engine: "redis" }]);
  });
});

describe("the limit of sandboxes", () => {
  it("refuses one more than there may be, with the variable to raise", async () => {
    await using world = await setUp({ maxSandboxes: 2 });
    world.start({}, { existing: ["roboco-sandbox-redis-x", "roboco-sandbox-redis-y"] });
    await vi.waitFor(() => expect(world.settled).toHaveLength(1));
    expect(world.provisioner.jobs("owner").redis).toMatchObject({
      state: "failed",
      refusal: { error: "SANDBOX_LIMIT_REACHED", remediate: expect.stringContaining("ROBOCO_SANDBOX_MAX") },
    });
    expect(world.fake.writes()).toEqual([]);
  });

  it("counts those that are being made and not there yet", async () => {
    await using world = await setUp({ maxSandboxes: 2 });
    world.start({ name: "redis" });
    world.start({ name: "mongo" });
    world.start({ name: "postgres" });
    expect(world.state("owner", "postgres")).toBe("failed");
    await vi.waitFor(() => expect(world.settled).toHaveLength(3));
    expect(world.state("owner", "redis")).toBe("ready");
    expect(world.state("owner", "mongo")).toBe("ready");
  });

  it("does not count the one that is looked after again", async () => {
    await using world = await setUp({ maxSandboxes: 1 });
    world.start({}, { existing: ["roboco-sandbox-redis-ada"] });
    await vi.waitFor(() => expect(world.state("owner", "redis")).toBe("ready"));
  });
});

describe("a sandbox that keeps dying", () => {
  const makeAndLose = async (world: Awaited<ReturnType<typeof setUp>>): Promise<string | undefined> => {
    const before = world.settled.length;
    world.start({}, { lost: true });
    await vi.waitFor(() => expect(world.settled).toHaveLength(before + 1));
    const sandbox = world.sandbox("redis");
    if (sandbox) world.fake.containers.delete(sandbox.id);
    return world.state("owner", "redis");
  };

  it("is made five times, then refused", async () => {
    await using world = await setUp();
    const states: (string | undefined)[] = [];
    for (let time = 1; time <= 6; time += 1) states.push(await makeAndLose(world));
    expect(states).toEqual(["ready", "ready", "ready", "ready", "ready", "failed"]);
    expect(world.provisioner.jobs("owner").redis).toMatchObject({ refusal: { error: "SANDBOX_UNSTABLE" } });
  });

  it("has a new start when its agent starts a new life", async () => {
    await using world = await setUp();
    for (let time = 1; time <= 6; time += 1) await makeAndLose(world);
    await world.provisioner.cancel("owner");
    expect(await makeAndLose(world)).toBe("ready");
  });
});

describe("cancel", () => {
  it("ends what is under way, with no call of it left in flight, and forgets it", async () => {
    const login = deferred();
    await using world = await setUp({}, { login: () => login.promise });
    world.start({ name: "redis" });
    world.start({ name: "mongo" });
    const gate = deferred();
    world.fake.hook("createContainer", () => gate.promise);
    await vi.waitFor(() => expect(world.fake.calls("createContainer").length).toBeGreaterThan(0));
    let isDone = false;
    const cancelling = world.provisioner.cancel("owner").then(() => {
      isDone = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isDone).toBe(false);
    gate.resolve();
    await cancelling;
    expect(world.fake.inFlight()).toBe(0);
    expect(world.provisioner.jobs("owner")).toEqual({});
    expect(world.provisioner.owners()).toEqual([]);
    expect(world.settled).toEqual([]);
  });

  it("of one owner leaves the others alone", async () => {
    await using world = await setUp();
    world.start({ agentId: "a", ownerContainer: "one" });
    world.start({ agentId: "b", ownerContainer: "two" });
    await world.provisioner.cancel("one");
    await vi.waitFor(() => expect(world.state("two", "redis")).toBe("ready"));
  });

  it("takes away one that waits for a slot or a pull, too", async () => {
    const gate = deferred();
    await using world = await setUp({ concurrency: 1 }, { login: () => gate.promise });
    world.start({ agentId: "a", ownerContainer: "one" });
    world.start({ agentId: "b", ownerContainer: "two" });
    await vi.waitFor(() => expect(world.fake.containers.size).toBe(1));
    const cancelling = world.provisioner.cancelAll();
    gate.resolve();
    await cancelling;
    expect(world.provisioner.owners()).toEqual([]);
    expect(world.fake.containers.size).toBe(1);
  });

  it("of an owner that is not known does nothing", async () => {
    await using world = await setUp();
    await expect(world.provisioner.cancel("nobody")).resolves.toBeUndefined();
  });
});
