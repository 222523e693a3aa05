import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatRefusal, mergeRefusals, type Refusal } from "../../src/contract/refusal.ts";

const refusal = (over: Partial<Refusal> = {}): Refusal => ({
  error: "NAME_TAKEN",
  message: "The name is taken.",
  remediate: "Rename it.",
  missing: ["redis"],
  ...over,
});

describe("formatRefusal", () => {
  it("is the envelope, and ends with a newline", () => {
    const text = formatRefusal(refusal());
    expect(JSON.parse(text)).toEqual(refusal());
    expect(text.endsWith("}\n")).toBe(true);
  });

  it("puts message and remedy on a line each, whatever they hold, for a reader without a JSON parser", () => {
    const text = fc.string({ unit: fc.constantFrom("a", '"', "\\", "\n", "\r", "\t", "\u2028", " ", "é", "\u0000") });
    fc.assert(
      fc.property(text, text, (message, remediate) => {
        const lines = formatRefusal(refusal({ message, remediate })).split("\n");
        for (const field of ["error", "message", "remediate"]) {
          const found = lines.filter((line) => line.startsWith(`  "${field}": "`));
          expect(found).toHaveLength(1);
          expect(found[0]).toMatch(/",$/);
        }
        expect(JSON.parse(lines.join("\n"))).toMatchObject({ message: message.replace(/\s+/g, " ").trim() });
      }),
    );
  });
});

describe("mergeRefusals", () => {
  it("names every problem once, under the first one's code", () => {
    const merged = mergeRefusals([
      refusal({ error: "IMAGE_UNAVAILABLE", message: "No image.", remediate: "Pull it.", missing: ["redis"] }),
      refusal({ message: "No image.", remediate: "Free it.", missing: ["mongo", "redis"] }),
    ]);
    expect(merged).toEqual({
      error: "IMAGE_UNAVAILABLE",
      message: "No image.",
      remediate: "Pull it. Free it.",
      missing: ["redis", "mongo"],
    });
  });
});
