import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { extract, pack } from "tar-stream";

/** A container can hold anything at the path; what we wrote is a few hundred bytes. */
const maxFileBytes = 256 * 1024;
const maxFiles = 64;

/** An archive of world-readable files below `prefix`, which is made as a directory where it is not empty. */
export const packFiles = async (prefix: string, contents: Readonly<Record<string, string>>): Promise<Buffer> => {
  const archive = pack();
  if (prefix !== "") archive.entry({ name: `${prefix}/`, type: "directory", mode: 0o755 });
  for (const [name, text] of Object.entries(contents)) {
    archive.entry({ name: prefix === "" ? name : `${prefix}/${name}`, mode: 0o444 }, text);
  }
  archive.finalize();
  return await buffer(archive);
};

/** The regular files directly in the archive's top directory, by name. */
export const unpackFiles = async (archive: NodeJS.ReadableStream): Promise<Record<string, string>> => {
  const contents: Record<string, string> = {};
  const unpack = extract();
  const reading = (async () => {
    for await (const entry of unpack) {
      const { name, type, size } = entry.header;
      const [, file, ...deeper] = name.split("/");
      const isWanted = type === "file" && file && deeper.length === 0 && (size ?? 0) <= maxFileBytes;
      if (isWanted && Object.keys(contents).length < maxFiles) contents[file] = (await buffer(entry)).toString("utf8");
      else entry.resume();
    }
  })();
  await Promise.all([pipeline(archive, unpack), reading]);
  return contents;
};
