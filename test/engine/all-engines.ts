import { spawn } from "node:child_process";
import { once } from "node:events";
import { suites } from "./engine-root.ts";

// `npm run test:engines`: the end-to-end tests on the Docker Engine of each Debian suite in turn.
const results: { suite: string; passed: boolean; seconds: number }[] = [];
for (const suite of suites) {
  console.log(`\n=== Docker Engine of Debian ${suite}`);
  const began = performance.now();
  const child = spawn("npx", ["vitest", "run", "--project", "e2e", ...process.argv.slice(2)], {
    stdio: "inherit",
    env: { ...process.env, ROBOCO_TEST_SUITE: suite },
  });
  const [code] = await once(child, "close");
  results.push({ suite, passed: code === 0, seconds: Math.round((performance.now() - began) / 1000) });
}
console.log();
for (const { suite, passed, seconds } of results) {
  console.log(`${passed ? "passed" : "FAILED"}  ${suite.padEnd(8)}  ${seconds} s`);
}
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;
