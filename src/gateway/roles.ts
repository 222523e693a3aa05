import { readFile } from "node:fs/promises";
import { parseDocument } from "yaml";
import type { z } from "zod";
import { suggest } from "../contract/suggest.ts";
import { SidecarError, toError } from "../errors.ts";
import { builtInRoles } from "./built-in-roles.ts";
import { type RoleConfiguration, roleConfigurationSchema } from "./role-schema.ts";

const keys = ["description", "flow", "do", "git", "kb", "files", "write"];

/** The roles file cannot be read or grants nothing sensible. `problems`: all of them, each led by its path. */
export class RolesFileError extends SidecarError {
  override readonly code = "ROLES_FILE_INVALID";
  readonly problems: readonly string[];
  constructor(file: string, problems: readonly string[], options?: ErrorOptions) {
    super(
      [`The roles file ${file} is wrong:`, ...problems].join("\n  "),
      "Correct the file that ROBOCO_ROLES_FILE names, or unset the variable to use the built-in roles.",
      options,
    );
    this.problems = problems;
  }
}

const formatPath = (path: readonly PropertyKey[]): string =>
  path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("")
    .replace(/^\./, "");

const toProblems = (issue: z.core.$ZodIssue): string[] => {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `${formatPath([...issue.path, key])}: unknown key${suggest(key, keys)}`);
  }
  const path = formatPath(issue.path);
  return [path ? `${path}: ${issue.message}` : issue.message];
};

const parse = (text: string): { value: unknown } | { problems: string[] } => {
  const document = parseDocument(text);
  // The rest of yaml's message is a drawing of the line.
  const problems = document.errors.map(({ message }) => message.split("\n", 1)[0]?.replace(/:$/, "") ?? message);
  if (problems.length > 0) return { problems };
  try {
    return { value: document.toJS() };
  } catch (error) {
    return { problems: [toError(error).message] };
  }
};

/**
 * The roles to serve: those of `file` (YAML or JSON, the shape of `roleConfigurationSchema`), which replace the
 * built-in ones as a whole; the built-in ones without a file.
 * @throws {RolesFileError} unreadable, no YAML or JSON, or not of that shape
 */
export const loadRoles = async (file: string | undefined): Promise<RoleConfiguration> => {
  if (file === undefined) return builtInRoles;
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new RolesFileError(file, [`cannot be read: ${toError(error).message}`], { cause: error });
  });
  const parsed = parse(text);
  if ("problems" in parsed) throw new RolesFileError(file, parsed.problems);
  const result = roleConfigurationSchema.safeParse(parsed.value);
  if (!result.success) throw new RolesFileError(file, result.error.issues.flatMap(toProblems));
  return result.data;
};
