import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { type Log, type LogEvent, logEvents } from "../contract/log-events.ts";

export interface Metrics {
  readonly registry: Registry;
  /** Counts every log event on its way: what is worth a line is worth a number. */
  readonly counting: (log: Log) => Log;
  readonly engineEvents: Counter<"action">;
  readonly reconciles: Counter<"status">;
}

export const createMetrics = (read: {
  isConnected: () => boolean;
  isReady: () => boolean;
  agents: () => number;
}): Metrics => {
  const registry = new Registry();
  // A coarse event-loop monitor: the default one wakes an idle process a hundred times a second.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 1000 });
  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value());
      },
    });
  };
  gauge("roboco_engine_connected", "1 while the Engine's event stream is open", () => Number(read.isConnected()));
  gauge("roboco_ready", "1 once every agent found at start-up is settled", () => Number(read.isReady()));
  gauge("roboco_agents", "Opted-in agents known", read.agents);

  const logged = new Counter({
    name: "roboco_log_events_total",
    help: "Log events by name, whatever the log level",
    labelNames: ["event"] as const,
    registers: [registry],
  });
  for (const event of Object.keys(logEvents)) logged.inc({ event }, 0);
  const readySeconds = new Histogram({
    name: "roboco_sandbox_ready_seconds",
    help: "From the decision to make a sandbox to its first authenticated answer",
    labelNames: ["engine"] as const,
    buckets: [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300],
    registers: [registry],
  });

  return {
    registry,
    counting: (log) => (event: LogEvent, fields) => {
      logged.inc({ event });
      if (event === "sandbox.ready" && fields?.engine && fields.durationMs !== undefined) {
        readySeconds.observe({ engine: fields.engine }, fields.durationMs / 1000);
      }
      log(event, fields);
    },
    engineEvents: new Counter({
      name: "roboco_engine_events_total",
      help: "Events received from the Engine",
      labelNames: ["action"] as const,
      registers: [registry],
    }),
    reconciles: new Counter({
      name: "roboco_reconcile_total",
      help: "Looks at an agent, by the state it was found in",
      labelNames: ["status"] as const,
      registers: [registry],
    }),
  };
};
