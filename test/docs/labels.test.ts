import { describe, expect, it } from "vitest";
import { agentLabels, labels, sidecarLabel } from "../../src/contract/labels.ts";
import { code, readTable } from "./markdown.ts";

const toLabels = (path: string): string[] =>
  readTable(path, "Label")
    .map((row) => code(row.Label))
    .sort();

describe("docs/labels.md", () => {
  it("has every label, and no other", () => {
    expect(toLabels("docs/labels.md")).toEqual([...Object.values(labels), sidecarLabel].sort());
  });
});

describe("README.md", () => {
  it("has every label that a user may set, and no other", () => {
    expect(toLabels("README.md")).toEqual([...agentLabels].sort());
  });
});
