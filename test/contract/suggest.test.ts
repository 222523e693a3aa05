import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { suggest } from "../../src/contract/suggest.ts";

const valid = ["postgres", "redis", "mongo"];

describe("suggest", () => {
  it.each([
    ["redsi", "redis"],
    ["Postgre", "postgres"],
    ["MONGO", "mongo"],
    ["mongodb", "mongo"],
  ])("takes %j for %j", (word, meant) => {
    expect(suggest(word, valid)).toBe(` (did you mean "${meant}"?)`);
  });

  it.each(["elasticsearch", "", "kafka"])("suggests nothing for %j", (word) => {
    expect(suggest(word, valid)).toBe("");
  });

  it("suggests nothing when nothing is valid", () => {
    expect(suggest("x", [])).toBe("");
  });

  it("suggests valid words only", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string()), (word, words) => {
        const found = /^ \(did you mean "(.*)"\?\)$/s.exec(suggest(word, words))?.[1];
        if (found !== undefined) expect(words).toContain(found);
        else expect(suggest(word, words)).toBe("");
      }),
    );
  });
});
