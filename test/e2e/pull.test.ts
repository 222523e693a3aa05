import { once } from "node:events";
import { createServer } from "node:net";
import { finished } from "node:stream/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ImageRegistry, startRegistry } from "./support/registry.ts";
import { World } from "./support/world.ts";

let world: World;
let registry: ImageRegistry;
let image: string;
beforeAll(async () => {
  world = await World.create();
  registry = await startRegistry();
  image = `${registry.address}/store:1`;
  await world.docker.getImage(world.images.redis).tag({ repo: `${registry.address}/store`, tag: "1" });
  const push = await world.docker.getImage(image).push({ authconfig: { username: "", password: "" } });
  await finished(push.resume());
  await world.docker.getImage(image).remove();
});
afterAll(async () => {
  await world?.docker
    .getImage(image)
    .remove({ force: true })
    .catch(() => {});
  await registry?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

test("an absent image is pulled once for all agents that wait for it, and a present one asks no registry", async () => {
  await using sidecar = await world.sidecar({ ROBOCO_SANDBOX_REDIS_IMAGE: image });
  await sidecar.line("sidecar.ready");
  const before = registry.manifestRequests();
  const agents = await Promise.all([world.running(), world.running(), world.running()]);
  await Promise.all(agents.map((agent) => world.released(agent)));
  expect(sidecar.lines.filter(({ event }) => event === "image.pulling")).toHaveLength(1);
  expect(sidecar.lines.filter(({ event }) => event === "image.pulled")).toHaveLength(1);
  const afterPull = registry.manifestRequests();
  expect(afterPull).toBeGreaterThan(before);
  const late = await world.running();
  await world.released(late);
  expect(registry.manifestRequests()).toBe(afterPull);
  await Promise.all([...agents, late].map((agent) => agent.remove({ force: true })));
  await world.gone();
});

test("an image that its registry does not have is told in the registry's words, within the pull's 200 answer or not", async () => {
  await using sidecar = await world.sidecar({ ROBOCO_SANDBOX_REDIS_IMAGE: `${registry.address}/store:no-such-tag` });
  await sidecar.line("sidecar.ready");
  const agent = await world.running();
  const { error, message, remediate } = await world.refused(agent);
  expect(error).toBe("IMAGE_UNAVAILABLE");
  expect(message).toMatch(/store:no-such-tag.*(not found|unknown)/);
  expect(remediate).toContain("docker pull");
  await world.ended(agent);
});

test("a registry that never answers is given up after the pull's own time", async () => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  const port = typeof address === "object" && address ? address.port : 0;
  await using sidecar = await world.sidecar({
    ROBOCO_SANDBOX_REDIS_IMAGE: `127.0.0.1:${port}/store:1`,
    ROBOCO_SANDBOX_PULL_TIMEOUT_SECONDS: "2",
  });
  await sidecar.line("sidecar.ready");
  const agent = await world.running();
  const { error, message } = await world.refused(agent);
  expect({ error, message }).toMatchObject({
    error: "IMAGE_UNAVAILABLE",
    message: expect.stringContaining("within 2 s"),
  });
  await world.ended(agent);
  silent.close();
});
