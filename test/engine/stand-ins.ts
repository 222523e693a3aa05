import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { digest, digestTree, makeOnce } from "./cache.ts";
import { type DebianRecipe, debianRoot, debianRootName } from "./debian-root.ts";
import { run } from "./run.ts";

export const imagesDir = new URL("./images/", import.meta.url).pathname;

/** The file system that all images of ours share, from Debian's packages. */
const baseRecipe: DebianRecipe = {
  name: "base",
  suite: "trixie",
  packages: ["postgresql", "redis-server", "redis-tools", "gosu", "nodejs", "ca-certificates", "procps"],
  // Postgres' just-in-time compiler is half of the size and no use to tests.
  exclude: ["/usr/lib/*/libLLVM*", "/usr/lib/postgresql/*/lib/bitcode/*", "/usr/lib/postgresql/*/lib/llvmjit*"],
  // The users' numbers are those of the official images.
  before: `set -e
    user() { echo "$1:x:$2:$2::$3:/bin/sh" >>"$root/etc/passwd"; echo "$1:x:$2:" >>"$root/etc/group"; }
    root=$1
    user postgres 70 /var/lib/postgresql
    user redis 999 /data
    mkdir -p "$1/etc/postgresql-common"
    echo create_main_cluster=false >"$1/etc/postgresql-common/createcluster.conf"`,
  after: `set -e
    mkdir -p "$1/docker-entrypoint-initdb.d" "$1/data" "$1/var/lib/postgresql/data" "$1/var/run/postgresql"
    chroot "$1" chown redis: /data
    chroot "$1" chown -R postgres: /var/lib/postgresql /var/run/postgresql
    chmod 3777 "$1/var/run/postgresql"; chmod 1777 "$1/var/lib/postgresql/data"
    printf "listen_addresses = '*'\\njit = off\\n" >>"$1"/usr/share/postgresql/17/postgresql.conf.sample
    rm -rf "$1"/var/log/* "$1"/var/cache/*`,
  as: "tar",
};

export const baseTar = (cacheDir: string): Promise<string> => debianRoot(baseRecipe, cacheDir);
export const baseTarName = (): string => debianRootName(baseRecipe);

/** The path of the `node_modules` of one of the images' package locks, installed once by the npm of this machine. */
export async function nodeModules(name: "agent" | "node" | "mongo", cacheDir: string): Promise<string> {
  const from = join(imagesDir, name);
  const key = digest(await digestTree(from), process.arch);
  const made = await makeOnce(join(cacheDir, `${name}-modules-${key}`), async (temporary) => {
    await mkdir(temporary);
    for (const file of ["package.json", "package-lock.json"]) await copyFile(join(from, file), join(temporary, file));
    await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: temporary });
  });
  return join(made, "node_modules");
}
