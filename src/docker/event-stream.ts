import { setTimeout as delay } from "node:timers/promises";
import type Docker from "dockerode";
import { Observable } from "rxjs";
import { z } from "zod";
import { isCancelled, toError } from "../errors.ts";
import type { EngineEvent, EventStream } from "../reconcile/ports.ts";
import { call } from "./call.ts";
import { createLineSplitter } from "./lines.ts";

/** Filtered by the Engine: exec and health events would be most of the stream, and carry whole command lines. */
const actions = ["create", "start", "die", "destroy", "pause", "unpause", "rename", "oom"];

const firstDelayMs = 100;
const maxDelayMs = 10_000;
/** Only a stream that lasted resets the back-off: an Engine that is booting closes each at once. */
const stableMs = 30_000;

const eventLine = z.looseObject({
  Action: z.string(),
  Actor: z.looseObject({ ID: z.string(), Attributes: z.record(z.string(), z.string()).optional() }),
});

/** One cold observable that lasts: `connected` with each connection's headers, then its events, then `disconnected`. */
export const createEventStream = (docker: Docker): EventStream =>
  new Observable<EngineEvent>((out) => {
    const stop = new AbortController();
    const run = async (): Promise<void> => {
      let attempt = 0;
      while (!stop.signal.aborted) {
        const startedAt = performance.now();
        const end = await readOnce(docker, stop.signal, (event) => out.next(event));
        if (isCancelled(stop.signal)) return;
        out.next(end === undefined ? { kind: "disconnected" } : { kind: "disconnected", err: end });
        attempt = performance.now() - startedAt >= stableMs ? 0 : attempt + 1;
        await delay(jitter(Math.min(maxDelayMs, firstDelayMs * 2 ** attempt)), undefined, { signal: stop.signal });
      }
    };
    run().catch((error) => {
      if (!isCancelled(stop.signal)) out.error(error);
    });
    return () => stop.abort();
  });

/** End, close and error are one signal; resolves to the error where there was one. */
const readOnce = async (
  docker: Docker,
  signal: AbortSignal,
  emit: (event: EngineEvent) => void,
): Promise<Error | undefined> => {
  // Not the call's own signal: that one ends with the call, the stream goes on.
  const connection = new AbortController();
  const onStop = (): void => connection.abort();
  signal.addEventListener("abort", onStop, { once: true });
  try {
    const stream = await call(
      "GET /events",
      () =>
        docker.getEvents({
          filters: { type: ["container"], event: actions },
          abortSignal: connection.signal,
        }),
      { signal },
    );
    emit({ kind: "connected" });
    const splitter = createLineSplitter((line) => emit(parseEvent(line)));
    stream.on("data", (chunk: Buffer) => splitter.write(chunk));
    return await new Promise<Error | undefined>((resolve) => {
      stream.on("error", resolve);
      stream.once("end", () => resolve(undefined));
      stream.once("close", () => resolve(undefined));
      connection.signal.addEventListener("abort", () => resolve(undefined), { once: true });
    });
  } catch (error) {
    return toError(error);
  } finally {
    signal.removeEventListener("abort", onStop);
    connection.abort();
  }
};

export const parseEvent = (line: string): EngineEvent => {
  try {
    const { Action, Actor } = eventLine.parse(JSON.parse(line));
    return { kind: "container", id: Actor.ID, action: Action, labels: Actor.Attributes ?? {} };
  } catch {
    return { kind: "garbled", line: line.slice(0, 200) };
  }
};

const jitter = (ms: number): number => ms / 2 + (Math.random() * ms) / 2;
