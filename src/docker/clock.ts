import type Docker from "dockerode";
import type { Clock } from "../reconcile/ports.ts";
import { readEngineTime } from "./engine.ts";

/** The Engine's clock, carried forward by a monotonic one: a jump of the sidecar's own clock changes nothing. */
export const createClock = async (docker: Docker): Promise<Clock> => {
  let offsetMs = 0;
  const synchronise = async (): Promise<void> => {
    const before = performance.now();
    const engineTime = await readEngineTime(docker);
    offsetMs = engineTime - (before + performance.now()) / 2;
  };
  await synchronise();
  return { now: () => performance.now() + offsetMs, synchronise };
};
