import type { EngineEvent } from "./ports.ts";
import type { Outcome } from "./reconcile.ts";

const settled: ReadonlySet<Outcome["status"]> = new Set(["stranger", "gone", "idle", "waiting", "ready", "refused"]);

/**
 * The compose health gate: ready once every agent of the first listing is provisioned, refused or waiting for a
 * predecessor to go. It stays open then: agents that come later are held by the pause.
 */
export const createReadiness = (onReady: () => void) => {
  const statuses = new Map<string, Outcome["status"]>();
  let pending: Set<string> | undefined;
  let isConnected = false;
  let isReady = false;

  const check = (): void => {
    if (isReady || pending === undefined || pending.size > 0) return;
    isReady = true;
    onReady();
  };

  return {
    isConnected: () => isConnected,
    isReady: () => isReady && isConnected,
    countAgents: () => [...statuses.values()].filter((status) => status !== "stranger" && status !== "gone").length,
    health: () => ({ ready: isReady && isConnected, connected: isConnected, pending: [...(pending ?? [])] }),
    onEvent: (event: EngineEvent): void => {
      if (event.kind === "connected") isConnected = true;
      if (event.kind === "disconnected") isConnected = false;
    },
    onListed: (keys: readonly string[]): void => {
      pending ??= new Set(keys.filter((key) => !settled.has(statuses.get(key) ?? "failed")));
      check();
    },
    onOutcome: ({ key, status }: Outcome): void => {
      if (status === "gone") statuses.delete(key);
      else statuses.set(key, status);
      if (settled.has(status)) pending?.delete(key);
      check();
    },
  };
};
