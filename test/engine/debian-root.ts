import { existsSync } from "node:fs";
import { join } from "node:path";
import { digest, makeOnce } from "./cache.ts";
import { run } from "./run.ts";

export interface DebianRecipe {
  name: string;
  suite: string;
  packages: readonly string[];
  /** Paths that dpkg leaves out, beside documentation and translations. */
  exclude?: readonly string[];
  /** Shell, run when the essential packages are there; `$1` is the root. */
  before?: string;
  /** Shell, run when all packages are there; `$1` is the root. */
  after?: string;
  as: "directory" | "tar";
}

const unneeded = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"];

export const debianRootName = (recipe: DebianRecipe): string =>
  `${recipe.name}-${digest(recipe)}${recipe.as === "tar" ? ".tar" : ""}`;

/** The path of an unpacked (or packed) Debian suite, made from the archive once and then kept in the cache. */
export async function debianRoot(recipe: DebianRecipe, cacheDir: string): Promise<string> {
  const path = join(cacheDir, debianRootName(recipe));
  return makeOnce(path, async (temporary) => {
    await needTool("mmdebstrap");
    console.error(
      `engine: unpacking Debian ${recipe.suite} for the ${recipe.as === "tar" ? "images" : "Engine"} (once; about half a minute)`,
    );
    await run("mmdebstrap", [
      "--variant=minbase",
      `--format=${recipe.as}`,
      // A testing suite's index may be past its date where the mirror is a snapshot.
      '--aptopt=Acquire::Check-Valid-Until "false"',
      "--dpkgopt=force-confold",
      "--dpkgopt=force-unsafe-io",
      ...[...unneeded, ...(recipe.exclude ?? [])].map((pattern) => `--dpkgopt=path-exclude=${pattern}`),
      `--include=${recipe.packages.join(",")}`,
      ...(recipe.before ? [`--essential-hook=${recipe.before}`] : []),
      ...(recipe.after ? [`--customize-hook=${recipe.after}`] : []),
      recipe.suite,
      temporary, // and no mirror: the tool's own default, or what apt is set to
    ]);
  });
}

/** Two roots at once must not install it twice: apt has one lock. */
const installing = new Map<string, Promise<void>>();

const needTool = (name: string): Promise<void> => {
  const needed = installing.get(name) ?? install(name);
  installing.set(name, needed);
  return needed;
};

async function install(name: string): Promise<void> {
  const directories = (process.env.PATH ?? "").split(":");
  if (directories.some((directory) => existsSync(join(directory, name)))) return;
  console.error(`engine: installing ${name}`);
  await run("apt-get", ["update"]);
  await run("apt-get", ["install", "--yes", "--no-install-recommends", name], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
}
