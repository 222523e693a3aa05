import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { builtInRoles } from "../../src/gateway/built-in-roles.ts";
import { toManifest } from "../../src/gateway/manifest.ts";
import type { RoleConfiguration } from "../../src/gateway/role-schema.ts";
import { toolsByServer } from "../../src/gateway/verbs.ts";

const definitions = fc.record({
  description: fc.string({ minLength: 1 }),
  flow: fc.uniqueArray(fc.constantFrom(...toolsByServer.flow)),
  do: fc.uniqueArray(fc.constantFrom(...toolsByServer.do)),
  git: fc.uniqueArray(fc.constantFrom(...toolsByServer.git)),
  kb: fc.uniqueArray(fc.constantFrom(...toolsByServer.kb)),
  files: fc.record({ write: fc.boolean() }),
});
type Definition = RoleConfiguration[string];

const reverseKeys = <T extends object>(object: T): T => Object.fromEntries(Object.entries(object).reverse()) as T;

describe("toManifest", () => {
  it("has the shape of the contract, tools in the declared order", () => {
    expect(toManifest("auditor", builtInRoles)).toEqual({
      schema: 1,
      role: "auditor",
      description: builtInRoles.auditor?.description,
      servers: {
        flow: { tools: ["triage", "i_am_idle"] },
        do: { tools: ["note", "evidence"] },
        git: { tools: ["status", "log", "diff"] },
        kb: { tools: ["search", "query", "stats"] },
      },
      files: { write: false },
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  it("hashes what anyone can compute again: the rest as JSON with sorted keys and no white space", () => {
    const config: RoleConfiguration = {
      a: { description: "d", flow: ["triage"], do: ["note", "evidence"], git: ["log"], kb: [], files: { write: true } },
    };
    const canonical =
      '{"description":"d","files":{"write":true},"role":"a","schema":1,"servers":{"do":{"tools":["note","evidence"]},"flow":{"tools":["triage"]},"git":{"tools":["log"]},"kb":{"tools":[]}}}';
    expect(toManifest("a", config).hash).toBe(createHash("sha256").update(canonical).digest("hex"));
  });

  it("is the same whatever the order of keys in the configuration", () => {
    fc.assert(
      fc.property(definitions, definitions, (one: Definition, other: Definition) => {
        const config = { one, other };
        const turned = reverseKeys({ one: reverseKeys(one), other });
        expect(JSON.stringify(toManifest("one", turned))).toBe(JSON.stringify(toManifest("one", config)));
      }),
    );
  });

  it("has another hash exactly when anything in it differs", () => {
    fc.assert(
      fc.property(definitions, definitions, (one: Definition, other: Definition) => {
        const [a, b] = [toManifest("r", { r: one }), toManifest("r", { r: other })];
        const same = JSON.stringify({ ...a, hash: "" }) === JSON.stringify({ ...b, hash: "" });
        expect(a.hash === b.hash).toBe(same);
      }),
    );
  });

  it("has another hash for another role with the same tools", () => {
    const [a] = Object.values(builtInRoles);
    if (!a) throw new Error("no built-in role");
    expect(toManifest("x", { x: a, y: a }).hash).not.toBe(toManifest("y", { x: a, y: a }).hash);
  });

  it("names the nearest role for one that is not there", () => {
    expect(() => toManifest("develper", builtInRoles)).toThrow('Unknown role "develper" (did you mean "developer"?)');
    expect(() => toManifest("constructor", builtInRoles)).toThrow(RangeError);
  });
});
