import { z } from "zod";
import { agentIdPattern, deriveAgentId, toAgentId } from "./agent-id.ts";
import { agentLabelPrefixes, agentLabels, hasAgentLabel, isSandbox, type Labels, labels } from "./labels.ts";
import type { Refusal } from "./refusal.ts";
import { suggest } from "./suggest.ts";

type Hold = "pause" | "none";

/** What a container asks of us. `stranger`: nothing, or of another installation. */
export type OptIn =
  | { readonly kind: "stranger" }
  | { readonly kind: "invalid"; readonly agentId: string; readonly refusal: Refusal }
  | {
      readonly kind: "valid";
      readonly agentId: string;
      /** In the registry's order; empty for an agent that has only a role. */
      readonly engines: readonly string[];
      readonly role: string | undefined;
      readonly hold: Hold;
    };

export interface Vocabulary {
  readonly engines: readonly string[];
  readonly roles: readonly string[];
  readonly installation: string;
}

/** Reads the labels of one container. Never throws; every problem of it is named in one refusal. */
export const parseOptIn = (container: { name: string; labels: Labels }, vocabulary: Vocabulary): OptIn => {
  if (!hasAgentLabel(container.labels)) return { kind: "stranger" };
  if ((container.labels[labels.agentInstallation] || "default") !== vocabulary.installation)
    return { kind: "stranger" };

  const isOurs = (key: string): boolean =>
    agentLabelPrefixes.some((prefix) => key.startsWith(prefix)) ||
    (key === labels.sandbox && isSandbox(container.labels));
  const ours = Object.fromEntries(Object.entries(container.labels).filter(([key]) => isOurs(key)));
  const parsed = schemaFor(vocabulary).safeParse(ours);
  if (!parsed.success) {
    const stated = container.labels[labels.agentId];
    return {
      kind: "invalid",
      agentId: stated ? toAgentId(stated) : deriveAgentId(container),
      refusal: toRefusal(parsed.error),
    };
  }
  const value = parsed.data;
  const engines = value[labels.services] ?? [];
  const role = value[labels.agentRole];
  // An id or an installation alone asks for nothing.
  if (engines.length === 0 && role === undefined) return { kind: "stranger" };
  return {
    kind: "valid",
    agentId: value[labels.agentId] ?? deriveAgentId(container),
    engines,
    role,
    hold: value[labels.hold] ?? "pause",
  };
};

const schemaFor = ({ engines, roles }: Vocabulary) => {
  const oneOf = <const T extends string>(kind: string, valid: readonly T[]) =>
    z.string().transform((word, context): T => {
      const found = valid.find((candidate) => candidate === word);
      if (found !== undefined) return found;
      context.addIssue(`"${word}" is no known ${kind}${suggest(word, valid)}; known: ${valid.join(", ")}`);
      return z.NEVER;
    });
  const services = z.string().transform((text, context) => {
    const words = text.split(/[\s,]+/).filter((word) => word !== "");
    if (words.length === 0) context.addIssue(`names no engine; known: ${engines.join(", ")}`);
    for (const word of new Set(words)) {
      if (!engines.includes(word)) {
        context.addIssue(`"${word}" is no known engine${suggest(word, engines)}; known: ${engines.join(", ")}`);
      }
    }
    return engines.filter((engine) => words.includes(engine));
  });
  return z.strictObject({
    [labels.services]: services.optional(),
    [labels.hold]: oneOf("way to hold", ["pause", "none"]).optional(),
    [labels.agentId]: z
      .string()
      .regex(agentIdPattern, {
        error: (issue) =>
          `"${issue.input}" is no agent id: 1 to 40 of a-z, 0-9 and -, beginning and ending with a letter or digit`,
      })
      .optional(),
    [labels.agentRole]: oneOf("role", roles).optional(),
    [labels.agentInstallation]: z.string().optional(),
  });
};

const toRefusal = (error: z.ZodError): Refusal => {
  const problems = error.issues.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => ({ label: key, text: `is no known label${suggest(key, agentLabels)}` }))
      : [{ label: String(issue.path[0]), text: issue.message }],
  );
  return {
    error: "OPT_IN_INVALID",
    message: `The agent's labels are wrong: ${problems.map((p) => `${p.label}: ${p.text}`).join("; ")}.`,
    remediate: "Correct these labels and recreate the agent container: labels are fixed for a container's life.",
    missing: [...new Set(problems.map((p) => p.label))],
  };
};
