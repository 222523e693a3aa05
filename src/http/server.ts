import { createServer } from "node:http";
import type { Registry } from "prom-client";
import { ConfigError } from "../errors.ts";

export interface Health {
  readonly ready: boolean;
  readonly connected: boolean;
  /** Container ids of agents found at start-up that are not settled yet. */
  readonly pending: readonly string[];
}

/** GET /healthz (it runs), /readyz (200 when ready, else 503), /metrics. Rejects when the address cannot be bound. */
export const startHttp = async (
  listen: { host: string; port: number },
  source: { health: () => Health; registry: Registry },
): Promise<AsyncDisposable & { readonly port: number }> => {
  const server = createServer(async (request, response) => {
    const path = request.url?.split("?")[0];
    const health = source.health();
    const json = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(body)}\n`);
    };
    if (request.method !== "GET" && request.method !== "HEAD") json(405, { error: "only GET" });
    else if (path === "/healthz") json(200, { status: "ok" });
    else if (path === "/readyz") json(health.ready ? 200 : 503, health);
    else if (path === "/metrics") {
      const body = await source.registry.metrics();
      response.writeHead(200, { "content-type": source.registry.contentType }).end(body);
    } else json(404, { error: "no such path", paths: ["/healthz", "/readyz", "/metrics"] });
  });
  server.keepAliveTimeout = 1000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(
        new ConfigError(
          `ROBOCO_HTTP_LISTEN=${listen.host}:${listen.port}: cannot listen there: ${error.message}`,
          "Set ROBOCO_HTTP_LISTEN to an address of this host and a free port.",
          { cause: error },
        ),
      ),
    );
    server.listen(listen.port, listen.host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : listen.port,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
