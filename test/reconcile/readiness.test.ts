import { describe, expect, it } from "vitest";
import { createReadiness } from "../../src/reconcile/readiness.ts";
import type { Outcome } from "../../src/reconcile/reconcile.ts";

const outcome = (key: string, status: Outcome["status"]): Outcome => ({ key, status, changed: false, wake: [] });

const connected = () => {
  let times = 0;
  const readiness = createReadiness(() => {
    times += 1;
  });
  readiness.onEvent({ kind: "connected" });
  return { readiness, times: () => times };
};

describe("the health gate", () => {
  it("is shut until the first listing is there", () => {
    const { readiness, times } = connected();
    readiness.onOutcome(outcome("a", "ready"));
    expect(readiness.isReady()).toBe(false);
    expect(times()).toBe(0);
  });

  it("opens at once when there is no agent", () => {
    const { readiness, times } = connected();
    readiness.onListed([]);
    expect(readiness.isReady()).toBe(true);
    expect(times()).toBe(1);
  });

  it.each<Outcome["status"]>(["ready", "refused", "waiting", "idle", "gone", "stranger"])(
    "opens once the last agent of the first listing is %s",
    (status) => {
      const { readiness } = connected();
      readiness.onListed(["a", "b"]);
      readiness.onOutcome(outcome("a", "ready"));
      expect(readiness.health()).toEqual({ ready: false, connected: true, pending: ["b"] });
      readiness.onOutcome(outcome("b", status));
      expect(readiness.health()).toEqual({ ready: true, connected: true, pending: [] });
    },
  );

  it.each<Outcome["status"]>(["provisioning", "failed"])("stays shut while an agent is %s", (status) => {
    const { readiness } = connected();
    readiness.onListed(["a"]);
    readiness.onOutcome(outcome("a", status));
    expect(readiness.isReady()).toBe(false);
  });

  it("does not wait for an agent that was settled before the listing was there", () => {
    const { readiness } = connected();
    readiness.onOutcome(outcome("a", "ready"));
    readiness.onListed(["a"]);
    expect(readiness.isReady()).toBe(true);
  });

  it("stays open for agents that come later, which the pause holds", () => {
    const { readiness, times } = connected();
    readiness.onListed([]);
    readiness.onListed(["late"]);
    readiness.onOutcome(outcome("late", "provisioning"));
    expect(readiness.isReady()).toBe(true);
    expect(times()).toBe(1);
  });

  it("is shut while the Engine is away, and open again when it is back", () => {
    const { readiness } = connected();
    readiness.onListed([]);
    readiness.onEvent({ kind: "disconnected" });
    expect(readiness.health()).toMatchObject({ ready: false, connected: false });
    expect([readiness.isReady(), readiness.isConnected()]).toEqual([false, false]);
    readiness.onEvent({ kind: "connected" });
    expect(readiness.health()).toMatchObject({ ready: true, connected: true });
    expect([readiness.isReady(), readiness.isConnected()]).toEqual([true, true]);
  });

  it("counts the agents that are there, and no stranger", () => {
    const { readiness } = connected();
    for (const [key, status] of [
      ["a", "ready"],
      ["b", "refused"],
      ["c", "stranger"],
      ["d", "ready"],
    ] as const) {
      readiness.onOutcome(outcome(key, status));
    }
    readiness.onOutcome(outcome("d", "gone"));
    expect(readiness.countAgents()).toBe(2);
  });
});
