import { describe, expect, it } from "vitest";
import { answers, call, statusOf } from "../../src/docker/call.ts";
import { EngineFaultError, EngineRejectedError, EngineUnavailableError } from "../../src/errors.ts";
import { createFakeEngine, cut, json, status } from "../support/fake-engine.ts";

const never = (): Promise<never> => new Promise(() => {});

describe("call", () => {
  it("resolves to what the Engine says", async () => {
    await using engine = await createFakeEngine();
    engine.on("GET", "/version", json(200, { Version: "28.5" }));
    await expect(call("version", () => engine.docker.version())).resolves.toEqual({ Version: "28.5" });
  });

  it("rejects by its deadline when the Engine drops the connection in the middle of a body", async () => {
    await using engine = await createFakeEngine();
    engine.on("GET", "/version", cut('{"Version":"28'));
    const cutOff = call("version", () => engine.docker.version(), { deadlineMs: 50 });
    await expect(cutOff).rejects.toBeInstanceOf(EngineUnavailableError);
    await expect(cutOff).rejects.toThrow("version: no answer within 0.05 s");
  });

  it("rejects by its deadline when the Engine does not answer, and closes the connection", async () => {
    await using engine = await createFakeEngine();
    let isClosed = false;
    const closed = new Promise<void>((resolve) => {
      engine.on("GET", "/containers/json", (response) => {
        response.once("close", () => {
          isClosed = true;
          resolve();
        });
      });
    });
    const late = call("list", (abortSignal) => engine.docker.listContainers({ abortSignal }), { deadlineMs: 50 });
    await expect(late).rejects.toBeInstanceOf(EngineUnavailableError);
    await closed;
    expect(isClosed).toBe(true);
  });

  it("rejects with the caller's own reason when it is cancelled", async () => {
    const cancel = new AbortController();
    const cancelled = call("x", never, { signal: cancel.signal });
    const reason = new Error("drain");
    cancel.abort(reason);
    await expect(cancelled).rejects.toBe(reason);
    await expect(call("x", never, { signal: cancel.signal })).rejects.toBe(reason);
  });

  it.each([
    [400, EngineRejectedError],
    [404, EngineRejectedError],
    [409, EngineRejectedError],
    [500, EngineFaultError],
    [503, EngineFaultError],
  ])("turns the status %d into a class by what to do about it, with the Engine's words", async (code, expected) => {
    await using engine = await createFakeEngine();
    engine.on("GET", "/info", status(code, " something is wrong \n"));
    const failing = call("info", () => engine.docker.info());
    await expect(failing).rejects.toBeInstanceOf(expected);
    await expect(failing).rejects.toMatchObject({ status: code, message: "info: something is wrong" });
  });

  it("tells of an error without a JSON body", async () => {
    await using engine = await createFakeEngine();
    engine.on("GET", "/info", (response) => response.writeHead(502).end("<html>Bad Gateway</html>"));
    await expect(call("info", () => engine.docker.info())).rejects.toMatchObject({ status: 502 });
  });

  it("takes a socket that is not there for an Engine that is away", async () => {
    const engine = await createFakeEngine();
    await engine[Symbol.asyncDispose]();
    const away = call("info", () => engine.docker.info());
    await expect(away).rejects.toBeInstanceOf(EngineUnavailableError);
    await expect(away).rejects.toThrow(/ENOENT|ECONNREFUSED/);
  });
});

describe("answers", () => {
  it("reads the statuses that are answers, and no other", () => {
    const read = answers({ 404: "gone", 304: undefined });
    expect(read(new EngineRejectedError("x", 404))).toBe("gone");
    expect(read(new EngineRejectedError("x", 304))).toBeUndefined();
    const other = new EngineRejectedError("x", 409);
    expect(() => read(other)).toThrow(other);
    const away = new EngineUnavailableError("x", "");
    expect(() => read(away)).toThrow(away);
    expect(statusOf(away)).toBeUndefined();
  });
});
