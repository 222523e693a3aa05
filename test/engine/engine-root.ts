import { join } from "node:path";
import { debianRoot } from "./debian-root.ts";

export const suites = ["bookworm", "trixie", "forky"] as const;
export type Suite = (typeof suites)[number];

export const isSuite = (name: string): name is Suite => (suites as readonly string[]).includes(name);

/** Where the compose v2 plugin of the suite is put by its package, and where docker looks for it. */
const plugin = "/usr/libexec/docker/cli-plugins/docker-compose";
const packages = ["docker.io", "iptables", "iproute2", "ca-certificates", "procps"];

/** An unpacked Debian suite with dockerd, the docker command and its compose v2 plugin. */
export async function engineRoot(suite: Suite, cacheDir: string): Promise<string> {
  if (suite !== "bookworm") {
    return debianRoot(
      { name: suite, suite, packages: [...packages, "docker-cli", "docker-compose"], as: "directory" },
      cacheDir,
    );
  }
  // bookworm's docker-compose is the old one in Python: take the next suite's plugin, which runs here too.
  const newer = await engineRoot("trixie", cacheDir);
  const after = `install -D ${join(newer, plugin)} "$1"${plugin}`;
  return debianRoot({ name: suite, suite, packages, after, as: "directory" }, cacheDir);
}
