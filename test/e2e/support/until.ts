import { setTimeout as delay } from "node:timers/promises";

/** Awaits a condition of the world; its value when it holds. Rejects, saying what was awaited, when it never does. */
export const until = async <T>(
  what: string,
  look: () => Promise<T | undefined | false | null> | T | undefined | false | null,
  { withinMs = 60_000, everyMs = 20 } = {},
): Promise<T> => {
  const startedAt = performance.now();
  while (true) {
    const value = await look();
    if (value !== undefined && value !== false && value !== null) return value;
    if (performance.now() - startedAt > withinMs) throw new Error(`never came true: ${what}`);
    await delay(everyMs);
  }
};
