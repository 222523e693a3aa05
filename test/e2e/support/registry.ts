import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { imageRegistryProgram } from "../../engine/image-registry.ts";
import { until } from "./until.ts";

export interface ImageRegistry extends AsyncDisposable {
  /** host:port, on loopback: an Engine takes it without TLS. */
  readonly address: string;
  /** Requests for manifests so far: one for each pull, and one more for its digest. */
  manifestRequests(): number;
}

/** A real registry of images, on loopback. */
export const startRegistry = async (): Promise<ImageRegistry> => {
  const program = await imageRegistryProgram();
  const directory = await mkdtemp(join(tmpdir(), "roboco-registry-"));
  const address = `127.0.0.1:${await freePort()}`;
  const config = join(directory, "config.yml");
  await writeFile(
    config,
    `version: 0.1
log: { accesslog: { disabled: false }, level: info }
storage: { filesystem: { rootdirectory: ${directory}/data } }
http: { addr: "${address}" }
`,
  );
  const child = spawn(program, ["serve", config], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      log += chunk;
    });
  }
  const exit = once(child, "exit");
  await until("the registry answers", () =>
    fetch(`http://${address}/v2/`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return {
    address,
    manifestRequests: () => [...log.matchAll(/"(?:GET|HEAD) \/v2\/\S+\/manifests\/\S+ HTTP/g)].length,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await exit;
      await rm(directory, { recursive: true, force: true });
    },
  };
};

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address ? address.port : 0;
};
