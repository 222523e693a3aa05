import type Docker from "dockerode";
import { createLineSplitter } from "../src/docker/lines.ts";
import { until } from "../test/e2e/support/until.ts";

/** The Engine's own times of what happened to containers, in ms since the epoch. */
export const watchEvents = async (docker: Docker) => {
  const times = new Map<string, number>();
  const stream = await docker.getEvents({ filters: { type: ["container"] } });
  const splitter = createLineSplitter((line) => {
    const { Action, Actor, timeNano } = JSON.parse(line) as { Action: string; Actor: { ID: string }; timeNano: number };
    const key = `${Action} ${Actor.ID}`;
    if (!times.has(key)) times.set(key, timeNano / 1e6);
  });
  stream.on("data", (chunk: Buffer) => splitter.write(chunk));
  stream.on("error", () => {}); // its own end
  return {
    first: (action: string, id: string): Promise<number> =>
      until(`${action} of ${id.slice(0, 12)}`, () => times.get(`${action} ${id}`), { everyMs: 5 }),
    stop: (): void => {
      if ("destroy" in stream && typeof stream.destroy === "function") stream.destroy();
    },
  };
};
