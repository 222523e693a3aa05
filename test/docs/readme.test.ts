import { describe, expect, it } from "vitest";
import { usage } from "../../src/cli/usage.ts";
import { files, runDirectory } from "../../src/contract/delivery.ts";
import { toSandboxName } from "../../src/contract/names.ts";
import { registry } from "../../src/engines/registry.ts";
import { builtInRoles } from "../../src/gateway/built-in-roles.ts";
import { code, codes, read, readTable } from "./markdown.ts";

const engines = readTable("README.md", "Engine");

describe("README.md", () => {
  it("has every command of the usage text, and no other", () => {
    const section = /Commands:\n([\s\S]*?)\n\n/.exec(usage)?.[1] ?? "";
    const commands = [...section.matchAll(/^ {2}(\S+(?: [A-Z]+)?) {2,}/gm)].map(([, command]) => command);
    expect(commands.length).toBeGreaterThan(0);
    expect(readTable("README.md", "Command").map((row) => code(row.Command))).toEqual(commands);
  });

  it("has the delivered variables of every engine, and no other", () => {
    const documented = engines
      .filter((row) => row.Variables !== undefined)
      .map((row) => [code(row.Engine), codes(row.Variables)]);
    const delivered = registry.map((engine) => [
      engine.name,
      Object.keys(engine.agentVariables({ host: "", port: 0, password: "" })),
    ]);
    expect(documented).toEqual(delivered);
  });

  it("has every engine's image, container name and deadline, and no other", () => {
    const documented = engines
      .filter((row) => row.Image !== undefined)
      .map((row) => [code(row.Engine), code(row.Image), code(row["Container name, and host"]), row["Ready within"]]);
    expect(documented).toEqual(
      registry.map((engine) => [
        engine.name,
        engine.image,
        toSandboxName(engine.shortName, "{agent id}"),
        `${engine.readyWithinMs / 1000} s`,
      ]),
    );
  });

  it("has every built-in role", () => {
    const row = readTable("README.md", "Label").find((candidate) => code(candidate.Label) === "roboco.agent.role");
    expect(codes(row?.Value)).toEqual(Object.keys(builtInRoles));
  });
});

describe("docs/files.md", () => {
  it("has every file of the run directory, and no other", () => {
    const documented = readTable("docs/files.md", "File").map((row) => code(row.File));
    const shared = ["bin/enter", "manifests/{role}.json"];
    expect(documented).toEqual([...Object.values(files), ...shared]);
    expect(read("docs/files.md")).toContain(runDirectory);
  });
});

describe("package.json", () => {
  it("has every npm script that CONTRIBUTING.md names", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const named = readTable("CONTRIBUTING.md", "Command").map((row) => code(row.Command).replace(/^npm (run )?/, ""));
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});
