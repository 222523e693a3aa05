import type { Log } from "../contract/log-events.ts";
import { EngineUnavailableError, toError } from "../errors.ts";
import type { DockerPort } from "./ports.ts";
import { RefusedError } from "./refused-error.ts";

/**
 * Present: no registry is asked. Absent: one pull for all who wait, and a waiter that gives up does not stop it for the
 * others. Resolves to the volumes that the image declares.
 */
export const createEnsureImage = (docker: DockerPort, log: Log, pullTimeoutMs: number) => {
  const pulls = new Map<string, Promise<void>>();

  const pull = async (reference: string): Promise<void> => {
    log("image.pulling", { image: reference });
    const startedAt = performance.now();
    const signal = AbortSignal.timeout(pullTimeoutMs);
    try {
      await docker.pullImage(reference, { signal });
    } catch (error) {
      if (error instanceof EngineUnavailableError && !signal.aborted) throw error;
      const why = signal.aborted ? `not there within ${pullTimeoutMs / 1000} s` : toError(error).message;
      throw new RefusedError({
        error: "IMAGE_UNAVAILABLE",
        message: `The image ${reference} cannot be pulled: ${why}.`,
        remediate: `Pull it by hand (docker pull ${reference}) to see why, or name another image in the sidecar's configuration, then recreate the agent.`,
        missing: [reference],
      });
    }
    log("image.pulled", { image: reference, durationMs: Math.round(performance.now() - startedAt) });
  };

  return async (reference: string, signal: AbortSignal): Promise<readonly string[]> => {
    const present = await docker.inspectImage(reference);
    if (present) return present.volumes;
    // Nobody would hear of the end of a pull that began for one who is gone, and a failure would be unhandled.
    signal.throwIfAborted();
    let pulling = pulls.get(reference);
    if (!pulling) {
      pulling = pull(reference).finally(() => pulls.delete(reference));
      pulls.set(reference, pulling);
    }
    await abandonable(pulling, signal);
    const pulled = await docker.inspectImage(reference);
    if (pulled) return pulled.volumes;
    throw new RefusedError({
      error: "IMAGE_UNAVAILABLE",
      message: `The image ${reference} was pulled without an error and is not there.`,
      remediate: "Is there room on the Engine's disk? Does the image exist for this platform?",
      missing: [reference],
    });
  };
};

const abandonable = (promise: Promise<void>, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.throwIfAborted();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
