import {
  defer,
  exhaustMap,
  from,
  fromEvent,
  lastValueFrom,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  Subject,
  takeUntil,
  tap,
  timer,
} from "rxjs";
import { hasAgentLabel, isSandbox, labels } from "../contract/labels.ts";
import type { Log } from "../contract/log-events.ts";
import { toError } from "../errors.ts";
import type { EngineEvent, EventStream } from "./ports.ts";
import type { Outcome } from "./reconcile.ts";
import { serializeByKey } from "./serialize-by-key.ts";

export interface ControlLoopOptions {
  readonly events: EventStream;
  readonly listKeys: () => Promise<readonly string[]>;
  readonly reconcile: (key: string) => Promise<Outcome>;
  /** Beside the listing of a tick: what belongs to no key. Resolves to how many things it removed. */
  readonly sweep: () => Promise<number>;
  readonly tickMs: number;
  readonly log: Log;
  readonly onEvent?: (event: EngineEvent) => void;
  readonly onOutcome: (outcome: Outcome) => void;
  /** With all keys of a listing, once it is there. */
  readonly onListed: (keys: readonly string[]) => void;
}

export interface ControlLoop {
  /** Runs until `drain` is aborted and the runs under way have ended. */
  run(drain: AbortSignal): Promise<void>;
  enqueue(key: string, afterMs?: number): void;
}

/** More runs at once than an Engine likes; each takes a few short calls. */
const maxRuns = 32;
const firstRetryMs = 200;
const maxRetryMs = 15_000;
const relistAfterMs = 1000;

/** Events, listings, ticks and second looks feed one queue of keys; one run per key at a time. */
export const createControlLoop = (options: ControlLoopOptions): ControlLoop => {
  const { events, log, reconcile } = options;
  const requeued = new Subject<string>();
  const relist = new Subject<void>();
  const timers = new Map<string, NodeJS.Timeout>();
  const attempts = new Map<string, number>();
  /** Keys that came by a tick and by nothing else since. */
  const ticked = new Set<string>();
  let wasConnected = false;

  /** One timer a key, the latest wins: a key that is looked at again anyway must not gather timers. */
  const enqueue = (key: string, afterMs = 0): void => {
    clearTimeout(timers.get(key));
    timers.delete(key);
    if (afterMs === 0) requeued.next(key);
    else
      timers.set(
        key,
        setTimeout(() => enqueue(key), afterMs),
      );
  };

  const list = (isTick: boolean): Observable<string> =>
    defer(async () => {
      try {
        if (isTick) {
          const swept = await options.sweep();
          if (swept > 0) log("janitor.swept", { removed: swept });
        }
        const keys = await options.listKeys();
        log("resync.completed", { keys: keys.length, tick: isTick });
        options.onListed(keys);
        if (isTick) for (const key of keys) ticked.add(key);
        return keys;
      } catch (error) {
        log("reconcile.retried", { step: "list", err: toError(error), retryAfterMs: relistAfterMs });
        setTimeout(() => relist.next(), relistAfterMs).unref();
        return [];
      }
    }).pipe(mergeMap((keys) => keys));

  const onEvent = (event: EngineEvent): Observable<string> => {
    options.onEvent?.(event);
    switch (event.kind) {
      case "connected":
        log("engine.connected", { again: wasConnected });
        wasConnected = true;
        return list(false);
      case "disconnected":
        log("engine.disconnected", event.err ? { err: event.err } : {});
        return of();
      case "garbled":
        log("engine.garbled", { line: event.line });
        return list(false);
      case "container":
        return from(keysOf(event)).pipe(tap((key) => ticked.delete(key)));
    }
  };

  const settle = (outcome: Outcome): void => {
    const { key, err } = outcome;
    if (err) {
      const attempt = (attempts.get(key) ?? 0) + 1;
      attempts.set(key, attempt);
      const retryAfterMs = Math.min(maxRetryMs, firstRetryMs * 2 ** (attempt - 1));
      log("reconcile.retried", { container: key, attempt, retryAfterMs, err });
      enqueue(key, retryAfterMs);
    } else {
      attempts.delete(key);
      if (outcome.lookAgainAfterMs !== undefined) enqueue(key, outcome.lookAgainAfterMs);
    }
    if (ticked.delete(key) && outcome.changed && outcome.status !== "gone" && outcome.status !== "idle") {
      log("drift.found", { container: key, status: outcome.status });
    }
    for (const peer of outcome.wake) enqueue(peer);
    options.onOutcome(outcome);
  };

  return {
    enqueue,
    run: async (drain) => {
      const drained = drain.aborted ? of(true) : fromEvent(drain, "abort");
      const keys = merge(
        events.pipe(mergeMap(onEvent)),
        timer(options.tickMs, options.tickMs).pipe(exhaustMap(() => list(true))),
        relist.pipe(exhaustMap(() => list(false))),
        requeued,
      ).pipe(takeUntil(drained));
      const outcomes = keys.pipe(serializeByKey(reconcile, maxRuns), tap(settle));
      try {
        await lastValueFrom(outcomes.pipe(map(() => undefined)), { defaultValue: undefined });
      } finally {
        for (const pending of timers.values()) clearTimeout(pending);
      }
    },
  };
};

/** An event carries only keys: its own container, or the owner of the sandbox that it is about. */
const keysOf = (event: EngineEvent & { kind: "container" }): string[] => {
  const owner = event.labels[labels.ownerContainer];
  if (hasAgentLabel(event.labels)) return [event.id];
  return isSandbox(event.labels) && owner ? [owner] : [];
};
