import { describe, expect, it } from "vitest";
import { connectEngine } from "../../src/docker/client.ts";
import { EngineUnavailableError, EngineUnsupportedError } from "../../src/errors.ts";
import { type Answer, createFakeEngine, json } from "../support/fake-engine.ts";

const versionOf = (newest: string, oldest?: string): Answer =>
  json(200, { Version: "99.0", ApiVersion: newest, ...(oldest ? { MinAPIVersion: oldest } : {}) });

const connectTo = async (answer: Answer) => {
  await using engine = await createFakeEngine();
  engine.on("GET", "/version", answer);
  engine.on("GET", "/info", json(200, { ID: "engine-1" }));
  const client = await connectEngine({ kind: "unix", socketPath: engine.socketPath });
  return { client, calls: engine.calls };
};

describe("connectEngine", () => {
  it.each([
    ["its own newest with a newer Engine that still speaks it", "1.60", "1.44", "1.51"],
    ["its own newest with the same Engine", "1.51", "1.24", "1.51"],
    ["the Engine's newest with an older Engine", "1.45", "1.24", "1.45"],
    ["the oldest that it speaks", "1.41", "1.12", "1.41"],
    ["the only version that there is", "1.47", undefined, "1.47"],
  ])("agrees on %s", async (_title, newest, oldest, agreed) => {
    const { client, calls } = await connectTo(versionOf(newest, oldest));
    expect(client).toMatchObject({ apiVersion: agreed, version: "99.0", engineId: "engine-1" });
    // The first question is asked without a version: any Engine answers it.
    expect(calls.map(({ path, version }) => [path, version])).toEqual([
      ["/version", undefined],
      ["/info", agreed],
    ]);
  });

  it.each([
    ["too old, and says what to upgrade to", versionOf("1.40", "1.12"), "Upgrade Docker to 20.10"],
    ["too new, and says to upgrade the sidecar", versionOf("1.70", "1.52"), "Upgrade roboco-sidecar"],
    ["no Docker Engine but something with another JSON", json(200, { hello: "world" }), "Set DOCKER_HOST"],
    [
      "no Docker Engine but something with a page",
      (response) => response.writeHead(200).end("<html>hello</html>"),
      "Set DOCKER_HOST",
    ],
    ["no Docker Engine but something that knows no such path", json(404, { message: "not found" }), "Set DOCKER_HOST"],
  ] as const satisfies readonly [string, Answer, string][])(
    "refuses one that is %s",
    async (_title, answer, remedy) => {
      const connecting = connectTo(answer);
      await expect(connecting).rejects.toBeInstanceOf(EngineUnsupportedError);
      await expect(connecting).rejects.toMatchObject({ remediate: expect.stringContaining(remedy) });
    },
  );

  it("takes an Engine that fails for one that is away, not for something else", async () => {
    await expect(connectTo(json(503, { message: "starting" }))).rejects.not.toBeInstanceOf(EngineUnsupportedError);
  });

  it("names the place where nobody answers", async () => {
    const connecting = connectEngine({ kind: "unix", socketPath: "/nowhere/docker.sock" });
    await expect(connecting).rejects.toBeInstanceOf(EngineUnavailableError);
    await expect(connecting).rejects.toThrow("/nowhere/docker.sock");
  });
});
