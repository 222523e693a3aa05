import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { healthcheck } from "../../src/cli/healthcheck.ts";
import { logEvents } from "../../src/contract/log-events.ts";
import { ConfigError } from "../../src/errors.ts";
import { createMetrics, type Metrics } from "../../src/http/metrics.ts";
import { type Health, startHttp } from "../../src/http/server.ts";
import { createTestLog } from "../support/log.ts";

let health: Health;
let metrics: Metrics;
let server: Awaited<ReturnType<typeof startHttp>>;

beforeEach(async () => {
  health = { ready: true, connected: true, pending: [] };
  metrics = createMetrics({ isConnected: () => health.connected, isReady: () => health.ready, agents: () => 3 });
  server = await startHttp({ host: "127.0.0.1", port: 0 }, { health: () => health, registry: metrics.registry });
});
afterEach(() => server[Symbol.asyncDispose]());

const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${server.port}${path}`, init);

describe("the HTTP server", () => {
  it("says on /healthz that it runs, also while it is not ready", async () => {
    health = { ready: false, connected: false, pending: ["a"] };
    const response = await ask("/healthz");
    expect([response.status, await response.json()]).toEqual([200, { status: "ok" }]);
  });

  it("says 200 on /readyz when it is ready", async () => {
    const response = await ask("/readyz");
    expect([response.status, await response.json()]).toEqual([200, health]);
  });

  it("says 503 on /readyz when it is not, and whom it waits for", async () => {
    health = { ready: false, connected: true, pending: ["a", "b"] };
    const response = await ask("/readyz?verbose=1");
    expect([response.status, await response.json()]).toEqual([503, health]);
  });

  it("gives its metrics in Prometheus' format", async () => {
    const response = await ask("/metrics");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    const text = await response.text();
    expect(text).toMatch(/^roboco_ready 1$/m);
    expect(text).toMatch(/^roboco_engine_connected 1$/m);
    expect(text).toMatch(/^roboco_agents 3$/m);
  });

  it("answers HEAD without a body", async () => {
    const response = await ask("/readyz", { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });

  it.each(["/", "/healthz/", "/admin", "//readyz"])("says 404 for %s, and what there is", async (path) => {
    const response = await ask(path);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ paths: ["/healthz", "/readyz", "/metrics"] });
  });

  it.each(["POST", "PUT", "DELETE", "PATCH"])("says 405 for %s: it changes nothing", async (method) => {
    expect((await ask("/readyz", { method })).status).toBe(405);
  });

  it("closes though a client keeps its connection", async () => {
    await ask("/healthz");
    await server[Symbol.asyncDispose]();
    await expect(ask("/healthz")).rejects.toThrow();
  });

  it("says what to set when the port is taken", async () => {
    const taken = startHttp(
      { host: "127.0.0.1", port: server.port },
      { health: () => health, registry: metrics.registry },
    );
    await expect(taken).rejects.toBeInstanceOf(ConfigError);
    await expect(taken).rejects.toMatchObject({ remediate: expect.stringContaining("ROBOCO_HTTP_LISTEN") });
  });
});

describe("the metrics", () => {
  it("count every log event from zero, and pass it on", async () => {
    const { log, lines } = createTestLog();
    const counting = metrics.counting(log);
    counting("agent.refused", { agent: "ada" });
    counting("agent.refused", { agent: "bob" });
    const text = await metrics.registry.metrics();
    expect(text).toMatch(/^roboco_log_events_total\{event="agent\.refused"\} 2$/m);
    for (const event of Object.keys(logEvents)) expect(text).toContain(`roboco_log_events_total{event="${event}"}`);
    expect(lines.map(({ fields }) => fields.agent)).toEqual(["ada", "bob"]);
  });

  it("tell how long each engine's sandboxes take", async () => {
    const counting = metrics.counting(() => {});
    counting("sandbox.ready", { engine: "redis", durationMs: 400 });
    const text = await metrics.registry.metrics();
    expect(text).toMatch(/^roboco_sandbox_ready_seconds_bucket\{le="0\.25",engine="redis"\} 0$/m);
    expect(text).toMatch(/^roboco_sandbox_ready_seconds_bucket\{le="0\.5",engine="redis"\} 1$/m);
    expect(text).toMatch(/^roboco_sandbox_ready_seconds_sum\{engine="redis"\} 0\.4$/m);
  });

  it("tell events and looks by kind", async () => {
    metrics.engineEvents.inc({ action: "die" });
    metrics.reconciles.inc({ status: "ready" });
    const text = await metrics.registry.metrics();
    expect(text).toMatch(/^roboco_engine_events_total\{action="die"\} 1$/m);
    expect(text).toMatch(/^roboco_reconcile_total\{status="ready"\} 1$/m);
  });
});

describe("the healthcheck command", () => {
  it("is 0 when the sidecar is ready", async () => {
    await expect(healthcheck({ listen: { host: "127.0.0.1", port: server.port } })).resolves.toEqual({
      code: 0,
      output: JSON.stringify(health),
    });
  });

  it("is 1 when it is not ready yet, and says whom it waits for", async () => {
    health = { ready: false, connected: true, pending: ["a"] };
    const { code, output } = await healthcheck({ listen: { host: "127.0.0.1", port: server.port } });
    expect(code).toBe(1);
    expect(JSON.parse(output)).toEqual(health);
  });

  it("asks on loopback when the sidecar listens on every address", async () => {
    await expect(healthcheck({ listen: { host: "0.0.0.0", port: server.port } })).resolves.toMatchObject({ code: 0 });
  });

  it("is 1 when no sidecar runs, and says where it asked", async () => {
    const { port } = server;
    await server[Symbol.asyncDispose]();
    const { code, output } = await healthcheck({ listen: { host: "127.0.0.1", port } });
    expect(code).toBe(1);
    expect(output).toContain(`127.0.0.1:${port}`);
  });
});
