import type { Log, LogEvent, LogFields } from "../../src/contract/log-events.ts";

export interface Line {
  readonly event: LogEvent;
  readonly fields: LogFields;
}

/** Keeps what is logged. */
export const createTestLog = () => {
  const lines: Line[] = [];
  const log: Log = (event, fields = {}) => {
    lines.push({ event, fields });
  };
  return {
    log,
    lines,
    events: () => lines.map(({ event }) => event),
    of: (event: LogEvent) => lines.filter((line) => line.event === event).map(({ fields }) => fields),
  };
};
