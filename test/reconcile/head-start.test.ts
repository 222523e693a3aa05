import { describe, expect, it } from "vitest";
import { type Ahead, planHeadStart } from "../../src/reconcile/head-start.ts";
import type { ContainerSummary } from "../../src/reconcile/ports.ts";
import { deferred } from "../support/deferred.ts";
import { createLife } from "../support/life.ts";

const now = Date.UTC(2026, 0, 1);
const agent: ContainerSummary = {
  id: "a".repeat(64),
  name: "ada",
  status: "created",
  createdAt: now - 1000,
  labels: { "roboco.sandbox.services": "redis" },
  networkMode: "shop_default",
  networks: { shop_default: "" },
};
const ahead: Ahead = {
  agent,
  optIn: { kind: "valid", agentId: "ada", engines: ["redis"], role: undefined, hold: "pause" },
  isContested: false,
  existing: new Set(),
};

describe("a head start", () => {
  it("is given to a newborn on a network of its own", () => {
    expect(planHeadStart(ahead, now, undefined)).toMatchObject({ agentId: "ada", network: "shop_default" });
  });

  it.each<[string, Partial<Ahead>]>([
    ["another goes by its id", { isContested: true }],
    ["it is older and may have a history", { agent: { ...agent, createdAt: now - 6000 } }],
    ["it has run before", { agent: { ...agent, status: "exited" } }],
    [
      "it has to be joined to a network first",
      { agent: { ...agent, networkMode: "bridge", networks: { bridge: "" } } },
    ],
    ["its network will be refused", { agent: { ...agent, networkMode: "host", networks: { host: "" } } }],
    [
      "it asks for a manifest only",
      { optIn: { kind: "valid", agentId: "ada", engines: [], role: "qa", hold: "pause" } },
    ],
    ["it is a stranger", { optIn: { kind: "stranger" } }],
    [
      "its labels are wrong",
      {
        optIn: {
          kind: "invalid",
          agentId: "ada",
          refusal: { error: "OPT_IN_INVALID", message: "", remediate: "", missing: [] },
        },
      },
    ],
  ])("is not given where %s", (_why, over) => {
    expect(planHeadStart({ ...ahead, ...over }, now, undefined)).toBeUndefined();
  });

  it("begins sandboxes while the Engine does not answer for a container that is starting", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const newborn = life.agent();
    const started = deferred<void>();
    life.fake.hook("inspectContainer", (id) => (id === newborn.id ? started.promise : undefined));
    const looking = sidecar.look(newborn);
    await expect.poll(() => life.sandboxes()).toHaveLength(1);
    expect(life.of("agent.seen")).toHaveLength(1);
    life.fake.start(newborn);
    started.resolve();
    await looking;
    await expect(sidecar.settle(newborn)).resolves.toMatchObject({ status: "ready" });
    expect(life.sandboxes()).toHaveLength(1);
    expect(life.of("agent.seen")).toHaveLength(1);
  });

  it("is taken back where the look finds a reason to refuse", async () => {
    await using life = await createLife();
    const sidecar = life.sidecar();
    const newborn = life.agent({ environment: { ROBOCO_TEST_REDIS_HOST: "production" } });
    await sidecar.settle(newborn);
    await sidecar.look(newborn);
    expect(life.of("agent.refused")).toMatchObject([{ error: "ENVIRONMENT_CONFLICT" }]);
    expect(life.sandboxes()).toEqual([]);
  });
});
