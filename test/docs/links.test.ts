import { describe, expect, it } from "vitest";
import { findBrokenLinks, listFiles, read } from "./markdown.ts";

const pages = listFiles([".md"]);

describe("the pages", () => {
  it("are there", () => {
    expect(pages).toEqual(expect.arrayContaining(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]));
    expect(pages.filter((page) => page.startsWith("docs/adr/")).length).toBeGreaterThan(3);
  });

  it.each(pages)("%s has no broken relative link", (page) => {
    expect(findBrokenLinks(page)).toEqual([]);
  });

  it("would be told about a missing file and a missing heading", () => {
    expect(findBrokenLinks("README.md", "[a](docs/nowhere.md) [b](README.md#no-such) [c](README.md#limits)")).toEqual([
      "docs/nowhere.md",
      "README.md#no-such",
    ]);
  });

  it.each(pages.filter((page) => page.startsWith("docs/adr/")))("%s has the four parts of a decision", (page) => {
    const parts = [/^Status: \w/m, /^## Context$/m, /^## Decision$/m, /^## Consequences$/m];
    expect(parts.filter((part) => !part.test(read(page)))).toEqual([]);
  });

  it.each(pages.filter((page) => page.startsWith("docs/")))("%s is reached from another page", (page) => {
    const name = page.split("/").at(-1) ?? "";
    expect(pages.filter((other) => other !== page && read(other).includes(`${name}`))).not.toEqual([]);
  });
});

describe("every page and source", () => {
  it("names no path of the machine that it was written on", () => {
    const places = ["work", "root"].map((name) => new RegExp(`(?<![\\w.$}])/${name}/`));
    const paths = listFiles([".md", ".ts", ".mjs", ".json", ".yaml", ".yml", ".sh", "Dockerfile", "enter", ".npmrc"]);
    expect(paths).toEqual(expect.arrayContaining(["src/main.ts", "assets/enter", "package.json", "Dockerfile"]));
    expect(paths.filter((path) => places.some((place) => place.test(read(path))))).toEqual([]);
  });
});
