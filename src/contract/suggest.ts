import { closest, distance } from "fastest-levenshtein";

/** ` (did you mean "x"?)`, or nothing when no valid word is near enough to be meant. */
export const suggest = (word: string, valid: readonly string[]): string => {
  if (valid.length === 0) return "";
  const nearest = closest(word.toLowerCase(), [...valid]);
  return distance(word.toLowerCase(), nearest) <= Math.max(2, Math.floor(nearest.length / 3))
    ? ` (did you mean "${nearest}"?)`
    : "";
};
