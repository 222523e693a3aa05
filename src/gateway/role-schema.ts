import { z } from "zod";
import { suggest } from "../contract/suggest.ts";
import { type Server, type Tool, toolsByServer } from "./verbs.ts";

const rolePattern = /^[a-z][a-z0-9_]{0,31}$/;

const describeUnknown = (server: Server, word: unknown): string => {
  const known = toolsByServer[server];
  if (typeof word !== "string") return `expected the name of a ${server} tool, found ${JSON.stringify(word)}`;
  return `unknown ${server} tool "${word}"${suggest(word, known) || `, known are: ${known.join(", ")}`}`;
};

const findRepeated = (tools: readonly unknown[]): unknown[] => [
  ...new Set(tools.filter((tool, index) => tools.indexOf(tool) !== index)),
];

const toolList = <S extends Server>(server: S) =>
  z
    .array(
      z.enum(toolsByServer[server] as readonly Tool<S>[], { error: ({ input }) => describeUnknown(server, input) }),
    )
    .refine((tools) => findRepeated(tools).length === 0, {
      // Looked for also in a list with other faults: all problems are told at once.
      when: ({ value }) => Array.isArray(value),
      error: ({ input }) => `named more than once: ${findRepeated(input as unknown[]).join(", ")}`,
    })
    .readonly();

const roleSchema = z
  .strictObject({
    description: z.string().trim().min(1, "must not be empty"),
    flow: toolList("flow"),
    do: toolList("do"),
    git: toolList("git"),
    kb: toolList("kb"),
    /** `write`: whether the role may change files of its workspace at all. */
    files: z.strictObject({ write: z.boolean() }).readonly(),
  })
  .readonly();

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const findBadNames = (roles: object): string[] => Object.keys(roles).filter((name) => !rolePattern.test(name));

/**
 * Role name to what the role may use; every field is required, so that a file reads as what it grants.
 * Role names match `^[a-z][a-z0-9_]{0,31}$`; tool names are those of `verbs.ts`, each once; unknown keys are errors.
 */
export const roleConfigurationSchema = z
  .record(z.string(), roleSchema)
  .refine((roles) => findBadNames(roles).length === 0, {
    when: ({ value }) => isMapping(value),
    error: ({ input }) =>
      `role names must match ${rolePattern.source}: ${findBadNames(input as object)
        .map((name) => JSON.stringify(name))
        .join(", ")}`,
  })
  .refine((roles) => Object.keys(roles).length > 0, {
    when: ({ value }) => isMapping(value),
    error: "names no role",
  })
  .readonly();

export type RoleConfiguration = z.infer<typeof roleConfigurationSchema>;
