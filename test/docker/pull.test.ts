import { describe, expect, it, vi } from "vitest";
import { pullImage, splitReference } from "../../src/docker/pull.ts";
import { EngineFaultError, EngineRejectedError, EngineUnavailableError } from "../../src/errors.ts";
import { createFakeEngine, json } from "../support/fake-engine.ts";

const progress = '{"status":"Pulling fs layer","id":"a"}';
const failure = '{"errorDetail":{"message":"manifest unknown"},"error":"manifest unknown"}';

const pullFrom = async (body: string, isCut = false) => {
  await using engine = await createFakeEngine();
  engine.on("POST", "/images/create", (response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write(body, () => (isCut ? response.socket?.destroy() : response.end()));
  });
  await pullImage(engine.docker, "redis:8-alpine", new AbortController().signal);
  return engine.calls;
};

describe("pullImage", () => {
  it("asks for the one tag, and is done at the end of the stream", async () => {
    const [call] = await pullFrom(`${progress}\n{"status":"Status: Downloaded"}\n`);
    expect(call?.query.get("fromImage")).toBe("redis");
    expect(call?.query.get("tag")).toBe("8-alpine");
  });

  it.each([
    ["the first line", `${failure}\n${progress}\n`],
    ["a line in the middle", `${progress}\n${failure}\n${progress}\n`],
    ["the last line", `${progress}\n${failure}\n`],
    ["the last line, which lacks its newline", `${progress}\n${failure}`],
    ["the only line, in detail alone", '{"errorDetail":{"message":"manifest unknown"}}'],
  ])("rejects with the registry's words when they stand in %s of a good answer", async (_title, body) => {
    const pulling = pullFrom(body);
    await expect(pulling).rejects.toBeInstanceOf(EngineRejectedError);
    await expect(pulling).rejects.toThrow("pull of redis:8-alpine: manifest unknown");
  });

  it("rejects when the stream is cut, and does not take it for the end", async () => {
    await expect(pullFrom(`${progress}\n`, true)).rejects.toBeInstanceOf(EngineUnavailableError);
  });

  it("reads over a line that is no JSON", async () => {
    await expect(pullFrom(`oops\n${progress}\n`)).resolves.toHaveLength(1);
  });

  it.each([
    [404, EngineRejectedError],
    [500, EngineFaultError],
  ])("rejects when the Engine answers %d", async (code, expected) => {
    await using engine = await createFakeEngine();
    engine.on("POST", "/images/create", json(code, { message: "pull access denied" }));
    const pulling = pullImage(engine.docker, "x:1", new AbortController().signal);
    await expect(pulling).rejects.toBeInstanceOf(expected);
    await expect(pulling).rejects.toThrow("pull access denied");
  });

  it("rejects with the caller's reason and closes the connection when it is cancelled", async () => {
    await using engine = await createFakeEngine();
    engine.on("POST", "/images/create", (response) => {
      response.writeHead(200);
      response.write(`${progress}\n`);
    });
    const cancel = new AbortController();
    const pulling = pullImage(engine.docker, "redis:8", cancel.signal);
    pulling.catch(() => {});
    await vi.waitFor(() => expect(engine.calls).toHaveLength(1));
    const reason = new Error("too late");
    cancel.abort(reason);
    await expect(pulling).rejects.toBe(reason);
    await vi.waitFor(() => expect(engine.connections()).toBe(0));
  });
});

describe("splitReference", () => {
  it.each([
    ["redis", { fromImage: "redis", tag: "latest" }],
    ["redis:8-alpine", { fromImage: "redis", tag: "8-alpine" }],
    ["docker.io/library/redis:8", { fromImage: "docker.io/library/redis", tag: "8" }],
    ["registry.example:5000/pg", { fromImage: "registry.example:5000/pg", tag: "latest" }],
    ["registry.example:5000/a/pg:16", { fromImage: "registry.example:5000/a/pg", tag: "16" }],
    ["pg@sha256:0123", { fromImage: "pg@sha256:0123" }],
    ["registry.example:5000/pg:16@sha256:0123", { fromImage: "registry.example:5000/pg:16@sha256:0123" }],
  ])("never asks for every tag of %j", (reference, expected) => {
    expect(splitReference(reference)).toEqual(expected);
  });
});
