import { availableParallelism } from "node:os";
import { describe, expect, it, vi } from "vitest";
import { configSchema, loadConfig } from "../../src/config.ts";
import { registry } from "../../src/engines/registry.ts";
import { code, read, readTable } from "./markdown.ts";

// Without any socket on this machine the default address is the documented one.
vi.mock("node:fs", async (importOriginal) => ({
  ...(await importOriginal<typeof import("node:fs")>()),
  existsSync: () => false,
}));

const launcherVariables = new Set(
  [...read("assets/enter").matchAll(/\$\{(ROBOCO_[A-Z_]+):-([^}]*)\}/g)].map(([, name]) => name),
);
const rows = readTable("docs/configuration.md", "Variable");
const rowsOf = (isLauncher: boolean) => rows.filter((row) => launcherVariables.has(code(row.Variable)) === isLauncher);
const nameOf = (row: (typeof rows)[number]): string => code(row.Variable);
const defaultOf = (row: (typeof rows)[number]): string => code(row.Default);

const shape = configSchema(registry).shape as Readonly<
  Record<string, { safeParse: (value: unknown) => { data?: unknown } }>
>;
const concurrency = "ROBOCO_SANDBOX_CONCURRENCY";

describe("docs/configuration.md", () => {
  it("has every variable, and no other", () => {
    expect(rowsOf(false).map(nameOf).sort()).toEqual(Object.keys(shape).sort());
  });

  it.each(rowsOf(false).filter((row) => nameOf(row) !== concurrency))(
    "says the default of $Variable as the code has it",
    (row) => {
      const [name, documented] = [nameOf(row), defaultOf(row)];
      if (documented === "unset") expect(shape[name]?.safeParse(undefined).data).toBeUndefined();
      else expect(loadConfig(registry, { [name]: documented })).toEqual(loadConfig(registry, {}));
    },
  );

  it("says the default of the concurrency as the code has it", () => {
    expect(defaultOf(rows.find((row) => nameOf(row) === concurrency) ?? {})).toBe("twice the number of CPUs");
    expect(loadConfig(registry, {}).concurrency).toBe(2 * availableParallelism());
  });

  it("has the launcher's variables with their defaults, and no other", () => {
    const inScript = [...read("assets/enter").matchAll(/\$\{(ROBOCO_[A-Z_]+):-([^}]*)\}/g)];
    expect(rowsOf(true).map((row) => [nameOf(row), defaultOf(row)])).toEqual(
      inScript.map(([, name, value]) => [name, value]),
    );
  });
});

describe("README.md", () => {
  it("says of each variable in its table what docs/configuration.md says", () => {
    const full = new Map(rows.map((row) => [nameOf(row), defaultOf(row)]));
    const short = readTable("README.md", "Variable");
    expect(short.map((row) => [nameOf(row), defaultOf(row)])).toEqual(
      short.map((row) => [nameOf(row), full.get(nameOf(row))]),
    );
  });
});

describe("every page", () => {
  it("names no variable that nothing reads", () => {
    const delivered = registry.flatMap((engine) =>
      Object.keys(engine.agentVariables({ host: "", port: 0, password: "" })),
    );
    const known = new Set<string | undefined>([...Object.keys(shape), ...launcherVariables, ...delivered]);
    const pages = [
      "README.md",
      "CONTRIBUTING.md",
      ...["labels", "logs", "errors", "security", "operations", "files"].map((page) => `docs/${page}.md`),
      "docs/configuration.md",
      "docs/architecture.md",
    ];
    const unknown = pages.flatMap((page) =>
      [...read(page).matchAll(/\bROBOCO_[A-Z][A-Z_]*[A-Z]\b/g)]
        .map(([name]) => name)
        .filter((name) => !known.has(name))
        .map((name) => `${page}: ${name}`),
    );
    expect(unknown).toEqual([]);
  });
});
