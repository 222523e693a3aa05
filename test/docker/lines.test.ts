import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLineSplitter } from "../../src/docker/lines.ts";

const split = (chunks: readonly Buffer[], isEnded = true): string[] => {
  const lines: string[] = [];
  const splitter = createLineSplitter((line) => lines.push(line));
  for (const chunk of chunks) splitter.write(chunk);
  if (isEnded) splitter.end();
  return lines;
};

const chunksOf = (bytes: Buffer, cuts: readonly number[]): Buffer[] => {
  const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length));
};

describe("createLineSplitter", () => {
  it("finds the same lines however they are cut, within a line or within a character", () => {
    const line = fc
      .string({ unit: fc.constantFrom("a", "é", "€", "😀", '"', "\r") })
      .filter((text) => text.trim() !== "");
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat(300)), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(""));
        expect(split(chunksOf(bytes, cuts), false)).toEqual(lines);
      }),
    );
  });

  it("finds the last line though it lacks its newline", () => {
    expect(split([Buffer.from("a\nb")])).toEqual(["a", "b"]);
    expect(split([Buffer.from("a\nb")], false)).toEqual(["a"]);
  });

  it("skips empty lines", () => {
    expect(split([Buffer.from("\n\na\r\n \n")])).toEqual(["a\r"]);
  });
});
