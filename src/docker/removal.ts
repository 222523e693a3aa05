import { setTimeout as delay } from "node:timers/promises";
import { EngineFaultError } from "../errors.ts";

const lookEveryMs = 50;
const deadlineMs = 15_000;

/** A removal that somebody else has begun is waited out. */
export const waitUntilRemoved = async (id: string, inspect: (id: string) => Promise<unknown>): Promise<void> => {
  const startedAt = performance.now();
  while ((await inspect(id)) !== undefined) {
    if (performance.now() - startedAt > deadlineMs) {
      throw new EngineFaultError(`removal of container ${id}: under way for ${deadlineMs / 1000} s`, 500);
    }
    await delay(lookEveryMs);
  }
};
