import { isSuite, suites } from "./engine-root.ts";
import { startEngineWithImages } from "./engine-with-images.ts";

// `npx tsx test/engine/up.ts [suite]`: a private engine with the tests' images, until Ctrl-C.
const suite = process.argv[2] ?? "trixie";
if (!isSuite(suite)) throw new Error(`no suite ${suite}; there are ${suites.join(", ")}`);
const { engine, images } = await startEngineWithImages({ suite });
console.error(images);
console.error(`engine: Docker ${engine.version} (API ${engine.apiVersion}, Debian ${suite}); stop it with Ctrl-C`);
console.log(`export DOCKER_HOST=${engine.dockerHost}`);

const keepAlive = setInterval(() => undefined, 2 ** 30);
const stop = async () => {
  clearInterval(keepAlive);
  await engine.stop();
};
process.once("SIGINT", stop).once("SIGTERM", stop);
