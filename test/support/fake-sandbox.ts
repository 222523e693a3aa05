import { createServer } from "node:net";
import type { Endpoint, SandboxEngine } from "../../src/engines/engine.ts";
import { registry as realRegistry } from "../../src/engines/registry.ts";

/** A port on which something listens, as a sandbox's server would: what it says is the engine's `login`. */
export const listen = async (): Promise<{ port: number } & AsyncDisposable> => {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
};

export type Login = (engine: string, endpoint: Endpoint) => Promise<void>;

/** The real engines as data, with a login of the test's choice in place of a driver. */
export const fakeRegistry = (port: number, login: Login, over: Partial<SandboxEngine> = {}): readonly SandboxEngine[] =>
  realRegistry.map((engine) => ({ ...engine, port, login: (endpoint) => login(engine.name, endpoint), ...over }));
