import type { ServerResponse } from "node:http";
import fc from "fast-check";
import type { Subscription } from "rxjs";
import { describe, expect, it, vi } from "vitest";
import { createEventStream, parseEvent } from "../../src/docker/event-stream.ts";
import type { EngineEvent } from "../../src/reconcile/ports.ts";
import { createFakeEngine, type FakeEngine, json } from "../support/fake-engine.ts";

const line = (id: string, labels: Record<string, string> = {}): string =>
  `${JSON.stringify({ Type: "container", Action: "start", Actor: { ID: id, Attributes: labels }, timeNano: 1 })}\n`;
const event = (id: string, labels: Record<string, string> = {}): EngineEvent => ({
  kind: "container",
  id,
  action: "start",
  labels,
});

const setUp = async () => {
  const engine: FakeEngine = await createFakeEngine();
  const open: ServerResponse[] = [];
  engine.on("GET", "/events", (response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    open.push(response);
  });
  const seen: EngineEvent[] = [];
  const subscription: Subscription = createEventStream(engine.docker).subscribe((one) => seen.push(one));
  const until = (predicate: () => void) => vi.waitFor(predicate, { timeout: 5000, interval: 5 });
  return {
    engine,
    open,
    seen,
    subscription,
    until,
    connected: (times = 1) => until(() => expect(seen.filter(({ kind }) => kind === "connected")).toHaveLength(times)),
    events: () => seen.filter(({ kind }) => kind === "container"),
    [Symbol.asyncDispose]: async () => {
      subscription.unsubscribe();
      await engine[Symbol.asyncDispose]();
    },
  };
};

describe("the event stream", () => {
  it("says connected with the headers, before any event", async () => {
    await using world = await setUp();
    await world.connected();
    expect(world.seen).toEqual([{ kind: "connected" }]);
  });

  it("asks for no more than it needs: containers' lives, and no exec or health events", async () => {
    await using world = await setUp();
    await world.connected();
    const filters: unknown = JSON.parse(world.engine.calls[0]?.query.get("filters") ?? "");
    expect(filters).toEqual({
      type: ["container"],
      event: ["create", "start", "die", "destroy", "pause", "unpause", "rename", "oom"],
    });
    expect([...(world.engine.calls[0]?.query.keys() ?? [])]).toEqual(["filters"]);
  });

  it("tells each event with its labels", async () => {
    await using world = await setUp();
    await world.connected();
    world.open[0]?.write(line("a", { app: "x" }) + line("b"));
    await world.until(() => expect(world.events()).toEqual([event("a", { app: "x" }), event("b")]));
  });

  it("tells events that come in pieces, cut within a line and within a character", async () => {
    await using world = await setUp();
    await world.connected();
    const bytes = Buffer.from(line("a", { name: "é😀" }) + line("b"));
    for (const byte of bytes) {
      await new Promise<void>((resolve) => world.open[0]?.write(Buffer.from([byte]), () => resolve()));
    }
    await world.until(() => expect(world.events()).toEqual([event("a", { name: "é😀" }), event("b")]));
  });

  it("goes on after a line that is no event, and says so", async () => {
    await using world = await setUp();
    await world.connected();
    world.open[0]?.write(`{"half":\n${line("a")}`);
    await world.until(() => expect(world.events()).toEqual([event("a")]));
    expect(world.seen).toContainEqual({ kind: "garbled", line: '{"half":' });
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["ends the stream, as an Engine that stops does", (response) => response.end()],
    ["drops the connection, as an Engine that is killed does", (response) => response.socket?.destroy()],
  ])("connects again when the Engine %s", async (_title, end) => {
    await using world = await setUp();
    await world.connected();
    const [response] = world.open;
    if (response) end(response);
    await world.connected(2);
    expect(world.seen.map(({ kind }) => kind)).toEqual(["connected", "disconnected", "connected"]);
    world.open[1]?.write(line("a"));
    await world.until(() => expect(world.events()).toEqual([event("a")]));
  });

  it("connects again when the Engine answers with an error at first", async () => {
    const engine = await createFakeEngine();
    engine.on("GET", "/events", json(500, { message: "starting" }));
    const seen: EngineEvent[] = [];
    const subscription = createEventStream(engine.docker).subscribe((one) => seen.push(one));
    await vi.waitFor(() => expect(seen).toHaveLength(1), { timeout: 5000 });
    expect(seen[0]).toMatchObject({ kind: "disconnected", err: { message: expect.stringContaining("starting") } });
    engine.on("GET", "/events", (response) => response.writeHead(200).flushHeaders());
    await vi.waitFor(() => expect(seen.at(-1)).toEqual({ kind: "connected" }), { timeout: 5000 });
    subscription.unsubscribe();
    await engine[Symbol.asyncDispose]();
  });

  it("holds one connection at a time, however often it connected again", async () => {
    await using world = await setUp();
    for (let time = 1; time <= 3; time += 1) {
      await world.connected(time);
      world.open.at(-1)?.end();
    }
    await world.connected(4);
    await world.until(() => expect(world.engine.connections()).toBe(1));
  });

  it("closes its connection when nobody listens any more, and opens no other", async () => {
    await using world = await setUp();
    await world.connected();
    world.subscription.unsubscribe();
    await world.until(() => expect(world.engine.connections()).toBe(0));
    expect(world.seen).toEqual([{ kind: "connected" }]);
    expect(world.open).toHaveLength(1);
  });

  it("stops to wait for the next try when nobody listens any more", async () => {
    await using world = await setUp();
    await world.connected();
    world.open[0]?.end();
    await world.until(() => expect(world.seen.at(-1)?.kind).toBe("disconnected"));
    world.subscription.unsubscribe();
    await world.engine[Symbol.asyncDispose]();
    expect(world.open).toHaveLength(1);
  });
});

describe("parseEvent", () => {
  it("never throws, and takes for an event only what has an id and an action", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        const parsed = parseEvent(text);
        expect(["container", "garbled"]).toContain(parsed.kind);
      }),
    );
    expect(parseEvent('{"Action":"start"}')).toMatchObject({ kind: "garbled" });
    expect(parseEvent('{"Action":"start","Actor":{"ID":"a"}}')).toEqual(event("a"));
  });

  it("keeps no more of a garbled line than a log can bear", () => {
    const parsed = parseEvent("x".repeat(10_000));
    expect(parsed.kind === "garbled" && parsed.line.length).toBe(200);
  });
});
