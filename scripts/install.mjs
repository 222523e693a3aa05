// Runs before every npm script that needs the dependencies, so that a clean clone needs no other command.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

if (!existsSync(new URL("../node_modules/.package-lock.json", import.meta.url))) {
  execFileSync("npm", ["ci", "--ignore-scripts"], { stdio: "inherit", cwd: new URL("..", import.meta.url) });
}
