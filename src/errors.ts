/**
 * Errors by reaction, not by origin. Expected outcomes (304, 404, 409 where it is benign) are values, never these.
 * Each class has a stable `code`; `docs/errors.md` lists them all and a test holds the two together.
 */
export abstract class SidecarError extends Error {
  abstract readonly code: string;
  /** What the reader should do about it. */
  readonly remediate: string;
  constructor(message: string, remediate: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.remediate = remediate;
  }
}

/** Wrong configuration: all problems at once, exit 78. */
export class ConfigError extends SidecarError {
  override readonly code = "CONFIG_INVALID";
}

/** Wrong command line: exit 64. */
export class UsageError extends SidecarError {
  override readonly code = "USAGE";
}

/** Another sidecar of this installation serves this engine: exit 73. */
export class AlreadyRunningError extends SidecarError {
  override readonly code = "ALREADY_RUNNING";
}

/** No Docker Engine answers at the address, or it went away: retried, with back-off. At start-up: exit 69. */
export class EngineUnavailableError extends SidecarError {
  override readonly code = "ENGINE_UNAVAILABLE";
}

/** Something answers, but it is no Docker Engine that this program can speak to: exit 76. */
export class EngineUnsupportedError extends SidecarError {
  override readonly code = "ENGINE_UNSUPPORTED";
}

/** The Engine refused a call (4xx): not retried until the world changes. `status` is its HTTP status. */
export class EngineRejectedError extends SidecarError {
  override readonly code = "ENGINE_REJECTED";
  readonly status: number;
  constructor(message: string, status: number, options?: ErrorOptions) {
    super(message, "Read the Engine's message; it names what it objects to.", options);
    this.status = status;
  }
}

/** The Engine failed (5xx): retried, with back-off. */
export class EngineFaultError extends SidecarError {
  override readonly code = "ENGINE_FAULT";
  readonly status: number;
  constructor(message: string, status: number, options?: ErrorOptions) {
    super(message, "See the Engine's own log (journalctl -u docker).", options);
    this.status = status;
  }
}

/** Cancelled is not an error: callers check the signal, never the error's name. */
export const isCancelled = (signal: AbortSignal | undefined): boolean => signal?.aborted === true;

export const toError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));
