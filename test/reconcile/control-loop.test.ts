import { Subject } from "rxjs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createControlLoop } from "../../src/reconcile/control-loop.ts";
import type { EngineEvent } from "../../src/reconcile/ports.ts";
import type { Outcome } from "../../src/reconcile/reconcile.ts";
import { type Deferred, deferred } from "../support/deferred.ts";
import { createTestLog } from "../support/log.ts";

const agent = (id: string, action = "create"): EngineEvent => ({
  kind: "container",
  id,
  action,
  labels: { "roboco.sandbox.services": "redis" },
});
const sandboxOf = (owner: string | undefined): EngineEvent => ({
  kind: "container",
  id: "sandbox",
  action: "die",
  labels: { "roboco.sandbox": "1", ...(owner ? { "roboco.sandbox.owner.container": owner } : {}) },
});

const setUp = () => {
  const events = new Subject<EngineEvent>();
  const { log, of, lines } = createTestLog();
  const drain = new AbortController();
  const runs: string[] = [];
  const outcomes: Outcome[] = [];
  const listings: (readonly string[])[] = [];
  let keys: readonly string[] | Error = [];
  let swept: number | Error = 0;
  let sweeps = 0;
  let result: (key: string) => Partial<Outcome> | Promise<Partial<Outcome>> = () => ({});
  const loop = createControlLoop({
    events,
    listKeys: async () => {
      if (keys instanceof Error) throw keys;
      return keys;
    },
    reconcile: async (key) => {
      runs.push(key);
      return { key, status: "ready", changed: false, wake: [], ...(await result(key)) };
    },
    sweep: async () => {
      sweeps += 1;
      if (swept instanceof Error) throw swept;
      return swept;
    },
    tickMs: 30_000,
    log,
    onOutcome: (outcome) => outcomes.push(outcome),
    onListed: (listed) => listings.push(listed),
  });
  let isDone = false;
  const done = loop.run(drain.signal).then(() => {
    isDone = true;
  });
  return {
    events,
    log: of,
    lines,
    loop,
    runs,
    outcomes,
    listings,
    drain,
    done,
    isDone: () => isDone,
    sweeps: () => sweeps,
    lists: (next: readonly string[] | Error) => {
      keys = next;
    },
    sweepsAway: (next: number | Error) => {
      swept = next;
    },
    answers: (next: typeof result) => {
      result = next;
    },
    /** Lets everything that is due now happen. */
    settle: () => vi.advanceTimersByTimeAsync(0),
    after: (ms: number) => vi.advanceTimersByTimeAsync(ms),
  };
};

type World = ReturnType<typeof setUp>;
let world: World;

beforeEach(() => {
  vi.useFakeTimers();
  world = setUp();
});
afterEach(async () => {
  world.drain.abort();
  await world.settle();
  vi.useRealTimers();
});

describe("the control loop", () => {
  it("looks at nothing before the Engine's events are there", async () => {
    world.lists(["a"]);
    await world.after(1000);
    expect(world.runs).toEqual([]);
  });

  it("lists all keys when the event stream is there, and looks at each", async () => {
    world.lists(["a", "b"]);
    world.events.next({ kind: "connected" });
    await world.settle();
    expect(world.runs).toEqual(["a", "b"]);
    expect(world.listings).toEqual([["a", "b"]]);
    expect(world.log("engine.connected")).toEqual([{ again: false }]);
  });

  it("lists again after each reconnect, for events may be lost", async () => {
    world.events.next({ kind: "connected" });
    await world.settle();
    world.events.next({ kind: "disconnected" });
    world.lists(["a"]);
    world.events.next({ kind: "connected" });
    await world.settle();
    expect(world.runs).toEqual(["a"]);
    expect(world.log("engine.connected")).toEqual([{ again: false }, { again: true }]);
    expect(world.log("engine.disconnected")).toHaveLength(1);
  });

  it("lists again after a line that is no event, for it may have been one", async () => {
    world.lists(["a"]);
    world.events.next({ kind: "garbled", line: "{" });
    await world.settle();
    expect(world.runs).toEqual(["a"]);
    expect(world.log("engine.garbled")).toEqual([{ line: "{" }]);
  });

  it("looks at an agent when anything happens to it", async () => {
    world.events.next(agent("a"));
    await world.settle();
    world.events.next(agent("a", "die"));
    await world.settle();
    expect(world.runs).toEqual(["a", "a"]);
  });

  it("looks at the owner when anything happens to a sandbox", async () => {
    world.events.next(sandboxOf("a"));
    world.events.next(sandboxOf(undefined));
    await world.settle();
    expect(world.runs).toEqual(["a"]);
  });

  it("does not look at containers without a label of ours", async () => {
    world.events.next({ kind: "container", id: "x", action: "start", labels: { app: "x" } });
    await world.settle();
    expect(world.runs).toEqual([]);
  });

  it("looks at everything again on each tick, after the sweep", async () => {
    world.lists(["a"]);
    await world.after(29_999);
    expect([world.runs, world.sweeps()]).toEqual([[], 0]);
    await world.after(1);
    expect([world.runs, world.sweeps()]).toEqual([["a"], 1]);
    await world.after(30_000);
    expect([world.runs, world.sweeps()]).toEqual([["a", "a"], 2]);
    expect(world.log("janitor.swept")).toEqual([]);
  });

  it("says how much a sweep took away", async () => {
    world.sweepsAway(3);
    await world.after(30_000);
    expect(world.log("janitor.swept")).toEqual([{ removed: 3 }]);
  });

  it.each(["list", "sweep"])("lists again a second after a %s that failed, and says so", async (what) => {
    if (what === "list") world.lists(new Error("no"));
    else world.sweepsAway(new Error("no"));
    await world.after(30_000);
    expect(world.log("reconcile.retried")).toEqual([expect.objectContaining({ step: "list", retryAfterMs: 1000 })]);
    expect(world.listings).toEqual([]);
    world.lists(["a"]);
    await world.after(1000);
    expect(world.runs).toEqual(["a"]);
  });

  it("keeps the ticks going after a list that failed", async () => {
    world.lists(new Error("no"));
    await world.after(60_000);
    world.lists(["a"]);
    await world.after(30_000);
    expect(world.runs.length).toBeGreaterThan(0);
  });
});

describe("a run", () => {
  it("that the Engine failed is tried again, later each time, up to 15 s", async () => {
    world.answers(() => ({ status: "failed", err: new Error("500") }));
    world.events.next(agent("a"));
    await world.settle();
    for (const afterMs of [200, 400, 800, 1600, 3200, 6400, 12_800, 15_000, 15_000]) {
      const before = world.runs.length;
      await world.after(afterMs - 1);
      expect(world.runs).toHaveLength(before);
      // A tick may fall into the wait: nothing is listed, so it runs nothing.
      await world.after(1);
      expect(world.runs).toHaveLength(before + 1);
    }
    expect(world.log("reconcile.retried")[0]).toMatchObject({ container: "a", attempt: 1, retryAfterMs: 200 });
  });

  it("that went well after failures starts from the shortest wait the next time", async () => {
    let fails = true;
    world.answers(() => (fails ? { status: "failed", err: new Error("500") } : {}));
    world.events.next(agent("a"));
    await world.after(200);
    fails = false;
    await world.after(400);
    expect(world.runs).toHaveLength(3);
    fails = true;
    world.events.next(agent("a"));
    await world.settle();
    expect(world.log("reconcile.retried").at(-1)).toMatchObject({ attempt: 1, retryAfterMs: 200 });
  });

  it("that fails keeps no other key from its turn", async () => {
    world.answers((key) => (key === "a" ? { status: "failed", err: new Error("500") } : {}));
    world.events.next(agent("a"));
    world.events.next(agent("b"));
    await world.settle();
    expect(world.outcomes.map(({ key, status }) => [key, status])).toEqual([
      ["a", "failed"],
      ["b", "ready"],
    ]);
  });

  it("that asks for a second look gets it then", async () => {
    world.answers(() => (world.runs.length === 1 ? { lookAgainAfterMs: 2000 } : {}));
    world.events.next(agent("a", "die"));
    await world.after(1999);
    expect(world.runs).toEqual(["a"]);
    await world.after(1);
    expect(world.runs).toEqual(["a", "a"]);
  });

  it("gathers no timers for a key that is looked at again and again", async () => {
    world.answers(() => ({ lookAgainAfterMs: 2000 }));
    for (let time = 0; time < 5; time += 1) {
      world.events.next(agent("a"));
      await world.settle();
    }
    await world.after(2000);
    expect(world.runs).toHaveLength(6);
  });

  it("wakes those who waited for its change", async () => {
    world.answers((key) => (key === "old" ? { wake: ["new"], changed: true } : {}));
    world.events.next(agent("old", "destroy"));
    await world.settle();
    expect(world.runs).toEqual(["old", "new"]);
  });

  it("is followed by one more for all that happened during it", async () => {
    const gates: Deferred<Partial<Outcome>>[] = [];
    world.answers(() => {
      const gate = deferred<Partial<Outcome>>();
      gates.push(gate);
      return gate.promise;
    });
    world.events.next(agent("a"));
    await world.settle();
    for (const action of ["start", "die", "destroy"]) world.events.next(agent("a", action));
    await world.settle();
    expect(world.runs).toEqual(["a"]);
    gates[0]?.resolve({});
    await world.settle();
    expect(world.runs).toEqual(["a", "a"]);
    gates[1]?.resolve({});
  });
});

describe("drift", () => {
  it("is a change that a tick found and no event told of", async () => {
    world.lists(["a"]);
    world.answers(() => ({ changed: true, status: "provisioning" }));
    await world.after(30_000);
    expect(world.log("drift.found")).toEqual([{ container: "a", status: "provisioning" }]);
  });

  it.each<[string, Partial<Outcome>]>([
    ["a tick that changed nothing", { changed: false }],
    ["an end, which the janitor's own clock brings", { changed: true, status: "gone" }],
    ["an owner never started, which the janitor's own clock brings", { changed: true, status: "idle" }],
  ])("is not %s", async (_title, outcome) => {
    world.lists(["a"]);
    world.answers(() => outcome);
    await world.after(30_000);
    expect(world.runs).toEqual(["a"]);
    expect(world.log("drift.found")).toEqual([]);
  });

  it("is not what an event told of", async () => {
    world.answers(() => ({ changed: true, status: "provisioning" }));
    world.lists(["a"]);
    world.events.next({ kind: "connected" });
    await world.settle();
    world.events.next(agent("a"));
    await world.settle();
    expect(world.log("drift.found")).toEqual([]);
  });
});

describe("a drain", () => {
  it("ends at once when nothing runs", async () => {
    world.drain.abort();
    await world.settle();
    expect(world.isDone()).toBe(true);
  });

  it("lets the runs under way end first", async () => {
    const gate = deferred<Partial<Outcome>>();
    world.answers(() => gate.promise);
    world.events.next(agent("a"));
    await world.settle();
    world.drain.abort();
    await world.settle();
    expect(world.isDone()).toBe(false);
    gate.resolve({});
    await world.settle();
    expect(world.isDone()).toBe(true);
    expect(world.outcomes).toHaveLength(1);
  });

  it("begins no new work: no event, tick, retry or second look", async () => {
    const gate = deferred<Partial<Outcome>>();
    world.answers(() => gate.promise);
    world.events.next(agent("a"));
    await world.settle();
    world.drain.abort();
    gate.resolve({ status: "failed", err: new Error("500"), wake: ["b"] });
    world.events.next(agent("c"));
    world.loop.enqueue("d");
    await world.after(60_000);
    expect(world.runs).toEqual(["a"]);
    expect(world.isDone()).toBe(true);
  });

  it("leaves the Engine's event stream and no timer", async () => {
    world.answers(() => ({ lookAgainAfterMs: 60_000 }));
    world.events.next(agent("a"));
    await world.settle();
    expect(world.events.observed).toBe(true);
    world.drain.abort();
    await world.settle();
    expect(world.events.observed).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("that was asked for before the start starts nothing", async () => {
    const late = setUp();
    late.drain.abort();
    late.lists(["a"]);
    late.events.next({ kind: "connected" });
    await late.settle();
    expect(late.isDone()).toBe(true);
    expect(late.runs).toEqual([]);
  });
});
