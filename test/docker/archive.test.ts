import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { extract, pack } from "tar-stream";
import { describe, expect, it } from "vitest";
import { packFiles, unpackFiles } from "../../src/docker/archive.ts";

const entriesOf = async (archive: Buffer) => {
  const entries: {
    name: string;
    type: string | null | undefined;
    mode: number | undefined;
    uid: number | undefined;
  }[] = [];
  const reader = extract();
  Readable.from([archive]).pipe(reader);
  for await (const entry of reader) {
    const { name, type, mode, uid } = entry.header;
    entries.push({ name, type, mode, uid });
    entry.resume();
  }
  return entries;
};

const archiveOf = async (entries: readonly { name: string; text?: string; type?: "directory" | "symlink" }[]) => {
  const archive = pack();
  for (const { name, text = "", type } of entries) {
    if (type === "symlink") archive.entry({ name, type, linkname: "/etc/passwd" });
    else if (type) archive.entry({ name, type });
    else archive.entry({ name }, text);
  }
  archive.finalize();
  return Readable.from([await buffer(archive)]);
};

describe("an archive", () => {
  it("comes back as it was packed, whatever the text and however it is cut", async () => {
    const name = fc.stringMatching(/^\.?[a-z]{1,20}\.(env|json)$/);
    const text = fc.string({ unit: "binary" }).map((raw) => Buffer.from(raw).toString("utf8"));
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(name, text, { maxKeys: 6 }),
        fc.integer({ min: 1, max: 700 }),
        async (files, size) => {
          const bytes = await packFiles("roboco", files);
          const chunks: Buffer[] = [];
          for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
          expect(await unpackFiles(Readable.from(chunks))).toEqual({ ...files });
        },
      ),
      { numRuns: 50 },
    );
  });

  it("holds a directory of root's that all may read, and files that nobody may write, in the order given", async () => {
    expect(await entriesOf(await packFiles("run/roboco", { "sandbox.json": "{}", "sandbox.env": "A=1\n" }))).toEqual([
      { name: "run/roboco/", type: "directory", mode: 0o755, uid: 0 },
      { name: "run/roboco/sandbox.json", type: "file", mode: 0o444, uid: 0 },
      { name: "run/roboco/sandbox.env", type: "file", mode: 0o444, uid: 0 },
    ]);
  });

  it("changes no directory that is a mount itself", async () => {
    expect(await entriesOf(await packFiles("", { "a.env": "" }))).toEqual([
      { name: "a.env", type: "file", mode: 0o444, uid: 0 },
    ]);
  });

  it("yields only the plain files of the directory itself", async () => {
    const archive = await archiveOf([
      { name: "roboco/", type: "directory" },
      { name: "roboco/sandbox.env", text: "A=1" },
      { name: "roboco/link", type: "symlink" },
      { name: "roboco/sub/", type: "directory" },
      { name: "roboco/sub/x", text: "x" },
      { name: "roboco/huge", text: "x".repeat(300 * 1024) },
      { name: "roboco/.phase", text: "armed a" },
    ]);
    expect(await unpackFiles(archive)).toEqual({ "sandbox.env": "A=1", ".phase": "armed a" });
  });

  it("of ever so many files is read up to a bound", async () => {
    const archive = await archiveOf(
      Array.from({ length: 500 }, (_, index) => ({ name: `roboco/f${index}`, text: "x" })),
    );
    expect(Object.keys(await unpackFiles(archive)).length).toBeLessThanOrEqual(64);
  });

  it("that is cut rejects", async () => {
    const bytes = await packFiles("roboco", { "sandbox.env": "A=1\n".repeat(500) });
    await expect(unpackFiles(Readable.from([bytes.subarray(0, 1300)]))).rejects.toThrow();
  });
});
