import { isSuite, suites } from "./engine-root.ts";
import { ensureImages } from "./images.ts";
import { startEngine } from "./start-engine.ts";

// `npx tsx test/engine/up.ts [suite]`: a private engine with the tests' images, until Ctrl-C.
const suite = process.argv[2] ?? "trixie";
if (!isSuite(suite)) throw new Error(`no suite ${suite}; there are ${suites.join(", ")}`);
const engine = await startEngine({ suite });
let stopping = false;
const stop = async () => {
  if (stopping) return;
  stopping = true;
  await engine.stop();
  process.exit(0);
};
process.on("SIGINT", stop).on("SIGTERM", stop);
try {
  console.error(await ensureImages(engine));
} catch (error) {
  await engine.stop();
  throw error;
}
console.error(`engine: Docker ${engine.version} (API ${engine.apiVersion}, Debian ${suite}); stop it with Ctrl-C`);
console.log(`export DOCKER_HOST=${engine.dockerHost}`);
setInterval(() => undefined, 2 ** 30);
