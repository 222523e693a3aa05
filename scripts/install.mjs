// Runs before every npm script that needs the dependencies, so that a clean clone needs no other command.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

if (!existsSync(new URL("../node_modules/.package-lock.json", import.meta.url))) {
  const { status, error } = spawnSync("npm", ["ci", "--ignore-scripts"], {
    stdio: "inherit",
    cwd: new URL("..", import.meta.url),
  });
  // npm has said why.
  if (error) throw error;
  process.exitCode = status ?? 1;
}
