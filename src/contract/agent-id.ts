import { createHash } from "node:crypto";
import type { Labels } from "./labels.ts";

/** At most 40 characters, so that `roboco-sandbox-redis-{id}` stays a valid DNS label (63). */
export const agentIdPattern = /^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/;

const maxLength = 40;
const hashLength = 8;

/**
 * The agent id of a container that does not name one: compose's `project-service-number`, else the container's name
 * less a leading `roboco-agent-`. A one-off (`docker compose run`) goes by its name: its number is its service's.
 */
export const deriveAgentId = (container: { name: string; labels: Labels }): string => {
  const compose = (key: string): string | undefined => container.labels[`com.docker.compose.${key}`];
  const [project, service, number] = [compose("project"), compose("service"), compose("container-number")];
  const isOneOff = compose("oneoff")?.toLowerCase() === "true";
  const whole =
    project && service && number && !isOneOff
      ? `${project}-${service}-${number}`
      : container.name.replace(/^\//, "").replace(/^roboco-agent-/, "");
  return toAgentId(whole);
};

/** Lower-case, every other character to `-`; what is too long or left empty is closed with a short hash of the whole. */
export const toAgentId = (whole: string): string => {
  const clean = whole
    .toLowerCase()
    .replace(/[^a-z0-9-]/g, "-")
    .replace(/^-+|-+$/g, "");
  if (agentIdPattern.test(clean)) return clean;
  const hash = createHash("sha256").update(whole).digest("hex").slice(0, hashLength);
  const head = clean.slice(0, maxLength - hashLength - 1).replace(/-+$/, "");
  return head ? `${head}-${hash}` : hash;
};
