/** Every label name of the product, in one place. */
export const labels = {
  services: "roboco.sandbox.services",
  hold: "roboco.sandbox.hold",
  agentId: "roboco.agent.id",
  agentRole: "roboco.agent.role",
  agentInstallation: "roboco.agent.installation",

  sandbox: "roboco.sandbox",
  owner: "roboco.sandbox.owner",
  ownerContainer: "roboco.sandbox.owner.container",
  engine: "roboco.sandbox.engine",
  installation: "roboco.sandbox.installation",
} as const;

/** What a user may put on an agent container. Anything else under the two prefixes is a mistake worth a refusal. */
export const agentLabels = [
  labels.services,
  labels.hold,
  labels.agentId,
  labels.agentRole,
  labels.agentInstallation,
] as const;

export const agentLabelPrefixes = ["roboco.sandbox.", "roboco.agent."] as const;

/** On the sidecar's own image, so that two of one installation find each other. */
export const sidecarLabel = "roboco.sidecar";

export type Labels = Readonly<Record<string, string>>;

export const isSandbox = (containerLabels: Labels): boolean => containerLabels[labels.sandbox] === "1";

/** One that asks for something is an agent whatever it claims beside that: a claim too much is a mistake worth a refusal. */
export const hasAgentLabel = (containerLabels: Labels): boolean =>
  isSandbox(containerLabels)
    ? labels.services in containerLabels || labels.agentRole in containerLabels
    : Object.keys(containerLabels).some((key) => agentLabelPrefixes.some((prefix) => key.startsWith(prefix)));
