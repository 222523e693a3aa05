import { describe, expect, it, vi } from "vitest";
import { EngineFaultError, EngineUnavailableError } from "../../src/errors.ts";
import { createEnsureImage } from "../../src/reconcile/ensure-image.ts";
import { RefusedError } from "../../src/reconcile/refused-error.ts";
import { deferred } from "../support/deferred.ts";
import { createFakeDocker } from "../support/fake-docker.ts";
import { createTestLog } from "../support/log.ts";

const image = "redis:8-alpine";

const setUp = (pullTimeoutMs = 60_000) => {
  const fake = createFakeDocker();
  const { log, of } = createTestLog();
  const ensureImage = createEnsureImage(fake.docker, log, pullTimeoutMs);
  return { fake, of, ensureImage: (signal = new AbortController().signal) => ensureImage(image, signal) };
};

const absent = (pullTimeoutMs?: number) => {
  const world = setUp(pullTimeoutMs);
  world.fake.images.delete(image);
  return world;
};

describe("ensureImage", () => {
  it("asks no registry for an image that is there, and tells its volumes", async () => {
    const { fake, ensureImage } = setUp();
    await expect(ensureImage()).resolves.toEqual(["/data"]);
    expect(fake.calls("pullImage")).toEqual([]);
  });

  it("pulls an image that is not there, and says so", async () => {
    const { fake, of, ensureImage } = absent();
    await expect(ensureImage()).resolves.toEqual(["/data"]);
    expect(fake.images.has(image)).toBe(true);
    expect(of("image.pulling")).toEqual([{ image }]);
    expect(of("image.pulled")).toEqual([{ image, durationMs: expect.any(Number) }]);
  });

  it("pulls once for all who wait", async () => {
    const { fake, ensureImage } = absent();
    const gate = deferred();
    fake.hook("pullImage", () => gate.promise);
    const waiting = Array.from({ length: 20 }, () => ensureImage());
    await vi.waitFor(() => expect(fake.calls("inspectImage")).toHaveLength(20));
    gate.resolve();
    await Promise.all(waiting);
    expect(fake.calls("pullImage")).toHaveLength(1);
  });

  it("pulls again when the image went away again", async () => {
    const { fake, ensureImage } = absent();
    await ensureImage();
    fake.images.delete(image);
    await ensureImage();
    expect(fake.calls("pullImage")).toHaveLength(2);
  });

  it("goes on for the others when one who waits gives up", async () => {
    const { fake, ensureImage } = absent();
    const gate = deferred();
    fake.hook("pullImage", () => gate.promise);
    const quitter = new AbortController();
    const [first, second] = [ensureImage(quitter.signal), ensureImage()];
    await vi.waitFor(() => expect(fake.calls("pullImage")).toHaveLength(1));
    quitter.abort();
    await expect(first).rejects.toBe(quitter.signal.reason);
    gate.resolve();
    await expect(second).resolves.toEqual(["/data"]);
  });

  it("does not pull for one who gave up before the pull began", async () => {
    const { fake, ensureImage } = absent();
    const gate = deferred();
    fake.hook("inspectImage", () => gate.promise);
    fake.registryImages.clear();
    const quitter = new AbortController();
    const waiting = ensureImage(quitter.signal);
    quitter.abort();
    gate.resolve();
    await expect(waiting).rejects.toBe(quitter.signal.reason);
    expect(fake.calls("pullImage")).toEqual([]);
  });

  it("refuses with the registry's words when the image cannot be pulled, and tries anew the next time", async () => {
    const { fake, ensureImage } = absent();
    fake.registryImages.clear();
    const error = await ensureImage().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RefusedError);
    expect(error).toMatchObject({
      refusal: {
        error: "IMAGE_UNAVAILABLE",
        message: expect.stringContaining("manifest unknown"),
        remediate: expect.stringContaining(`docker pull ${image}`),
      },
    });
    fake.registryImages.set(image, []);
    await expect(ensureImage()).resolves.toEqual([]);
  });

  it("refuses when the registry fails", async () => {
    const { fake, ensureImage } = absent();
    fake.hook("pullImage", () => {
      throw new EngineFaultError("Get https://registry-1.docker.io/v2/: i/o timeout", 500);
    });
    await expect(ensureImage()).rejects.toMatchObject({ refusal: { error: "IMAGE_UNAVAILABLE" } });
  });

  it("refuses, and stops the pull, when the image is not there in time", async () => {
    const { fake, ensureImage } = absent(20);
    fake.hook("pullImage", (_reference, options) => {
      const { signal } = options as { signal: AbortSignal };
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    await expect(ensureImage()).rejects.toMatchObject({
      refusal: { error: "IMAGE_UNAVAILABLE", message: expect.stringContaining("not there within 0.02 s") },
    });
    expect(fake.inFlight()).toBe(0);
  });

  it("does not refuse for an Engine that is away: that mends", async () => {
    const { fake, ensureImage } = absent();
    const away = new EngineUnavailableError("socket hang up", "Start it.");
    fake.hook("pullImage", () => {
      throw away;
    });
    await expect(ensureImage()).rejects.toBe(away);
  });

  it("refuses when a pull ends well and the image is not there", async () => {
    const { fake, ensureImage } = absent();
    fake.hook("inspectImage", () => fake.images.delete(image));
    await expect(ensureImage()).rejects.toMatchObject({
      refusal: { error: "IMAGE_UNAVAILABLE", message: expect.stringContaining("without an error and is not there") },
    });
  });
});
