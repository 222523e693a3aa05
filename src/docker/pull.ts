import type Docker from "dockerode";
import { EngineRejectedError } from "../errors.ts";
import { call } from "./call.ts";
import { createLineSplitter } from "./lines.ts";

/** Pulls to the very end of the stream: an error inside a 200 answer is an error, wherever it stands. */
export const pullImage = async (docker: Docker, reference: string, signal: AbortSignal): Promise<void> => {
  const pulling = `pull of ${reference}`;
  await call(
    pulling,
    async (abortSignal) => {
      const stream = (await docker.createImage({
        ...splitReference(reference),
        abortSignal,
      })) as NodeJS.ReadableStream & {
        destroy(): void;
      };
      abortSignal.addEventListener("abort", () => stream.destroy(), { once: true });
      await readToEnd(stream, pulling);
    },
    // The caller's signal is the deadline: how long a pull may take is configuration.
    { deadlineMs: 2 ** 31 - 1, signal },
  );
};

const readToEnd = (stream: NodeJS.ReadableStream, what: string): Promise<void> =>
  new Promise((resolve, reject) => {
    let failure: string | undefined;
    const splitter = createLineSplitter((line) => {
      failure ??= errorOf(line);
    });
    stream.on("data", (chunk: Buffer) => splitter.write(chunk));
    stream.once("error", reject);
    stream.once("close", () => reject(new Error("the stream was cut")));
    stream.once("end", () => {
      splitter.end();
      if (failure === undefined) resolve();
      else reject(new EngineRejectedError(`${what}: ${failure}`, 404));
    });
  });

const errorOf = (line: string): string | undefined => {
  try {
    const { error, errorDetail } = JSON.parse(line) as { error?: string; errorDetail?: { message?: string } };
    return error ?? errorDetail?.message;
  } catch {
    return undefined;
  }
};

/** Without a tag the Engine would pull every tag there is. */
export const splitReference = (reference: string): { fromImage: string; tag?: string } => {
  if (reference.includes("@")) return { fromImage: reference };
  const colon = reference.indexOf(":", reference.lastIndexOf("/") + 1);
  return colon === -1
    ? { fromImage: reference, tag: "latest" }
    : { fromImage: reference.slice(0, colon), tag: reference.slice(colon + 1) };
};
