type Level = "debug" | "info" | "warn" | "error" | "fatal";

/** The closed list of log events: `docs/logs.md` holds the same table, and a test holds the two together. */
export const logEvents = {
  "sidecar.started": { level: "info", msg: "sidecar started" },
  "sidecar.ready": { level: "info", msg: "every agent already created is provisioned, refused or waiting" },
  "sidecar.stopping": { level: "info", msg: "sidecar is stopping" },
  "sidecar.stopped": { level: "info", msg: "sidecar stopped" },
  "sidecar.failed": { level: "fatal", msg: "sidecar cannot run" },
  "engine.connected": { level: "info", msg: "connected to the Docker Engine" },
  "engine.disconnected": { level: "warn", msg: "lost the Docker Engine's event stream" },
  "engine.garbled": { level: "warn", msg: "skipped a line of the event stream that is no event" },
  "resync.completed": { level: "debug", msg: "listed all agents and sandboxes" },
  "drift.found": { level: "warn", msg: "a resync found a change that no event told of" },
  "agent.seen": { level: "info", msg: "an agent opted in" },
  "agent.waiting": { level: "info", msg: "agent waits for a predecessor of the same id to go" },
  "agent.held": { level: "info", msg: "agent is paused until its sandboxes are ready" },
  "agent.released": { level: "info", msg: "agent has its sandboxes and may run" },
  "agent.refused": { level: "error", msg: "agent does not run: it cannot have what it asked for" },
  "agent.killed": { level: "warn", msg: "a refused agent was running and was killed" },
  "agent.gone": { level: "info", msg: "agent ended and is not coming back" },
  "sandbox.provisioning": { level: "info", msg: "sandbox is being made" },
  "sandbox.ready": { level: "info", msg: "sandbox answers an authenticated command" },
  "sandbox.failed": { level: "warn", msg: "sandbox could not be made" },
  "sandbox.lost": { level: "error", msg: "a sandbox died under a living agent and is made again" },
  "sandbox.removed": { level: "info", msg: "sandbox removed" },
  "image.pulling": { level: "info", msg: "image is absent and is being pulled" },
  "image.pulled": { level: "info", msg: "image pulled" },
  "janitor.swept": { level: "info", msg: "removed sandboxes without a living owner" },
  "manifest.published": { level: "info", msg: "role manifests published" },
  "reconcile.retried": { level: "warn", msg: "a step failed and is tried again" },
  "watch.changed": { level: "info", msg: "sandboxes are disabled: this would have been done" },
} as const satisfies Record<string, { level: Level; msg: string }>;

export type LogEvent = keyof typeof logEvents;

/** Fields of one line, under names of the contract's section 8. */
export interface LogFields {
  agent?: string;
  container?: string;
  engine?: string;
  durationMs?: number;
  err?: unknown;
  [key: string]: unknown;
}

/** The only way to write a log line: no free text, no unlisted event. */
export type Log = (event: LogEvent, fields?: LogFields) => void;
