import { describe, expect, it } from "vitest";
import { createListKeys, sweepOwnerless } from "../../src/reconcile/janitor.ts";
import { createFakeDocker, type FakeContainer } from "../support/fake-docker.ts";
import { createTestLog } from "../support/log.ts";
import { t0 } from "../support/observed.ts";

const setUp = () => {
  const fake = createFakeDocker();
  const { log, of } = createTestLog();
  const sweep = () =>
    sweepOwnerless({ docker: fake.docker, clock: fake.clock, log, installation: "default", graceMs: 180_000 });
  const add = (name: string, labels: Record<string, string>, over: Partial<FakeContainer> = {}) =>
    fake.add({ name, labels, ...over });
  return { fake, of, sweep, add };
};
const sandbox = (more: Record<string, string> = {}) => ({
  "roboco.sandbox": "1",
  "roboco.sandbox.installation": "default",
  "roboco.sandbox.engine": "redis",
  ...more,
});
const old = { createdAt: t0 - 180_000 };

describe("listKeys", () => {
  it("names agents, owners of sandboxes and owners of sandboxes that are being made, each once", async () => {
    const { fake, add } = setUp();
    const agent = add("agent", { "roboco.sandbox.services": "redis" });
    const odd = add("odd", { "roboco.agent.nmae": "x" });
    add("stranger", { app: "x" });
    add("one", sandbox({ "roboco.sandbox.owner.container": agent.id }));
    add("two", sandbox({ "roboco.sandbox.owner.container": "gone" }));
    add("ahead", sandbox());
    add("theirs", sandbox({ "roboco.sandbox.owner.container": "x", "roboco.sandbox.installation": "other" }));
    const keys = await createListKeys(fake.docker, "default", () => ["making", agent.id])();
    expect([...keys].sort()).toEqual([agent.id, odd.id, "gone", "making"].sort());
  });
});

describe("sweepOwnerless", () => {
  it("removes a sandbox that nobody has claimed within the grace, by the Engine's clock", async () => {
    const { fake, sweep, add, of } = setUp();
    const ahead = add("roboco-sandbox-redis-x", sandbox());
    fake.advance(179_999);
    await expect(sweep()).resolves.toBe(0);
    expect(fake.containers.has(ahead.id)).toBe(true);
    fake.advance(1);
    await expect(sweep()).resolves.toBe(1);
    expect(fake.containers.size).toBe(0);
    expect(of("sandbox.removed")).toEqual([{ container: ahead.id, engine: "redis", reason: "ownerless" }]);
  });

  it.each<[string, string, Record<string, string>]>([
    [
      "a sandbox with an owner, which is its owner's affair",
      "roboco-sandbox-redis-x",
      sandbox({ "roboco.sandbox.owner.container": "gone" }),
    ],
    ["another installation's sandbox", "roboco-sandbox-redis-x", sandbox({ "roboco.sandbox.installation": "other" })],
    ["a container that only has the name of one", "roboco-sandbox-redis-x", {}],
    ["an agent", "ada", { "roboco.sandbox.services": "redis" }],
    ["a container with another value of the label", "x", sandbox({ "roboco.sandbox": "0" })],
  ])("leaves %s alone", async (_title, name, labels) => {
    const { fake, sweep, add } = setUp();
    add(name, labels, old);
    await expect(sweep()).resolves.toBe(0);
    expect(fake.containers.size).toBe(1);
  });

  it("removes nothing when the list fails", async () => {
    const { fake, sweep, add } = setUp();
    add("x", sandbox(), old);
    fake.hook("listContainers", () => {
      throw new Error("500");
    });
    await expect(sweep()).rejects.toThrow("500");
    expect(fake.writes()).toEqual([]);
  });

  it("removes the fallback network once nobody refers to it", async () => {
    const { fake, sweep, add } = setUp();
    fake.addNetwork("roboco-sandbox", { "roboco.sandbox": "1", "roboco.sandbox.installation": "default" });
    const ended = add("ada", {}, { status: "exited", networks: { "roboco-sandbox": "" } });
    await sweep();
    expect(fake.networks.has("roboco-sandbox")).toBe(true);
    fake.containers.delete(ended.id);
    await sweep();
    expect(fake.networks.has("roboco-sandbox")).toBe(false);
  });

  it.each<[string, Record<string, string>]>([
    ["the user's own network of that name", {}],
    ["another installation's network of that name", { "roboco.sandbox.installation": "other" }],
  ])("leaves %s alone", async (_title, labels) => {
    const { fake, sweep } = setUp();
    fake.addNetwork("roboco-sandbox", labels);
    await sweep();
    expect(fake.networks.has("roboco-sandbox")).toBe(true);
  });

  it("removes the others when one cannot be removed, and fails so that it is tried again", async () => {
    const { fake, sweep, add } = setUp();
    const stuck = add("stuck", sandbox(), old);
    const free = add("free", sandbox(), old);
    fake.hook("removeContainer", (id) => {
      if (id === stuck.id) throw new Error("device busy");
    });
    await expect(sweep()).rejects.toThrow("device busy");
    expect(fake.containers.has(free.id)).toBe(false);
  });
});
