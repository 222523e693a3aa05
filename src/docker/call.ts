import {
  EngineFaultError,
  EngineRejectedError,
  EngineUnavailableError,
  isCancelled,
  SidecarError,
  toError,
} from "../errors.ts";

/** A healthy Engine answers within milliseconds; one that is overrun may take many seconds. */
const defaultDeadlineMs = 60_000;

const unavailableRemedy = "Is the Docker Engine running, and does DOCKER_HOST name its socket?";

/**
 * One Engine call with a deadline of its own: dockerode never settles when a body is cut, and its `timeout` option would
 * cut quiet streams. Errors become the classes of errors.ts here, and nowhere else.
 */
export const call = async <T>(
  what: string,
  run: (abortSignal: AbortSignal) => Promise<T>,
  { deadlineMs = defaultDeadlineMs, signal }: { deadlineMs?: number; signal?: AbortSignal } = {},
): Promise<T> => {
  const deadline = new AbortController();
  const either = signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal;
  const timer = setTimeout(() => deadline.abort(), deadlineMs);
  try {
    either.throwIfAborted();
    return await Promise.race([run(either), rejectOnAbort(either)]);
  } catch (error) {
    if (isCancelled(signal)) throw signal?.reason;
    if (deadline.signal.aborted) {
      throw new EngineUnavailableError(`${what}: no answer within ${deadlineMs / 1000} s`, unavailableRemedy);
    }
    throw toEngineError(what, error);
  } finally {
    clearTimeout(timer);
  }
};

/** The HTTP status of a refused call, for the few that read one as an answer. */
export const statusOf = (error: unknown): number | undefined =>
  error instanceof EngineRejectedError || error instanceof EngineFaultError ? error.status : undefined;

/** Turns the statuses that are answers into values; everything else stays an error. */
export const answers =
  <T>(byStatus: Readonly<Record<number, T>>) =>
  (error: unknown): T => {
    const status = statusOf(error);
    if (status !== undefined && status in byStatus) return byStatus[status] as T;
    throw error;
  };

const toEngineError = (what: string, thrown: unknown): Error => {
  if (thrown instanceof SidecarError) return thrown; // read from within an answer, and classed there
  const error = toError(thrown);
  const status = "statusCode" in error && typeof error.statusCode === "number" ? error.statusCode : undefined;
  if (status === undefined)
    return new EngineUnavailableError(`${what}: ${error.message}`, unavailableRemedy, { cause: error });
  const json = "json" in error ? (error.json as { message?: unknown } | null | undefined) : undefined;
  const message = `${what}: ${typeof json?.message === "string" ? json.message.trim() : error.message}`;
  return status < 500
    ? new EngineRejectedError(message, status, { cause: error })
    : new EngineFaultError(message, status, { cause: error });
};

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
