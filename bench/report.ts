export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
};

/** Medians with ranges in ms, then the ratios that are promised, each with its bound. */
export const report = (
  measured: Readonly<Record<string, readonly number[]>>,
  ratios: readonly (readonly [what: string, against: string, bound: number | undefined])[],
): void => {
  console.log("\n| | median ms | range |\n|---|---|---|");
  for (const [what, values] of Object.entries(measured)) {
    const range = `${Math.min(...values).toFixed(0)}–${Math.max(...values).toFixed(0)}`;
    console.log(`| ${what} | ${median(values).toFixed(0)} | ${range} |`);
  }
  console.log("\n| ratio of medians | | bound |\n|---|---|---|");
  for (const [what, against, bound] of ratios) {
    const ratio = median(measured[what] ?? []) / median(measured[against] ?? []);
    const verdict = bound === undefined ? "" : `${bound} ${ratio <= bound ? "met" : "MISSED"}`;
    console.log(`| ${what} ÷ ${against} | ${ratio.toFixed(2)} | ${verdict} |`);
  }
};
