import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentIdPattern } from "../../src/contract/agent-id.ts";
import { agentLabels } from "../../src/contract/labels.ts";
import { type OptIn, parseOptIn } from "../../src/contract/opt-in.ts";

const vocabulary = { engines: ["postgres", "redis", "mongo"], roles: ["developer", "qa"], installation: "default" };

const parse = (labels: Record<string, string>, installation = "default"): OptIn =>
  parseOptIn({ name: "roboco-agent-ada", labels }, { ...vocabulary, installation });

const services = "roboco.sandbox.services";
const hold = "roboco.sandbox.hold";
const id = "roboco.agent.id";
const role = "roboco.agent.role";
const installation = "roboco.agent.installation";

const refusalOf = (optIn: OptIn) => {
  if (optIn.kind !== "invalid") throw new Error(`is ${optIn.kind}, not invalid`);
  return optIn.refusal;
};
const enginesOf = (optIn: OptIn) => (optIn.kind === "valid" ? optIn.engines : optIn);

describe("parseOptIn", () => {
  it.each<[string, Record<string, string>]>([
    ["no label at all", {}],
    ["labels of others only", { app: "x", "com.docker.compose.project": "p", "roboco.other": "1", roboco: "1" }],
    ["an id alone, which asks for nothing", { [id]: "ada" }],
    ["an installation alone, which asks for nothing", { [installation]: "default" }],
    ["another installation", { [services]: "redis", [installation]: "b" }],
    ["another installation, even with mistakes", { [services]: "rediss", [installation]: "b", "roboco.agent.x": "" }],
    ["the labels of a sandbox", { "roboco.sandbox": "1", "roboco.sandbox.owner": "roboco-agent-ada" }],
  ])("takes a container with %s for a stranger", (_title, labels) => {
    expect(parse(labels)).toEqual({ kind: "stranger" });
  });

  it("refuses an agent that claims to be a sandbox as well", () => {
    expect(refusalOf(parse({ [services]: "redis", "roboco.sandbox": "1" })).missing).toEqual(["roboco.sandbox"]);
    expect(refusalOf(parse({ [role]: "qa", "roboco.sandbox": "1" })).missing).toEqual(["roboco.sandbox"]);
  });

  it("takes an agent without an installation for a stranger when it serves a named one", () => {
    expect(parse({ [services]: "redis" }, "b")).toEqual({ kind: "stranger" });
    expect(parse({ [services]: "redis", [installation]: "b" }, "b")).toMatchObject({ kind: "valid" });
  });

  it("reads every label of a whole opt-in", () => {
    expect(
      parse({ [services]: "redis", [id]: "lovelace", [role]: "qa", [hold]: "none", [installation]: "default" }),
    ).toEqual({ kind: "valid", agentId: "lovelace", engines: ["redis"], role: "qa", hold: "none" });
  });

  it("pauses, derives the id and gives no manifest where nothing else is said", () => {
    expect(parse({ [services]: "redis" })).toEqual({
      kind: "valid",
      agentId: "ada",
      engines: ["redis"],
      role: undefined,
      hold: "pause",
    });
  });

  it("accepts a role alone: a manifest without a sandbox", () => {
    expect(parse({ [role]: "developer" })).toMatchObject({ kind: "valid", engines: [], role: "developer" });
  });

  it.each([
    "postgres,redis,mongo",
    "mongo redis postgres",
    " redis ,, mongo\tpostgres,",
    "redis\nredis,mongo,postgres,redis",
  ])("reads %j as the same three engines: separators, order and duplicates do not matter", (text) => {
    expect(enginesOf(parse({ [services]: text }))).toEqual(["postgres", "redis", "mongo"]);
  });

  it.each<[string, Record<string, string>, string, string]>([
    ["an unknown engine, with the nearest one", { [services]: "redsi" }, services, 'did you mean "redis"?'],
    ["an engine in upper case, with the one meant", { [services]: "Redis" }, services, 'did you mean "redis"?'],
    [
      "an unknown engine far from any, with those there are",
      { [services]: "elasticsearch" },
      services,
      "known: postgres, redis, mongo",
    ],
    ["services that name no engine", { [services]: " , " }, services, "names no engine"],
    ["an unknown role, with the nearest one", { [role]: "develper" }, role, 'did you mean "developer"?'],
    ["an empty role", { [role]: "" }, role, "is no known role"],
    ["a bad id", { [services]: "redis", [id]: "Ada_L" }, id, '"Ada_L" is no agent id'],
    ["an empty id", { [services]: "redis", [id]: "" }, id, "is no agent id"],
    ["an id of 41 characters", { [services]: "redis", [id]: "a".repeat(41) }, id, "is no agent id"],
    [
      "a bad way to hold, with the nearest one",
      { [services]: "redis", [hold]: "pauze" },
      hold,
      'did you mean "pause"?',
    ],
    [
      "a bad way to hold that names a part of every object",
      { [services]: "redis", [hold]: "constructor" },
      hold,
      "is no known way to hold",
    ],
    [
      "an unknown sandbox label, with the nearest one",
      { "roboco.sandbox.service": "redis" },
      "roboco.sandbox.service",
      `did you mean "${services}"?`,
    ],
    [
      "an unknown agent label, with the nearest one",
      { [services]: "redis", "roboco.agent.rol": "qa" },
      "roboco.agent.rol",
      `did you mean "${role}"?`,
    ],
    [
      "a label that only sandboxes carry",
      { [services]: "redis", "roboco.sandbox.owner": "x" },
      "roboco.sandbox.owner",
      "is no known label",
    ],
  ])("refuses %s", (_title, labels, label, text) => {
    const { error, message, missing } = refusalOf(parse(labels));
    expect(error).toBe("OPT_IN_INVALID");
    expect(message).toContain(label);
    expect(message).toContain(text);
    expect(missing).toEqual([label]);
  });

  it("names every problem of a container at once, and what to do", () => {
    const { message, missing, remediate } = refusalOf(
      parse({ [services]: "redsi,mongo,oracle", [id]: "X", [role]: "boss", [hold]: "maybe", "roboco.agent.nmae": "" }),
    );
    expect([...missing].sort()).toEqual(["roboco.agent.nmae", id, role, hold, services].sort());
    for (const word of ["redsi", "oracle", '"X"', "boss", "maybe", "roboco.agent.nmae"])
      expect(message).toContain(word);
    expect(remediate).toMatch(/recreate/);
  });

  it("names a refused agent by what can be made of its id", () => {
    expect(parse({ [services]: "x", [id]: "Ada_L" })).toMatchObject({ agentId: "ada-l" });
    expect(parse({ [services]: "x" })).toMatchObject({ agentId: "ada" });
  });

  const anyText = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("redis", "postgres,redis", "qa", "none", "default", ""),
  );
  const anyKey = fc.oneof(
    fc.constantFrom<string>(
      ...agentLabels,
      "roboco.sandbox",
      "roboco.agent.__proto__",
      "roboco.sandbox.",
      "__proto__",
      "constructor",
    ),
    fc.string(),
    fc.string().map((rest) => `roboco.agent.${rest}`),
  );
  const anyLabels = fc.array(fc.tuple(anyKey, anyText)).map((entries) => Object.fromEntries(entries));

  it("never throws, and knows every agent by a proper id, whatever the labels", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), anyLabels, (name, labels) => {
        const optIn = parseOptIn({ name, labels }, vocabulary);
        if (optIn.kind !== "stranger") expect(optIn.agentId).toMatch(agentIdPattern);
        if (optIn.kind === "invalid") expect(optIn.refusal.missing.length).toBeGreaterThan(0);
        if (optIn.kind === "valid") expect(optIn.engines.length > 0 || optIn.role !== undefined).toBe(true);
      }),
    );
  });

  it("reads any selection of engines in any order as that set", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...vocabulary.engines), { minLength: 1 }),
        fc.constantFrom(",", " ", ", ", " , ,"),
        (words, separator) => {
          expect(enginesOf(parse({ [services]: words.join(separator) }))).toEqual(
            vocabulary.engines.filter((engine) => words.includes(engine)),
          );
        },
      ),
    );
  });
});
