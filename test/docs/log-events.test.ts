import { describe, expect, it } from "vitest";
import { logEvents } from "../../src/contract/log-events.ts";
import { code, readTable } from "./markdown.ts";

describe("docs/logs.md", () => {
  it("has every log event with its level, and no other", () => {
    const documented = readTable("docs/logs.md", "Event").map((row) => [code(row.Event), row.Level]);
    expect(documented).toEqual(Object.entries(logEvents).map(([event, { level }]) => [event, level]));
  });

  it("gives every event a meaning", () => {
    expect(readTable("docs/logs.md", "Event").filter((row) => !row.Meaning)).toEqual([]);
  });
});
