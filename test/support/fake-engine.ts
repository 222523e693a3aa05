import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import Docker from "dockerode";

interface Call {
  readonly method: string;
  /** Without the API version and the query. */
  readonly path: string;
  readonly version: string | undefined;
  readonly query: URLSearchParams;
  readonly body: Buffer;
}

export type Answer = (response: ServerResponse, call: Call, request: IncomingMessage) => unknown;

/** An HTTP server on a Unix socket that answers as a test says: where an Engine misbehaves, a real one will not do. */
export const createFakeEngine = async () => {
  const directory = await mkdtemp(join(tmpdir(), "roboco-engine-"));
  const socketPath = join(directory, "docker.sock");
  const routes: { method: string; path: RegExp; answer: Answer }[] = [];
  const calls: Call[] = [];
  const sockets = new Set<Socket>();

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://engine");
    const [, version, path = "/"] = /^(?:\/v([\d.]+))?(\/.*)$/.exec(url.pathname) ?? [];
    const call: Call = {
      method: request.method ?? "",
      path,
      version,
      query: url.searchParams,
      body: await buffer(request).catch(() => Buffer.alloc(0)),
    };
    calls.push(call);
    const route = routes.findLast((one) => one.method === call.method && one.path.test(path));
    if (route) await route.answer(response, call, request);
    else json(404, { message: "page not found" })(response, call, request);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));

  return {
    socketPath,
    calls,
    docker: new Docker({ socketPath, version: "v1.45" }),
    /** The latest route that fits wins. */
    on: (method: string, path: string | RegExp, answer: Answer): void => {
      routes.push({ method, path: typeof path === "string" ? new RegExp(`^${path}$`) : path, answer });
    },
    connections: () => sockets.size,
    callsTo: (method: string, path: RegExp) => calls.filter((call) => call.method === method && path.test(call.path)),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(directory, { recursive: true, force: true });
    },
  };
};

export type FakeEngine = Awaited<ReturnType<typeof createFakeEngine>>;

export const json =
  (status: number, body: unknown): Answer =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };

export const status =
  (code: number, message = "no"): Answer =>
  (response, call, request) =>
    code === 204 || code === 304 ? response.writeHead(code).end() : json(code, { message })(response, call, request);

/** Promises more than it sends, then drops the connection. */
export const cut =
  (text: string): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": text.length + 100 });
    response.write(text, () => response.socket?.destroy());
  };

export const inspection = (over: Record<string, unknown> = {}) => ({
  Id: "a".repeat(64),
  Name: "/ada",
  Created: "2026-01-01T00:00:00.5Z",
  State: {
    Status: "running",
    StartedAt: "2026-01-01T00:00:01Z",
    FinishedAt: "0001-01-01T00:00:00Z",
    ExitCode: 0,
    OOMKilled: false,
  },
  Config: { Env: ["PATH=/bin", "URL=a=b", "EMPTY="], Labels: { "roboco.sandbox.services": "redis" } },
  HostConfig: { NetworkMode: "shop", ReadonlyRootfs: false },
  NetworkSettings: { Networks: { shop: { IPAddress: "10.0.0.2" }, later: {} } },
  Mounts: [],
  Path: "sh",
  Args: ["-c", "x"],
  ...over,
});
