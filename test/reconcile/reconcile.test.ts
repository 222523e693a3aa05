import { describe, expect, it } from "vitest";
import { EngineFaultError, EngineRejectedError, EngineUnavailableError } from "../../src/errors.ts";
import { createReadiness } from "../../src/reconcile/readiness.ts";
import { createLife, fileOf, phaseOf, secretsIn, writesTo } from "../support/life.ts";

const passwordIn = (text: string | undefined): string | undefined =>
  /REDIS_PASSWORD=([0-9a-f]{32})/.exec(text ?? "")?.[1];

describe("the life of an agent", () => {
  it("that is created first: its sandboxes and its files are there before it starts", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ services: "postgres,redis" });

    await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "provisioning", changed: true });
    expect(phaseOf(agent)).toBe("armed");
    await expect(sidecar.settle(agent)).resolves.toMatchObject({ status: "ready" });

    expect(phaseOf(agent)).toBe("released");
    expect(life.sandboxes().map(({ name, status }) => [name, status])).toEqual([
      ["roboco-sandbox-pg-ada", "running"],
      ["roboco-sandbox-redis-ada", "running"],
    ]);
    expect(passwordIn(fileOf(agent, "env"))).toBe(life.sandbox("redis")?.environment.REDIS_PASSWORD);
    expect(JSON.parse(fileOf(agent, "json") ?? "")).toMatchObject({ schema: 1, agent: "ada", state: "ready" });

    life.fake.start(agent);
    await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "ready", changed: false });
    expect(agent.status).toBe("running");
    expect(life.events()).toEqual([
      "agent.seen",
      "sandbox.provisioning",
      "sandbox.provisioning",
      "sandbox.ready",
      "sandbox.ready",
      "agent.released",
    ]);
    expect(secretsIn(life.lines)).toEqual([]);
  });

  it("that starts too early: it is paused, gets its files and runs on", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent();
    life.fake.start(agent);

    await sidecar.look(agent);
    expect([agent.status, phaseOf(agent)]).toEqual(["paused", "armed"]);
    expect(fileOf(agent, "env")).toBeUndefined();

    await sidecar.settle(agent);
    expect([agent.status, phaseOf(agent)]).toEqual(["running", "released"]);
    expect(passwordIn(fileOf(agent, "env"))).toBeDefined();
    expect(life.of("agent.held")).toEqual([{ agent: "ada", container: agent.id }]);
    expect(life.of("agent.released")).toEqual([{ agent: "ada", container: agent.id, held: true }]);
  });

  it("that ends: it is voided and its sandboxes go, but not before the grace", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ services: "redis,mongo" });
    await sidecar.settle(agent);
    life.fake.start(agent);
    life.fake.end(agent);

    await expect(sidecar.look(agent)).resolves.toMatchObject({
      status: "gone",
      changed: false,
      lookAgainAfterMs: 2000,
    });
    expect(life.sandboxes()).toHaveLength(2);

    life.fake.advance(2000);
    await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "gone", changed: true });
    expect(life.sandboxes()).toEqual([]);
    expect(fileOf(agent, "env")).toBe("");
    expect(JSON.parse(fileOf(agent, "json") ?? "")).toEqual({ schema: 1, agent: "ada", state: "gone", services: {} });
    expect(life.of("agent.gone")).toEqual([{ agent: "ada", container: agent.id }]);

    const writes = life.fake.writes().length;
    await sidecar.look(agent);
    expect(life.fake.writes()).toHaveLength(writes);
  });

  it("that ends and is started again later: it waits under hold for fresh credentials", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent();
    await sidecar.settle(agent);
    const before = passwordIn(fileOf(agent, "env"));
    life.fake.end(agent);
    life.fake.advance(2000);
    await sidecar.look(agent);

    life.fake.start(agent);
    await sidecar.look(agent);
    expect(agent.status).toBe("paused");
    await sidecar.settle(agent);
    expect(agent.status).toBe("running");
    expect(passwordIn(fileOf(agent, "env"))).toMatch(/^[0-9a-f]{32}$/);
    expect(passwordIn(fileOf(agent, "env"))).not.toBe(before);
  });

  it("that is restarted: it keeps its sandbox and its credentials, and is not held", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent();
    await sidecar.settle(agent);
    const [id, env] = [life.sandbox("redis")?.id, fileOf(agent, "env")];
    life.fake.end(agent);
    await sidecar.look(agent);
    life.fake.advance(1500);
    life.fake.start(agent);
    await sidecar.look(agent);
    life.fake.advance(10_000);
    await sidecar.look(agent);
    expect([life.sandbox("redis")?.id, fileOf(agent, "env"), agent.status]).toEqual([id, env, "running"]);
  });

  it("that is destroyed: its sandboxes go at once, also one that is just being made", async () => {
    await using life = await createLife({ login: () => Promise.reject(new Error("not yet")) });
    const sidecar = life.sidecar();
    const agent = life.agent();
    await sidecar.look(agent);
    while (!life.sandbox("redis")) await new Promise((resolve) => setImmediate(resolve));
    life.fake.containers.delete(agent.id);
    await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "gone" });
    expect(life.sandboxes()).toEqual([]);
    expect(sidecar.provisioner.owners()).toEqual([]);
    expect(life.fake.inFlight()).toBe(0);
  });

  it("that never starts: its sandboxes go after the janitor's grace, and come again under hold when it starts", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent();
    await sidecar.settle(agent);
    life.fake.advance(180_000);
    await expect(sidecar.tick()).resolves.toMatchObject([{ status: "idle" }]);
    expect(life.sandboxes()).toEqual([]);
    expect(fileOf(agent, "env")).toBe("");
    life.fake.advance(30_000);
    await sidecar.tick();
    expect(life.sandboxes()).toEqual([]);

    life.fake.start(agent);
    await sidecar.look(agent);
    expect(agent.status).toBe("paused");
    await sidecar.settle(agent);
    expect(agent.status).toBe("running");
    expect(life.sandboxes()).toHaveLength(1);
  });

  it("that only has a role: it gets a file that releases it, and no sandbox", async () => {
    await using life = await createLife();
    const agent = life.agent({ labels: { "roboco.agent.role": "qa" } });
    await expect(life.sidecar().look(agent)).resolves.toMatchObject({ status: "ready" });
    expect(fileOf(agent, "env")).toMatch(/^#/);
    expect(life.sandboxes()).toEqual([]);
  });

  it("without a network of its own: it is joined to one where the sandbox's name resolves, which goes with the last", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ networkMode: "bridge", networks: { bridge: "10.0.0.1" } });
    await sidecar.settle(agent);
    expect(Object.keys(agent.networks)).toContain("roboco-sandbox");
    expect(life.sandbox("redis")?.specification?.network).toBe("roboco-sandbox");
    expect(life.fake.networks.get("roboco-sandbox")?.labels).toMatchObject({
      "roboco.sandbox.installation": "default",
    });
    life.fake.containers.delete(agent.id);
    await sidecar.look(agent);
    expect(life.fake.networks.has("roboco-sandbox")).toBe(false);
  });
});

describe("a refusal", () => {
  it("for its labels: told before it starts, killed as soon as it starts, said once with the remedy", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ services: "redsi" });
    await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "refused" });
    expect(JSON.parse(fileOf(agent, "refused") ?? "")).toMatchObject({
      error: "OPT_IN_INVALID",
      message: expect.stringContaining('did you mean "redis"?'),
      remediate: expect.any(String),
      missing: ["roboco.sandbox.services"],
    });
    life.fake.start(agent);
    await sidecar.look(agent);
    expect([agent.status, agent.exitCode]).toEqual(["exited", 137]);
    expect(life.of("agent.refused")).toHaveLength(1);
    expect(life.of("agent.refused")[0]).toMatchObject({ agent: "ada", error: "OPT_IN_INVALID" });
    expect(life.sandboxes()).toEqual([]);
  });

  it("for one engine: its siblings go, it is killed, never left paused, and the log says why without the secret", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ services: "redis,mongo" });
    life.fake.start(agent);
    life.fake.hook("inspectContainer", () => {
      const mongo = life.sandbox("mongo");
      if (mongo?.status !== "running") return;
      life.fake.end(mongo, 1);
      mongo.log = [`cannot create user with ${mongo.environment.MONGO_INITDB_ROOT_PASSWORD}`];
    });
    await sidecar.look(agent);
    expect(agent.status).toBe("paused");
    await expect(sidecar.settle(agent)).resolves.toMatchObject({ status: "refused" });
    expect(agent.status).toBe("exited");
    expect(life.sandboxes()).toEqual([]);
    expect(JSON.parse(fileOf(agent, "refused") ?? "")).toMatchObject({ error: "SANDBOX_EXITED", missing: ["mongo"] });
    expect(life.of("agent.refused")).toEqual([
      expect.objectContaining({
        error: "SANDBOX_EXITED",
        reason: expect.stringContaining("cannot create user with ***"),
      }),
    ]);
    expect(secretsIn(life.lines)).toEqual([]);
  });

  it("is over when the agent is started again and the cause is mended", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    life.fake.images.delete("redis:8-alpine");
    life.fake.registryImages.clear();
    const agent = life.agent();
    life.fake.start(agent);
    await sidecar.settle(agent);
    expect(agent.status).toBe("exited");
    await sidecar.look(agent);

    life.fake.images.set("redis:8-alpine", []);
    life.fake.start(agent);
    await sidecar.look(agent);
    expect([agent.status, phaseOf(agent)]).toEqual(["paused", "armed"]);
    await sidecar.settle(agent);
    expect([agent.status, phaseOf(agent)]).toEqual(["running", "released"]);
    expect(fileOf(agent, "refused")).toBe("");
  });

  it("above the limit of sandboxes names that reason", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar({ maxSandboxes: 1 });
    const [first, second] = [life.agent(), life.agent({ name: "bob" })];
    await sidecar.settle(first);
    await sidecar.settle(second);
    expect(JSON.parse(fileOf(second, "refused") ?? "")).toMatchObject({ error: "SANDBOX_LIMIT_REACHED" });
    expect(life.sandboxes()).toHaveLength(1);
  });

  it("of an agent to which nothing can be written is said once a life, and it is killed each time it starts", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ readonlyRootfs: true });
    await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "refused" });
    await sidecar.look(agent);
    expect(life.of("agent.refused")).toEqual([expect.objectContaining({ error: "RUN_DIRECTORY_UNUSABLE" })]);
    for (const lives of [1, 2]) {
      life.fake.advance(1000);
      life.fake.start(agent);
      await sidecar.look(agent);
      expect(agent.status).toBe("exited");
      await sidecar.look(agent);
      await sidecar.look(agent);
      expect(life.of("agent.refused")).toHaveLength(lives); // created and then started is one life
    }
  });

  it("of an agent to which nothing can be written leaves nothing to try again once it ended", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ readonlyRootfs: true });
    life.fake.start(agent);
    await sidecar.look(agent);
    const outcome = await sidecar.look(agent);
    expect(outcome.err).toBeUndefined();
    expect(outcome.status).toBe("gone");
  });

  it("because it cannot be joined to a network settles it for the health gate at once", async () => {
    await using life = await createLife();
    const agent = life.agent({ networkMode: "bridge", networks: { bridge: "10.0.0.1" } });
    life.fake.hook("connectNetwork", () => {
      throw new EngineRejectedError("endpoint refused", 403);
    });
    await expect(life.sidecar().look(agent)).resolves.toMatchObject({ status: "refused" });
    expect(JSON.parse(fileOf(agent, "refused") ?? "")).toMatchObject({
      error: "NETWORK_UNSUPPORTED",
      message: expect.stringContaining("endpoint refused"),
    });
    expect(life.of("agent.killed")).toEqual([]);
  });

  it("because the Engine cannot pause kills the agent and names hold=none", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent();
    life.fake.start(agent);
    life.fake.hook("pauseContainer", () => {
      throw new EngineRejectedError("no freezer", 500);
    });
    await sidecar.look(agent);
    expect(agent.status).toBe("exited");
    expect(JSON.parse(fileOf(agent, "refused") ?? "")).toMatchObject({
      error: "HOLD_IMPOSSIBLE",
      remediate: expect.stringContaining("roboco.sandbox.hold=none"),
    });
    expect(life.sandboxes()).toEqual([]);
    expect(sidecar.provisioner.owners()).toEqual([]);
  });

  it("takes the place of a running agent whose run directory cannot be written after all", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent();
    life.fake.start(agent);
    life.fake.hook("writeFiles", () => {
      throw new EngineRejectedError("/run/roboco: not a directory", 400);
    });
    await sidecar.settle(agent);
    expect(agent.status).toBe("exited");
    expect(life.of("agent.refused")).toEqual([expect.objectContaining({ error: "RUN_DIRECTORY_UNUSABLE" })]);
  });

  const throughLauncher = { command: ["/roboco/bin/enter", "node", "agent.js"], services: "redis" };

  it("lets the launcher of a held agent say why and end by itself", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    life.fake.images.clear();
    life.fake.registryImages.clear();
    const agent = life.agent(throughLauncher);
    life.fake.start(agent);
    life.fake.hook("inspectContainer", () => {
      if (agent.status === "running" && fileOf(agent, "refused")) life.fake.end(agent, 69);
    });
    await sidecar.settle(agent);
    expect([agent.status, agent.exitCode]).toEqual(["exited", 69]);
    expect(life.of("agent.killed")).toEqual([]);
  });

  it("kills an agent whose launcher does not end by itself", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    life.fake.images.clear();
    life.fake.registryImages.clear();
    const agent = life.agent(throughLauncher);
    life.fake.start(agent);
    await sidecar.settle(agent);
    expect([agent.status, agent.exitCode]).toEqual(["exited", 137]);
  });

  it("of one agent affects no other", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const [bad, good] = [life.agent({ name: "bad", services: "x" }), life.agent({ name: "good" })];
    await sidecar.tick();
    await sidecar.settle(good);
    expect([phaseOf(bad), phaseOf(good)]).toEqual(["refused", "released"]);
  });
});

describe("several containers of one agent id", () => {
  it("one that wants no sandbox runs beside the one that has them", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const labels = { "roboco.agent.id": "ada", "roboco.agent.role": "qa" };
    const owner = life.agent();
    life.fake.start(owner);
    await sidecar.settle(owner);
    const reader = life.fake.add({ name: "reader", labels });
    life.fake.start(reader);
    await expect(sidecar.settle(reader)).resolves.toMatchObject({ status: "ready" });
    expect(reader.status).toBe("running");
  });

  const successor = { name: "ada-new", labels: { "roboco.sandbox.services": "redis", "roboco.agent.id": "ada" } };

  it("a successor waits for its predecessor to go, and inherits nothing", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const old = life.agent();
    await sidecar.settle(old);
    life.fake.start(old);
    const first = passwordIn(fileOf(old, "env"));
    life.fake.advance(60_000);

    const next = life.agent(successor);
    await expect(sidecar.look(next)).resolves.toMatchObject({ status: "waiting" });
    await sidecar.look(next);
    expect(life.of("agent.waiting")).toEqual([{ agent: "ada", container: next.id, peers: ["ada"] }]);
    expect(fileOf(next, "env")).toBeUndefined();

    life.fake.containers.delete(old.id);
    const outcome = await sidecar.look(old);
    expect(outcome.wake).toEqual([next.id]);
    await sidecar.settle(next);
    expect(phaseOf(next)).toBe("released");
    expect(passwordIn(fileOf(next, "env"))).toMatch(/^[0-9a-f]{32}$/);
    expect(passwordIn(fileOf(next, "env"))).not.toBe(first);
    expect(life.sandboxes().map(({ labels }) => labels["roboco.sandbox.owner.container"])).toEqual([next.id]);
  });

  it("a successor that starts while its predecessor is ending is held until it has its own", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const old = life.agent();
    await sidecar.settle(old);
    life.fake.start(old);
    life.fake.end(old);
    life.fake.advance(1000);
    const next = life.agent(successor);
    life.fake.start(next);
    await expect(sidecar.look(next)).resolves.toMatchObject({ status: "waiting" });
    expect(next.status).toBe("paused");
    life.fake.advance(1000);
    await sidecar.look(old);
    await sidecar.settle(next);
    expect(next.status).toBe("running");
    expect(passwordIn(fileOf(next, "env"))).toBeDefined();
  });

  it("one that runs beside a living owner is refused, and the owner keeps everything", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const owner = life.agent();
    await sidecar.settle(owner);
    life.fake.start(owner);
    const twin = life.agent(successor);
    life.fake.start(twin);
    await sidecar.look(twin);
    expect(twin.status).toBe("exited");
    expect(JSON.parse(fileOf(twin, "refused") ?? "")).toMatchObject({ error: "AGENT_ID_TAKEN" });
    await sidecar.look(twin);
    await sidecar.look(owner);
    expect(owner.status).toBe("running");
    expect(life.sandboxes()).toHaveLength(1);
    expect(fileOf(owner, "env")).not.toBe("");
  });
});

describe("a sandbox that dies under a living agent", () => {
  it.each<[string, "exited" | "removed"]>([
    ["is made again under the same name with the same credentials, and the agent runs on", "exited"],
    ["and is removed by hand is made again, too", "removed"],
  ])("%s", async (_title, how) => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent();
    await sidecar.settle(agent);
    life.fake.start(agent);
    const before = life.sandbox("redis");
    if (!before) throw new Error("no sandbox");
    if (how === "exited") life.fake.end(before, 139);
    else life.fake.containers.delete(before.id);

    await sidecar.look(agent);
    expect(agent.status).toBe("running");
    await sidecar.settle(agent);
    const after = life.sandbox("redis");
    expect(after?.id).not.toBe(before.id);
    expect(after?.status).toBe("running");
    expect(after?.environment.REDIS_PASSWORD).toBe(passwordIn(fileOf(agent, "env")));
    expect(life.of("sandbox.lost")).toEqual([{ agent: "ada", container: agent.id, engine: "redis" }]);
  });

  it("is made again with the same credentials by a sidecar that did not make it", async () => {
    await using life = await createLife();
    const agent = life.agent();
    await life.sidecar().settle(agent);
    life.fake.start(agent);
    const before = life.sandbox("redis");
    if (before) life.fake.containers.delete(before.id);
    await life.sidecar().settle(agent);
    expect(life.sandbox("redis")?.environment.REDIS_PASSWORD).toBe(passwordIn(fileOf(agent, "env")));
    expect(agent.status).toBe("running");
  });
});

describe("a sidecar that died", () => {
  it("leaves a sandbox that its user paused: it goes on, and the agent keeps running", async () => {
    await using life = await createLife();
    const agent = life.agent();
    life.fake.start(agent);
    await life.sidecar().settle(agent);
    const sandbox = life.sandbox("redis");
    if (sandbox) sandbox.status = "paused";
    await expect(life.sidecar().settle(agent)).resolves.toMatchObject({ status: "ready" });
    expect(life.sandbox("redis")).toMatchObject({ id: sandbox?.id, status: "running" });
    expect(agent.status).toBe("running");
  });

  it("left an agent held: the next one releases it with what is there already", async () => {
    await using life = await createLife();
    const dead = life.sidecar();
    const agent = life.agent();
    life.fake.start(agent);
    await dead.look(agent);
    expect(agent.status).toBe("paused");
    while (dead.provisioner.jobs(agent.id).redis?.state === "running") await new Promise((r) => setImmediate(r));
    const sandbox = life.sandbox("redis");

    await life.sidecar().settle(agent);
    expect(agent.status).toBe("running");
    expect(life.sandboxes()).toEqual([sandbox]);
    expect(passwordIn(fileOf(agent, "env"))).toBe(sandbox?.environment.REDIS_PASSWORD);
  });

  it("between delivery and release: the next one releases", async () => {
    await using life = await createLife();
    const dead = life.sidecar();
    const agent = life.agent();
    life.fake.start(agent);
    life.fake.hook("unpauseContainer", () => {
      throw new EngineUnavailableError("killed here", "");
    });
    const outcome = await dead.settle(agent);
    expect(outcome.err).toBeInstanceOf(EngineUnavailableError);
    expect([agent.status, phaseOf(agent)]).toEqual(["paused", "delivered"]);

    life.fake.hook("unpauseContainer", undefined);
    await life.sidecar().settle(agent);
    expect([agent.status, phaseOf(agent)]).toEqual(["running", "released"]);
  });

  it("left a refusal: the next one stands by it and says it no second time", async () => {
    await using life = await createLife();
    const agent = life.agent({ services: "x" });
    await life.sidecar().look(agent);
    life.fake.start(agent);
    await life.sidecar().look(agent);
    expect(agent.status).toBe("exited");
    expect(life.of("agent.refused")).toHaveLength(1);
  });

  it("left sandboxes of an agent that went meanwhile: the next one takes them away", async () => {
    await using life = await createLife();
    const agent = life.agent();
    await life.sidecar().settle(agent);
    life.fake.containers.delete(agent.id);
    await life.sidecar().tick();
    expect(life.sandboxes()).toEqual([]);
  });

  it("left a living agent: the next one leaves it as it is", async () => {
    await using life = await createLife();
    const agent = life.agent();
    await life.sidecar().settle(agent);
    life.fake.start(agent);
    const before = structuredClone([...life.fake.containers.values()]);
    await life.sidecar().settle(agent);
    expect([...life.fake.containers.values()]).toEqual(before);
  });
});

describe("a user's pause", () => {
  it("before anything was delivered stays, and the files come all the same", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ status: "paused" });
    await sidecar.settle(agent);
    expect([agent.status, phaseOf(agent)]).toEqual(["paused", "released"]);
    expect(passwordIn(fileOf(agent, "env"))).toBeDefined();
  });

  it("of a released agent stays, under this sidecar and the next", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent();
    life.fake.start(agent);
    await sidecar.settle(agent);
    agent.status = "paused";
    await sidecar.look(agent);
    await life.sidecar().settle(agent);
    expect(agent.status).toBe("paused");
  });
});

describe("what is not ours", () => {
  it("is never written to: no call names a container without our labels or of another installation", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const strangers = [
      life.agent({ name: "plain", labels: { app: "x" } }),
      life.agent({ name: "other", labels: { "roboco.sandbox.services": "redis", "roboco.agent.installation": "b" } }),
      life.agent({ name: "id-only", labels: { "roboco.agent.id": "x" } }),
    ];
    for (const stranger of strangers) life.fake.start(stranger);
    for (const stranger of strangers) {
      await expect(sidecar.look(stranger)).resolves.toMatchObject({ status: "stranger", changed: false });
    }
    await sidecar.tick();
    life.fake.advance(500_000);
    await sidecar.tick();
    expect(life.fake.writes()).toEqual([]);
  });

  it("stays when it holds a sandbox's name, and the agent is told who holds it", async () => {
    await using life = await createLife();
    const foreign = life.fake.add({ name: "roboco-sandbox-redis-ada", status: "running" });
    const agent = life.agent();
    await life.sidecar().settle(agent);
    expect(JSON.parse(fileOf(agent, "refused") ?? "")).toMatchObject({ error: "NAME_TAKEN" });
    expect(foreign.status).toBe("running");
    expect(writesTo(life.fake, foreign.id)).toEqual([]);
  });
});

describe("a run directory on a volume that was used before", () => {
  it("hands down neither files nor credentials", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const first = life.agent();
    await sidecar.settle(first);
    const inherited = passwordIn(fileOf(first, "env"));
    life.fake.containers.delete(first.id);
    await sidecar.look(first);

    const second = life.agent({ files: first.files });
    await sidecar.look(second);
    expect([phaseOf(second), fileOf(second, "env")]).toEqual(["armed", ""]);
    await sidecar.settle(second);
    expect(passwordIn(fileOf(second, "env"))).toBe(life.sandbox("redis")?.environment.REDIS_PASSWORD);
    expect(passwordIn(fileOf(second, "env"))).not.toBe(inherited);
  });
});

describe("a container that claims to be a sandbox", () => {
  it.each(["ada", "00000001", "no id", "../ada", "\u{1F47B}"])(
    "of %j, which is no full container id, has no owner, and harms none",
    async (owner) => {
      await using life = await createLife();
      const sidecar = life.sidecar();
      const agent = life.agent();
      life.fake.start(agent);
      await sidecar.settle(agent);
      const forged = life.fake.add({
        name: "forged",
        status: "running",
        labels: {
          "roboco.sandbox": "1",
          "roboco.sandbox.owner": "roboco-agent-ada",
          "roboco.sandbox.owner.container": owner,
          "roboco.sandbox.engine": "redis",
          "roboco.sandbox.installation": "default",
        },
      });
      await expect(sidecar.look(owner)).resolves.toMatchObject({ status: "gone" });
      await sidecar.tick();
      expect(life.sandboxes()).toHaveLength(1);
      expect(forged.name).not.toBe(life.sandboxes()[0]?.name);
      expect([agent.status, phaseOf(agent)]).toEqual(["running", "released"]);
      expect(life.of("agent.refused")).toEqual([]);
    },
  );
});

describe("a sidecar that is switched off", () => {
  it("says what it would do, and makes no call that changes anything", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar({ enabled: false });
    const agent = life.agent();
    const bad = life.agent({ name: "bad", services: "x" });
    life.fake.start(agent);
    life.fake.start(bad);
    await sidecar.tick();
    life.fake.end(agent);
    life.fake.advance(5000);
    await sidecar.tick();
    expect(life.fake.writes()).toEqual([]);
    expect(life.of("agent.seen")).toHaveLength(2);
    expect(life.of("watch.changed")[0]).toMatchObject({ agent: "ada", actions: ["arm", "hold", "provision"] });
  });

  it("keeps nobody waiting at the health gate for what it will not do", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar({ enabled: false });
    const readiness = createReadiness(() => {});
    const agent = life.agent();
    readiness.onEvent({ kind: "connected" });
    readiness.onListed([agent.id]);
    readiness.onOutcome(await sidecar.look(agent));
    expect(readiness.isReady()).toBe(true);
  });

  it("leaves an agent's sandboxes alone that it made while it was on", async () => {
    await using life = await createLife();
    const agent = life.agent();
    await life.sidecar().settle(agent);
    life.fake.containers.delete(agent.id);
    const writes = life.fake.writes().length;
    await life.sidecar({ enabled: false }).tick();
    expect(life.fake.writes()).toHaveLength(writes);
    expect(life.sandboxes()).toHaveLength(1);
  });
});

describe("an Engine that fails a step", () => {
  it.each(["pauseContainer", "writeFiles"] as const)(
    "once (%s) is asked again, and the agent is not refused",
    async (method) => {
      await using life = await createLife();
      const sidecar = life.sidecar();
      const agent = life.agent();
      life.fake.start(agent);
      let calls = 0;
      life.fake.hook(method, () => {
        calls += 1;
        if (calls === 1) throw new EngineFaultError("a hiccup", 500);
      });
      await sidecar.settle(agent);
      expect(calls).toBeGreaterThan(1);
      expect(life.of("agent.refused")).toEqual([]);
      expect(agent.status).toBe("running");
      expect(phaseOf(agent)).toBe("released");
    },
  );

  it("for an agent that is gone meanwhile refuses nobody", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ networkMode: "bridge", networks: { bridge: "" } });
    life.fake.hook("connectNetwork", () => {
      life.fake.containers.delete(agent.id);
      throw new EngineRejectedError("No such container", 404);
    });
    await sidecar.look(agent);
    await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "gone" });
    expect(life.of("agent.refused")).toEqual([]);
  });

  it("leaves the outcome to be tried again, and the next look goes on from what is there", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent();
    await sidecar.settle(agent);
    life.fake.containers.delete(agent.id);
    life.fake.hook("removeContainer", () => {
      throw new EngineUnavailableError("away", "");
    });
    await expect(sidecar.look(agent)).resolves.toMatchObject({
      status: "failed",
      err: expect.any(EngineUnavailableError),
    });
    life.fake.hook("removeContainer", undefined);
    await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "gone" });
    expect(life.sandboxes()).toEqual([]);
  });

  it("that cannot remove one sandbox removes the others all the same", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const agent = life.agent({ services: "postgres,redis,mongo" });
    await sidecar.settle(agent);
    life.fake.containers.delete(agent.id);
    const stuck = life.sandbox("pg");
    life.fake.hook("removeContainer", (id) => {
      if (id === stuck?.id) throw new EngineUnavailableError("busy", "");
    });
    await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "failed" });
    expect(life.sandboxes()).toEqual([stuck]);
  });

  it.each(["inspectContainer", "listContainers", "readFiles"] as const)(
    "of observation (%s) decides nothing",
    async (method) => {
      await using life = await createLife();
      const sidecar = life.sidecar();
      const agent = life.agent();
      life.fake.start(agent);
      life.fake.hook(method, () => {
        throw new EngineUnavailableError("away", "");
      });
      await expect(sidecar.look(agent)).resolves.toMatchObject({ status: "failed" });
      expect(life.fake.writes()).toEqual([]);
      expect(agent.status).toBe("running");
    },
  );
});

describe("a pass that may only clean up", () => {
  it("takes away what has no living owner, and touches no living agent", async () => {
    await using life = await createLife();
    const [gone, living] = [life.agent(), life.agent({ name: "bob" })];
    const before = life.sidecar();
    await before.settle(gone);
    life.fake.containers.delete(gone.id);
    life.fake.start(living);
    await life.sidecar({ only: ["gone", "idle"] }).tick();
    expect(life.sandboxes()).toEqual([]);
    expect(living.status).toBe("running");
    expect(writesTo(life.fake, living.id)).toEqual([]);
  });
});

describe("the fallback network", () => {
  it("is not taken away from an agent that is just being joined to it", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const onBridge = { networkMode: "bridge", networks: { bridge: "10.0.0.1" } };
    const old = life.agent({ name: "old", ...onBridge });
    await sidecar.settle(old);
    life.fake.containers.delete(old.id);
    for (const sandbox of life.sandboxes()) life.fake.containers.delete(sandbox.id);
    const next = life.agent({ name: "next", ...onBridge });
    // The other agent's last step comes between a look at the network and the joining.
    let isFirst = true;
    life.fake.hook("connectNetwork", async () => {
      if (isFirst) {
        isFirst = false;
        await sidecar.look(old);
      }
    });
    await sidecar.settle(next);
    expect(phaseOf(next)).toBe("released");
  });
});
