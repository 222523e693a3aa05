import type { Refusal } from "../contract/refusal.ts";

/** Carries a refusal out of a nested step; caught where the outcome is decided. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}
