import { pino } from "pino";
import { type Log, logEvents } from "./contract/log-events.ts";

/** One JSON object a line on stdout: contract 8. Sync, so that the last line before an exit is not lost. */
export const createLog = ({ level, version }: { level: string; version: string }): Log => {
  const logger = pino(
    {
      level,
      base: { service: "roboco-sidecar", version },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: pino.stdSerializers.err },
    },
    pino.destination({ dest: 1, sync: true }),
  );
  return (event, fields = {}) => {
    const { level: at, msg } = logEvents[event];
    logger[at]({ ...fields, event }, msg);
  };
};
