import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { defaultCacheDir } from "./cache.ts";
import { type EngineRoom, openRoom } from "./engine-room.ts";
import { engineRoot, isSuite, suites } from "./engine-root.ts";
import { startEngineWithImages } from "./engine-with-images.ts";
import { ensureImages, type Images } from "./images.ts";
import { engineVersion } from "./ping.ts";
import { run } from "./run.ts";
import type { Engine } from "./start-engine.ts";

/**
 * The engine to test on, with its images: of the suite ROBOCO_TEST_SUITE if that is set, else the user's
 * (DOCKER_HOST, or the default socket if it answers), else a private one of Debian trixie.
 */
export async function resolveEngine(options: { mongo?: boolean } = {}): Promise<{ engine: Engine; images: Images }> {
  const { ROBOCO_TEST_SUITE: suite, DOCKER_HOST: host } = process.env;
  if (suite) {
    if (!isSuite(suite)) throw new Error(`ROBOCO_TEST_SUITE=${suite}: there are ${suites.join(", ")}`);
    return startEngineWithImages({ ...options, suite });
  }
  const socketPath = host ? host.replace(/^unix:\/\//, "") : "/var/run/docker.sock";
  if (!socketPath.startsWith("/")) throw new Error(`DOCKER_HOST=${host}: the tests need a unix socket`);
  const answer = await engineVersion(socketPath);
  if (host && !answer) throw new Error(`DOCKER_HOST=${host} does not answer`);
  if (!answer) return startEngineWithImages(options);
  const engine = userEngine(socketPath, answer);
  try {
    return { engine, images: await ensureImages(engine, options) };
  } catch (error) {
    await engine.stop();
    throw error;
  }
}

/** The user's engine; the docker command is the user's if it has compose, else that of a Debian root. */
function userEngine(socketPath: string, answer: { version: string; apiVersion: string }): Engine {
  const dockerHost = `unix://${socketPath}`;
  const hostHasCompose = run("docker", ["compose", "version"]).then(
    () => true,
    () => false,
  );
  let room: Promise<EngineRoom> | undefined;
  const enterRoom = async () => {
    const cacheDir = defaultCacheDir();
    const visible = [cacheDir, dirname(realpathSync(socketPath)), process.cwd()];
    return openRoom(await engineRoot("trixie", cacheDir), visible);
  };
  const docker: Engine["docker"] = async (args, { env, ...options } = {}) => {
    if (await hostHasCompose) {
      return run("docker", args, { ...options, env: { ...process.env, ...env, DOCKER_HOST: dockerHost } });
    }
    room ??= enterRoom();
    return (await room).run(["docker", ...args], { ...options, env: { ...env, DOCKER_HOST: dockerHost } });
  };
  const stop = async () => (await room)?.close();
  return {
    ...answer,
    dockerHost,
    socketPath,
    owned: false,
    docker,
    compose: (args, options) => docker(["compose", ...args], options),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
