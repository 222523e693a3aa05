import { describe, expect, it } from "vitest";
import { code, codes, read, readTable } from "./markdown.ts";

const portMethods = (): string[] => {
  const body = /export interface DockerPort \{\n([\s\S]*?)\n\}/.exec(read("src/reconcile/ports.ts"))?.[1] ?? "";
  return [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, name]) => name ?? "");
};

describe("docs/security.md", () => {
  it("lists every method of DockerPort, and no other", () => {
    const methods = portMethods();
    expect(methods.length).toBeGreaterThan(0);
    expect(readTable("docs/security.md", "Method").map((row) => code(row.Method))).toEqual(methods);
  });

  it("gives every method its endpoints, and says what each that writes writes to", () => {
    for (const row of readTable("docs/security.md", "Method")) {
      const endpoints = codes(row["Engine endpoint"]);
      expect(endpoints, row.Method).not.toEqual([]);
      for (const endpoint of endpoints) expect(endpoint).toMatch(/^(GET|POST|PUT|DELETE) \/[a-z]+/);
      const isWriting = endpoints.some((endpoint) => !endpoint.startsWith("GET "));
      expect(row.Writes !== "", row.Method).toBe(isWriting);
    }
  });

  it("says truly that no exec is ever made", () => {
    const engine = read("src/docker/engine.ts");
    expect(engine).toContain("docker.getContainer");
    expect(engine).not.toMatch(/\.exec\(\{|getExec\(/);
  });
});
