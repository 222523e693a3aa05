import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentIdPattern, deriveAgentId, toAgentId } from "../../src/contract/agent-id.ts";
import { toSandboxName } from "../../src/contract/names.ts";
import { registry } from "../../src/engines/registry.ts";

const compose = (project: string, service: string, number: string, more: Record<string, string> = {}) => ({
  "com.docker.compose.project": project,
  "com.docker.compose.service": service,
  "com.docker.compose.container-number": number,
  ...more,
});

describe("agentIdPattern", () => {
  it.each(["a", "7", "a-b", "agent-1", "a".repeat(40), "a--b"])("accepts %j", (id) => {
    expect(id).toMatch(agentIdPattern);
  });

  it.each(["", "-a", "a-", "A", "a_b", "a.b", "a b", "ä", "a\n", "a".repeat(41)])("rejects %j", (id) => {
    expect(id).not.toMatch(agentIdPattern);
  });
});

describe("deriveAgentId", () => {
  it.each([
    [
      "a compose service's container by project, service and number",
      "x",
      compose("shop", "coder", "2"),
      "shop-coder-2",
    ],
    [
      "a compose one-off by its name, for its number is its service's",
      "shop-coder-run-1f2e",
      compose("shop", "coder", "1", { "com.docker.compose.oneoff": "True" }),
      "shop-coder-run-1f2e",
    ],
    ["a container with half of compose's labels by its name", "solo", { "com.docker.compose.project": "shop" }, "solo"],
    ["any other container by its name", "worker", {}, "worker"],
    ["a name less a leading roboco-agent-", "roboco-agent-ada", {}, "ada"],
    ["a name with roboco-agent- elsewhere as it is", "my-roboco-agent-ada", {}, "my-roboco-agent-ada"],
    ["a name less the Engine's leading slash", "/roboco-agent-ada", {}, "ada"],
    ["upper case in lower case", "Worker", {}, "worker"],
    ["other characters as dashes", "my_agent.v2", {}, "my-agent-v2"],
    ["a name without dashes at its ends", "_agent_", {}, "agent"],
  ])("names %s", (_title, name, labels, expected) => {
    expect(deriveAgentId({ name, labels })).toBe(expected);
  });

  it("cuts what is too long and closes it with a hash of the whole", () => {
    const long = "a-very-long-project-name-of-a-customer-and-service";
    const ids = [`${long}-1`, `${long}-2`].map((name) => deriveAgentId({ name, labels: {} }));
    for (const id of ids) {
      expect(id).toMatch(
        /^a-very-long-project-name-of-a-cu[a-z0-9-]*-[0-9a-f]{8}$|^a-very-long-project-name[a-z0-9-]*-[0-9a-f]{8}$/,
      );
      expect(id.length).toBeLessThanOrEqual(40);
    }
    expect(ids[0]).not.toBe(ids[1]);
  });

  it("names a container of which no character is left by a hash", () => {
    expect(deriveAgentId({ name: "___", labels: {} })).toMatch(/^[0-9a-f]{8}$/);
  });

  it("is an agent id for any name and any labels, and the same each time", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom("a", "-", "_", "Z"), maxLength: 90 }),
    );
    const labels = fc.oneof(
      fc.dictionary(text, text),
      fc.tuple(text, text, text).map(([project, service, number]) => compose(project, service, number)),
    );
    fc.assert(
      fc.property(text, labels, (name, its) => {
        const id = deriveAgentId({ name, labels: its });
        expect(id).toMatch(agentIdPattern);
        expect(deriveAgentId({ name, labels: its })).toBe(id);
      }),
    );
  });
});

describe("toAgentId", () => {
  it("leaves an agent id as it is", () => {
    fc.assert(
      fc.property(fc.stringMatching(agentIdPattern), (id) => {
        expect(toAgentId(id)).toBe(id);
      }),
    );
  });

  it("leaves room for a sandbox's name to be a host name", () => {
    for (const { shortName } of registry) {
      expect(toSandboxName(shortName, toAgentId("a".repeat(100))).length).toBeLessThanOrEqual(63);
    }
  });
});
