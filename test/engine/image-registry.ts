import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { defaultCacheDir, makeOnce } from "./cache.ts";
import { run } from "./run.ts";

/** The path of a registry server for images, out of Debian's package, which is not installed: it would start a service. */
export const imageRegistryProgram = async (cacheDir = defaultCacheDir()): Promise<string> => {
  const root = await makeOnce(join(cacheDir, `docker-registry-${process.arch}`), async (temporary) => {
    await mkdir(temporary, { recursive: true });
    await run("apt-get", ["update"]);
    await run("apt-get", ["download", "docker-registry"], { cwd: temporary });
    await run("sh", ["-c", "dpkg-deb -x docker-registry_*.deb . && rm docker-registry_*.deb"], { cwd: temporary });
  });
  return join(root, "usr/bin/docker-registry");
};
