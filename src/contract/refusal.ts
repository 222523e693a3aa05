/** The error half of the envelope: why an agent does not run, and what to do about it. Written to `refused.json`. */
export interface Refusal {
  readonly error: RefusalCode;
  readonly message: string;
  readonly remediate: string;
  /** What was asked for and is not there: engine names, or the labels, variables and paths in question. */
  readonly missing: readonly string[];
}

/** Stable codes, one cause each; `docs/errors.md` explains every one of them. */
export const refusalCodes = [
  "OPT_IN_INVALID",
  "ENVIRONMENT_CONFLICT",
  "RUN_DIRECTORY_UNUSABLE",
  "SHARED_MOUNT_WRITABLE",
  "NETWORK_UNSUPPORTED",
  "AGENT_ID_TAKEN",
  "NAME_TAKEN",
  "SANDBOX_LIMIT_REACHED",
  "IMAGE_UNAVAILABLE",
  "SANDBOX_REJECTED",
  "SANDBOX_EXITED",
  "SANDBOX_NOT_READY",
  "SANDBOX_UNSTABLE",
  "HOLD_IMPOSSIBLE",
] as const;
type RefusalCode = (typeof refusalCodes)[number];

/** One refusal that names every problem at once; `error` is the first one's. */
export const mergeRefusals = (refusals: readonly [Refusal, ...Refusal[]]): Refusal => ({
  error: refusals[0].error,
  message: [...new Set(refusals.map((r) => r.message))].join(" "),
  remediate: [...new Set(refusals.map((r) => r.remediate))].join(" "),
  missing: [...new Set(refusals.flatMap((r) => r.missing))],
});

/** Pretty-printed with one field a line, which `bin/enter` reads without a JSON parser. */
export const formatRefusal = (refusal: Refusal): string => {
  const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();
  return `${JSON.stringify(
    {
      error: refusal.error,
      message: oneLine(refusal.message),
      remediate: oneLine(refusal.remediate),
      missing: refusal.missing,
    },
    null,
    2,
  )}\n`;
};
