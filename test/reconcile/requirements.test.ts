import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { registry } from "../../src/engines/registry.ts";
import type { ContainerView, Mount } from "../../src/reconcile/ports.ts";
import { checkRequirements, chooseNetwork, runDirectoryTarget } from "../../src/reconcile/requirements.ts";
import { agentView } from "../support/observed.ts";

const volume = (destination: string, over: Partial<Mount> = {}): Mount => ({
  destination,
  kind: "volume",
  writable: true,
  ...over,
});
const readOnly = (destination: string, kind: Mount["kind"] = "volume"): Mount => ({
  destination,
  kind,
  writable: false,
});
const tmpfs = (destination: string): Mount => ({ destination, kind: "tmpfs", writable: true });

const check = (over: Partial<ContainerView>, wants: { engines?: string[]; role?: string } = {}) =>
  checkRequirements(agentView(over), { engines: wants.engines ?? ["redis"], role: wants.role }, registry);
const codes = (over: Partial<ContainerView>, wants?: { engines?: string[]; role?: string }) =>
  check(over, wants).map(({ error }) => error);

describe("the run directory", () => {
  it.each<[string, Partial<ContainerView>]>([
    ["on a writable root file system", {}],
    ["on a volume of its own", { mounts: [volume("/run/roboco")] }],
    [
      "on a volume of its own under a read-only root file system",
      { readonlyRootfs: true, mounts: [volume("/run/roboco")] },
    ],
    ["on a volume of its own inside a tmpfs", { readonlyRootfs: true, mounts: [tmpfs("/run"), volume("/run/roboco")] }],
    ["on a bind above it", { mounts: [volume("/run", { kind: "bind" })] }],
    ["on a volume at /var/run, which is /run", { readonlyRootfs: true, mounts: [volume("/var/run/roboco")] }],
    [
      "beside a tmpfs of another name",
      { mounts: [tmpfs("/run/roboco2"), tmpfs("/run/lock"), tmpfs("/tmp"), tmpfs("/var/running")] },
    ],
    ["above a tmpfs in it", { mounts: [tmpfs("/run/roboco/cache")] }],
  ])("can be written %s", (_title, over) => {
    expect(check(over)).toEqual([]);
  });

  it.each<[string, Partial<ContainerView>, string]>([
    ["a read-only root file system", { readonlyRootfs: true }, "root file system is read-only"],
    [
      "a read-only root file system and a volume elsewhere",
      { readonlyRootfs: true, mounts: [volume("/data")] },
      "root file system is read-only",
    ],
    ["a tmpfs at it", { mounts: [tmpfs("/run/roboco")] }, "tmpfs at /run/roboco"],
    ["a tmpfs above it", { mounts: [tmpfs("/run")] }, "tmpfs at /run"],
    ["a tmpfs at /run/ with a slash", { mounts: [tmpfs("/run/")] }, "tmpfs at /run"],
    ["a tmpfs at /var/run, which is /run", { mounts: [tmpfs("/var/run")] }, "tmpfs at /run"],
    ["a tmpfs at it inside a volume", { mounts: [volume("/run"), tmpfs("/run/roboco")] }, "tmpfs at /run/roboco"],
    ["a read-only volume", { mounts: [readOnly("/run/roboco")] }, "mount at /run/roboco is read-only"],
    ["a read-only bind above it", { mounts: [readOnly("/run", "bind")] }, "mount at /run is read-only"],
  ])("cannot be written with %s, and the remedy names the mount to make", (_title, over, why) => {
    const [refusal, ...more] = check(over);
    expect(more).toEqual([]);
    expect(refusal).toMatchObject({ error: "RUN_DIRECTORY_UNUSABLE", missing: ["/run/roboco"] });
    expect(refusal?.message).toContain(why);
    expect(refusal?.remediate).toContain("/run/roboco");
  });

  it.each<[string, Partial<ContainerView>, { root: string; prefix: string }]>([
    ["the root file system", {}, { root: "/", prefix: "run/roboco" }],
    ["a volume at it", { mounts: [volume("/run/roboco")] }, { root: "/run/roboco", prefix: "" }],
    ["a mount above it", { mounts: [volume("/run")] }, { root: "/run", prefix: "roboco" }],
    [
      "the nearest of several mounts",
      { mounts: [volume("/run"), volume("/run/roboco/")] },
      { root: "/run/roboco", prefix: "" },
    ],
    [
      "the root file system, whatever is mounted elsewhere",
      { mounts: [volume("/run/rob"), volume("/data")] },
      { root: "/", prefix: "run/roboco" },
    ],
  ])("is written below %s", (_title, over, target) => {
    expect(runDirectoryTarget(agentView(over))).toEqual(target);
  });

  it("is always written to /run/roboco, whatever is mounted where", () => {
    const mounts = fc.array(
      fc
        .constantFrom("/", "/run", "/run/", "/run/roboco", "/var/run", "/var/run/roboco", "/run/x", "/data")
        .map((path) => volume(path)),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(mounts, (its) => {
        const { root, prefix } = runDirectoryTarget(agentView({ mounts: its }));
        expect(
          [root.replace(/\/$/, ""), prefix]
            .filter((part) => part !== "")
            .join("/")
            .replace(/^(?!\/)/, "/"),
        ).toBe("/run/roboco");
      }),
    );
  });
});

describe("the environment", () => {
  it.each(registry.flatMap((engine) => Object.keys(engine.agentVariables({ host: "", port: 0, password: "" }))))(
    "must not set %s already",
    (name) => {
      const [refusal] = check({ environment: { PATH: "/bin", [name]: "" } });
      expect(refusal).toMatchObject({ error: "ENVIRONMENT_CONFLICT", missing: [name] });
      expect(refusal?.remediate).toContain(name);
    },
  );

  it("is told of all its conflicts at once, also of engines that were not asked for", () => {
    const [refusal, ...more] = check({ environment: { ROBOCO_TEST_DB_HOST: "a", ROBOCO_TEST_MONGO_USER: "b" } });
    expect(more).toEqual([]);
    expect(refusal?.missing).toEqual(["ROBOCO_TEST_DB_HOST", "ROBOCO_TEST_MONGO_USER"]);
  });

  it("may hold names like those", () => {
    expect(
      check({ environment: { ROBOCO_TEST_DB: "x", ROBOCO_TEST_DB_HOSTS: "y", ROBOCO_ENTER_TIMEOUT: "1" } }),
    ).toEqual([]);
  });
});

describe("the shared mount", () => {
  it.each<[string, Mount[]]>([
    ["a read-only volume", [readOnly("/roboco")]],
    ["a read-only bind", [readOnly("/roboco", "bind")]],
    ["no mount", []],
    ["a writable mount of a like name", [volume("/roboco2")]],
  ])("may be %s for an agent with a role", (_title, mounts) => {
    expect(check({ mounts }, { role: "qa" })).toEqual([]);
  });

  it.each<[string, Mount[]]>([
    ["a writable volume", [volume("/roboco")]],
    ["a writable volume with a slash", [volume("/roboco/")]],
    ["a writable bind", [volume("/roboco", { kind: "bind" })]],
    ["a tmpfs", [tmpfs("/roboco")]],
    ["writable in a part", [readOnly("/roboco"), volume("/roboco/manifests")]],
  ])("must not be %s for an agent with a role", (_title, mounts) => {
    expect(codes({ mounts }, { role: "qa" })).toEqual(["SHARED_MOUNT_WRITABLE"]);
  });

  it("may be writable for an agent without a role", () => {
    expect(check({ mounts: [volume("/roboco")] })).toEqual([]);
  });
});

describe("the network mode", () => {
  it.each(["shop_default", "default", "bridge", ""])("may be %j", (networkMode) => {
    expect(check({ networkMode })).toEqual([]);
  });

  it.each(["host", "none", "container:0123"])("must not be %j for an agent that asks for sandboxes", (networkMode) => {
    const [refusal] = check({ networkMode });
    expect(refusal?.error).toBe("NETWORK_UNSUPPORTED");
    expect(refusal?.message).toContain(networkMode);
    expect(check({ networkMode }, { engines: [], role: "qa" })).toEqual([]);
  });
});

describe("chooseNetwork", () => {
  it.each<[string, Partial<ContainerView>, string | undefined, { network: string; join: boolean }]>([
    [
      "the agent's own user-defined network",
      { networkMode: "shop", networks: { shop: "" } },
      undefined,
      { network: "shop", join: false },
    ],
    [
      "the network of the mode before it is connected",
      { networkMode: "shop", networks: {} },
      undefined,
      { network: "shop", join: false },
    ],
    [
      "the first of several",
      { networkMode: "b", networks: { a: "", b: "" } },
      undefined,
      { network: "b", join: false },
    ],
    [
      "a user-defined network that the agent was connected to beside the default one",
      { networkMode: "bridge", networks: { bridge: "", shop: "" } },
      undefined,
      { network: "shop", join: false },
    ],
    [
      "the fallback, which the agent joins, when there is only the default bridge",
      { networkMode: "default", networks: { bridge: "" } },
      undefined,
      { network: "roboco-sandbox", join: true },
    ],
    [
      "the configured network, which the agent joins",
      { networkMode: "shop", networks: { shop: "" } },
      "agents",
      { network: "agents", join: true },
    ],
    [
      "the configured network, which the agent is on",
      { networkMode: "shop", networks: { shop: "", agents: "" } },
      "agents",
      { network: "agents", join: false },
    ],
  ])("takes %s", (_title, over, configured, expected) => {
    expect(chooseNetwork(agentView(over), configured)).toEqual(expected);
  });
});
