import pLimit from "p-limit";
import { toSandboxName } from "../contract/names.ts";
import type { Refusal } from "../contract/refusal.ts";
import { isCancelled } from "../errors.ts";
import type { Job } from "./observed.ts";
import { type Provisioned, type ProvisionOptions, type ProvisionRequest, provision } from "./provision.ts";

import { RefusedError } from "./refused-error.ts";

export interface Provisioner {
  /** Begins in the background; `onSettled` tells when there is something new to see. */
  start(request: ProvisionRequest, options: { lost: boolean; existing: ReadonlySet<string> }): void;
  jobs(ownerContainer: string): Readonly<Record<string, Job>>;
  owners(): readonly string[];
  passwords(ownerContainer: string): Readonly<Record<string, string>>;
  /** Stops what is under way for one owner and forgets it; resolves when no call of it is in flight. */
  cancel(ownerContainer: string): Promise<void>;
  cancelAll(): Promise<void>;
}

interface Entry {
  readonly name: string;
  job: Job;
  password: string | undefined;
  readonly controller: AbortController;
  settled: Promise<void>;
}

/** A sandbox made this often for one agent within a window keeps dying: more of the same will not help. */
const maxAttempts = 5;
const attemptWindowMs = 10 * 60_000;

/**
 * Making a sandbox takes up to minutes, a reconcile run milliseconds: so the making is a job beside the runs, and its
 * state is one more thing that a run observes. Nothing is lost with it: a successor takes over from the Engine's state.
 */
export const createProvisioner = (
  options: ProvisionOptions,
  limits: { readonly concurrency: number; readonly maxSandboxes: number },
  onSettled: (ownerContainer: string, retry: unknown) => void,
): Provisioner => {
  const owners = new Map<string, Map<string, Entry>>();
  const attempts = new Map<string, number[]>();
  const limit = pLimit(limits.concurrency);
  const { log } = options;

  const names = (): string[] =>
    [...owners.values()].flatMap((entries) =>
      [...entries.values()].filter(({ job }) => job.state !== "failed").map(({ name }) => name),
    );

  const start: Provisioner["start"] = (request, { lost, existing }) => {
    const { ownerContainer, agentId, engine } = request;
    const ids = { agent: agentId, container: ownerContainer, engine: engine.name };
    const entries = owners.get(ownerContainer) ?? new Map<string, Entry>();
    owners.set(ownerContainer, entries);
    const controller = new AbortController();
    const name = toSandboxName(engine.shortName, agentId);
    const entry: Entry = {
      name,
      job: { state: "running" },
      password: undefined,
      controller,
      settled: Promise.resolve(),
    };

    const others = new Set([...existing, ...names()]);
    others.delete(name);
    const refusal =
      checkLimit(others.size, limits.maxSandboxes, engine.name) ??
      checkAttempts(attempts, `${ownerContainer} ${engine.name}`, engine.name);
    entries.set(engine.name, entry);
    if (refusal) {
      entry.job = { state: "failed", refusal };
      log("sandbox.failed", { ...ids, reason: refusal.error });
      entry.settled = Promise.resolve().then(() => onSettled(ownerContainer, undefined));
      return;
    }

    if (lost) log("sandbox.lost", ids);
    log("sandbox.provisioning", { ...ids, image: options.images[engine.name] });
    const startedAt = performance.now();
    const settle = (result: Provisioned): void => {
      const durationMs = Math.round(performance.now() - startedAt);
      if (result.kind === "ready") {
        entry.job = { state: "ready", containerId: result.containerId };
        entry.password = result.password;
        log("sandbox.ready", { ...ids, sandbox: result.containerId, durationMs });
      } else {
        entry.job = { state: "failed", refusal: result.refusal };
        log("sandbox.failed", { ...ids, durationMs, reason: result.refusal.error });
      }
      onSettled(ownerContainer, undefined);
    };
    entry.settled = provisionLimited(request, controller.signal).then(settle, (error) => {
      if (isCancelled(controller.signal)) return;
      // The Engine is away: forget the job, so that the next look starts it again from what it finds.
      entries.delete(engine.name);
      onSettled(ownerContainer, error);
    });
  };

  // The limit is on the work that the host feels; a pull waits for a registry, outside of it.
  const provisionLimited = async (request: ProvisionRequest, signal: AbortSignal): Promise<Provisioned> => {
    const image = options.images[request.engine.name] ?? request.engine.image;
    try {
      await options.ensureImage(image, signal);
    } catch (error) {
      if (!(error instanceof RefusedError) || isCancelled(signal)) throw error;
      return { kind: "failed", refusal: { ...error.refusal, missing: [request.engine.name] } };
    }
    return await limit(() => {
      signal.throwIfAborted();
      return provision(request, options, signal);
    });
  };

  const cancel = async (ownerContainer: string): Promise<void> => {
    const entries = [...(owners.get(ownerContainer)?.values() ?? [])];
    for (const { controller } of entries) controller.abort();
    await Promise.allSettled(entries.map(({ settled }) => settled));
    owners.delete(ownerContainer);
    for (const key of attempts.keys()) if (key.startsWith(ownerContainer)) attempts.delete(key);
  };

  return {
    start,
    jobs: (ownerContainer) =>
      Object.fromEntries([...(owners.get(ownerContainer) ?? [])].map(([engine, { job }]) => [engine, job])),
    owners: () => [...owners.keys()],
    passwords: (ownerContainer) =>
      Object.fromEntries(
        [...(owners.get(ownerContainer) ?? [])].flatMap(([engine, { password }]) =>
          password ? [[engine, password]] : [],
        ),
      ),
    cancel,
    cancelAll: async () => {
      await Promise.all([...owners.keys()].map(cancel));
    },
  };
};

const checkLimit = (total: number, max: number, engine: string): Refusal | undefined =>
  total < max
    ? undefined
    : {
        error: "SANDBOX_LIMIT_REACHED",
        message: `Sandbox ${engine}: there are ${total} sandboxes already, and ROBOCO_SANDBOX_MAX is ${max}.`,
        remediate: "Let agents end first or raise ROBOCO_SANDBOX_MAX, then recreate the agent.",
        missing: [engine],
      };

const checkAttempts = (attempts: Map<string, number[]>, key: string, engine: string): Refusal | undefined => {
  const now = performance.now();
  const recent = [...(attempts.get(key) ?? []).filter((at) => now - at < attemptWindowMs), now];
  attempts.set(key, recent);
  return recent.length <= maxAttempts
    ? undefined
    : {
        error: "SANDBOX_UNSTABLE",
        message: `Sandbox ${engine}: it was made ${maxAttempts} times within ${attemptWindowMs / 60_000} minutes and died each time.`,
        remediate: "Look at its image and memory (ROBOCO_SANDBOX_MEMORY), then recreate the agent.",
        missing: [engine],
      };
};
