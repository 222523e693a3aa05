import { describe, expect, it } from "vitest";
import type { Endpoint, SandboxEngine } from "../../src/engines/engine.ts";
import { awaitReady } from "../../src/reconcile/await-ready.ts";
import { fakeRegistry, listen } from "../support/fake-sandbox.ts";

const engineWith = (login: (endpoint: Endpoint) => Promise<void>, over: Partial<SandboxEngine> = {}): SandboxEngine => {
  const engine = fakeRegistry(1, (_engine, endpoint) => login(endpoint), over)[0];
  if (!engine) throw new Error("no engine");
  return engine;
};
const forever = new AbortController().signal;
const runs = async (): Promise<boolean> => true;

describe("awaitReady", () => {
  it("is ready once a login is answered, with the address and the password it was given", async () => {
    await using server = await listen();
    const seen: Endpoint[] = [];
    const engine = engineWith(async (endpoint) => {
      seen.push(endpoint);
    });
    const endpoint = { host: "127.0.0.1", port: server.port, password: "p" };
    await expect(awaitReady(engine, endpoint, { isRunning: runs, signal: forever })).resolves.toEqual({
      kind: "ready",
    });
    expect(seen).toEqual([endpoint]);
  });

  it("tries again while the server says no", async () => {
    await using server = await listen();
    let attempts = 0;
    const engine = engineWith(async () => {
      attempts += 1;
      if (attempts < 4) throw new Error("the database system is starting up");
    });
    const endpoint = { host: "127.0.0.1", port: server.port, password: "p" };
    await expect(awaitReady(engine, endpoint, { isRunning: runs, signal: forever })).resolves.toEqual({
      kind: "ready",
    });
    expect(attempts).toBe(4);
  });

  it("does not take an open port for a server that answers", async () => {
    await using server = await listen();
    const engine = engineWith(() => Promise.reject(new Error("NOAUTH")), { readyWithinMs: 60 });
    const endpoint = { host: "127.0.0.1", port: server.port, password: "p" };
    await expect(awaitReady(engine, endpoint, { isRunning: runs, signal: forever })).resolves.toEqual({
      kind: "timeout",
      lastError: "NOAUTH",
    });
  });

  it("asks no driver while nothing listens, and tells the last reason when the time is over", async () => {
    let attempts = 0;
    const engine = engineWith(
      async () => {
        attempts += 1;
      },
      { readyWithinMs: 60 },
    );
    const { port, ...closed } = await listen();
    await closed[Symbol.asyncDispose]();
    const readiness = await awaitReady(
      engine,
      { host: "127.0.0.1", port, password: "p" },
      { isRunning: runs, signal: forever },
    );
    expect(readiness).toEqual({ kind: "timeout", lastError: expect.stringContaining("ECONNREFUSED") });
    expect(attempts).toBe(0);
  });

  it("does not wait for a server that ended", async () => {
    await using server = await listen();
    const engine = engineWith(() => Promise.reject(new Error("no")));
    const endpoint = { host: "127.0.0.1", port: server.port, password: "p" };
    await expect(awaitReady(engine, endpoint, { isRunning: async () => false, signal: forever })).resolves.toEqual({
      kind: "exited",
    });
  });

  it("rejects with the reason when it is cancelled", async () => {
    await using server = await listen();
    const cancel = new AbortController();
    const engine = engineWith(async () => {
      cancel.abort(new Error("gone"));
      throw new Error("no");
    });
    const endpoint = { host: "127.0.0.1", port: server.port, password: "p" };
    await expect(awaitReady(engine, endpoint, { isRunning: runs, signal: cancel.signal })).rejects.toThrow();
    expect(cancel.signal.aborted).toBe(true);
  });
});
