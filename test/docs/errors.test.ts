import { describe, expect, it } from "vitest";
import { refusalCodes } from "../../src/contract/refusal.ts";
import { code, listFiles, read, readTable } from "./markdown.ts";

const rows = readTable("docs/errors.md", "Code");
const documentedRefusals = rows.filter((row) => row["Exit code"] === undefined);
const documentedErrors = rows.filter((row) => row["Exit code"] !== undefined);

/** Code by the name of its class, from the source: there is no list of them in the program. */
const findErrorCodes = (): Map<string, string> => {
  const found = new Map<string, string>();
  for (const path of listFiles([".ts"]).filter((file) => file.startsWith("src/"))) {
    const classes = read(path).matchAll(
      /class (\w+) extends SidecarError \{[\s\S]*?override readonly code = "(\w+)";/g,
    );
    for (const [, name = "", its = ""] of classes) found.set(name, its);
  }
  return found;
};

/** Exit code by error code, from `exitCodeOf` of main.ts, which runs when it is imported. */
const findExitCodes = (): Map<string, number> => {
  const source = read("src/main.ts");
  const body = /const exitCodeOf = [\s\S]*?\n\};/.exec(source)?.[0] ?? "";
  const byCode = new Set(/const configurationCodes = new Set\(\[(.*?)\]\)/.exec(source)?.[1]?.match(/\w+/g));
  const fallback = Number(/\n {2}return (\d+);/.exec(body)?.[1]);
  const found = new Map<string, number>();
  for (const [name, its] of findErrorCodes()) {
    const line = body
      .split("\n")
      .find((text) => text.includes(`instanceof ${name})`) || text.includes(`instanceof ${name} ||`));
    const named = /return (\d+);/.exec(line ?? "")?.[1];
    const configured = byCode.has(its) ? /configurationCodes\.has[^\n]*return (\d+);/.exec(body)?.[1] : undefined;
    found.set(its, Number(named ?? configured ?? fallback));
  }
  return found;
};

describe("docs/errors.md", () => {
  it("has every refusal code, and no other", () => {
    expect(documentedRefusals.map((row) => code(row.Code))).toEqual([...refusalCodes]);
  });

  it("gives every code a cause and a remedy", () => {
    expect(rows.filter((row) => !row.Cause || !row.Remedy)).toEqual([]);
  });

  it("has the code of every error class with its exit code, and no other", () => {
    const documented = documentedErrors.map((row): [string, number] => [code(row.Code), Number(row["Exit code"])]);
    expect(new Map(documented.sort())).toEqual(new Map([...findExitCodes()].sort()));
  });

  it("names every source of an exit code that the README lists", () => {
    const listed = readTable("README.md", "Exit code").map((row) => Number(row["Exit code"]));
    expect(listed).toEqual([...new Set([0, 1, ...findExitCodes().values()])].sort((a, b) => a - b));
  });
});

describe("docs/files.md", () => {
  it("has every exit code of the launcher, and no other", () => {
    // 128 and more: a signal's number, as shells do.
    const exits = [...read("assets/enter").matchAll(/^\s*exit (\d+)/gm)].map(([, text]) => Number(text));
    const own = [...new Set(exits.filter((value) => value < 128))].sort((a, b) => a - b);
    expect(own).not.toEqual([]);
    expect(readTable("docs/files.md", "Exit code").map((row) => Number(row["Exit code"]))).toEqual(own);
  });
});
