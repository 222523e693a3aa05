import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Endpoint, SandboxEngine } from "../engines/engine.ts";
import { toError } from "../errors.ts";

/** Between two attempts; a refused connection costs 0.05 ms, a whole login under 5 (docs/adr/0002). */
const attemptEveryMs = 25;
/** How soon an exit of the server is noticed; an inspect costs 0.4 ms. */
const lookEveryMs = 250;
const loginTimeoutMs = 2000;

export type Readiness =
  | { readonly kind: "ready" }
  | { readonly kind: "exited" }
  | { readonly kind: "timeout"; readonly lastError: string };

/**
 * Logs in over the network until the answer is right: a server that is not the final one has no such address.
 * `isRunning` is asked now and then, so that a server that ended is not waited for. Rejects only when cancelled.
 */
export const awaitReady = async (
  engine: SandboxEngine,
  endpoint: Endpoint,
  { isRunning, signal }: { isRunning: () => Promise<boolean>; signal: AbortSignal },
): Promise<Readiness> => {
  const startedAt = performance.now();
  let lookedAt = startedAt;
  let lastError = "no attempt was made";
  while (true) {
    signal.throwIfAborted();
    try {
      // Drivers wait and retry on their own terms when nothing listens yet; a plain connection tells at once.
      await canConnect(endpoint, loginTimeoutMs);
      await engine.login(endpoint, { timeoutMs: loginTimeoutMs });
      return { kind: "ready" };
    } catch (error) {
      lastError = toError(error).message;
    }
    const now = performance.now();
    if (now - lookedAt >= lookEveryMs) {
      if (!(await isRunning())) return { kind: "exited" };
      lookedAt = performance.now();
    }
    if (now - startedAt >= engine.readyWithinMs) return { kind: "timeout", lastError };
    await delay(attemptEveryMs, undefined, { signal });
  }
};

const canConnect = ({ host, port }: Endpoint, timeoutMs: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    socket.setTimeout(timeoutMs, () =>
      socket.destroy(new Error(`no answer from ${host}:${port} within ${timeoutMs} ms`)),
    );
    socket.once("connect", () => {
      socket.destroy();
      resolve();
    });
    socket.once("error", reject);
  });
