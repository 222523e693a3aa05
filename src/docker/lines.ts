import { StringDecoder } from "node:string_decoder";

/** Lines of a byte stream, whatever the chunks: a chunk may end within a line, or within a character. */
export const createLineSplitter = (onLine: (line: string) => void) => {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  const push = (text: string): void => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") onLine(line);
  };
  return {
    write: (chunk: Buffer): void => push(decoder.write(chunk)),
    /** The last line may lack its newline. */
    end: (): void => push(`${decoder.end()}\n`),
  };
};
