import { existsSync } from "node:fs";
import { join } from "node:path";
import { defaultCacheDir, makeOnce } from "./cache.ts";
import { copyDataRoot } from "./data-root.ts";
import { ensureImages, type Images, imagesKey } from "./images.ts";
import { baseTar, nodeModules } from "./stand-ins.ts";
import { type EngineOptions, type PrivateEngine, startEngine } from "./start-engine.ts";

/**
 * A private engine that has the tests' images; from the second time on they come out of the cache.
 * Without `mongo` the first time is minutes shorter where there is a Go toolchain.
 */
export async function startEngineWithImages(
  options: Omit<EngineOptions, "seed"> & { mongo?: boolean } = {},
): Promise<{ engine: PrivateEngine; images: Images }> {
  const { suite = "trixie", cacheDir = defaultCacheDir(), mongo = true } = options;
  const full = join(cacheDir, `images-${suite}-${await imagesKey()}`);
  const seed = mongo || existsSync(full) ? full : `${full}-without-mongo`;
  // What the images are made of does not wait for the engine; a failure shows where it is awaited.
  if (!existsSync(seed)) for (const part of [baseTar(cacheDir), nodeModules("agent", cacheDir)]) part.catch(() => {});
  const engine = await startEngine({ ...options, seed: existsSync(seed) ? seed : undefined });
  try {
    const images = await ensureImages(engine, { cacheDir, mongo });
    if (!existsSync(seed)) {
      // Only a stopped engine's databases are whole.
      await engine.restart("SIGTERM", async () => {
        await makeOnce(seed, (temporary) => copyDataRoot(engine.dataDir, temporary));
      });
    }
    return { engine, images };
  } catch (error) {
    await engine.stop();
    throw error;
  }
}
