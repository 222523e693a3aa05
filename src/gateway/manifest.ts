import { createHash } from "node:crypto";
import { suggest } from "../contract/suggest.ts";
import type { RoleConfiguration } from "./role-schema.ts";
import type { Server, Tool } from "./verbs.ts";

/**
 * What one role may call, and nothing else. A convenience for the agent's client, not the boundary: a server must
 * check the role of its caller all the same.
 */
export interface Manifest {
  readonly schema: 1;
  readonly role: string;
  readonly description: string;
  /** Tools in the order that the role configuration declares them. */
  readonly servers: { readonly [S in Server]: { readonly tools: readonly Tool<S>[] } };
  readonly files: { readonly write: boolean };
  /** SHA-256 in hex of the rest as canonical JSON; `jq -cjS 'del(.hash)' | sha256sum` gives the same. */
  readonly hash: string;
}

/** JSON without white space, the keys of every object sorted: one text however the object was put together. */
const toCanonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

/**
 * The manifest of `role`, from the role configuration only.
 * @throws {RangeError} no such role; names the nearest one
 */
export const toManifest = (role: string, config: RoleConfiguration): Manifest => {
  // hasOwn: `constructor` is a legal role name and a property of every object.
  const definition = Object.hasOwn(config, role) ? config[role] : undefined;
  if (!definition) {
    const known = Object.keys(config);
    throw new RangeError(`Unknown role "${role}"${suggest(role, known)}. Roles: ${known.join(", ")}.`);
  }
  const { description, files } = definition;
  const servers = {
    flow: { tools: definition.flow },
    do: { tools: definition.do },
    git: { tools: definition.git },
    kb: { tools: definition.kb },
  };
  const content = { schema: 1, role, description, servers, files: { write: files.write } } as const;
  return { ...content, hash: createHash("sha256").update(toCanonicalJson(content)).digest("hex") };
};

/** As it is published, printed and hashed: pretty-printed, with a line break at the end. */
export const formatManifest = (manifest: Manifest): string => `${JSON.stringify(manifest, null, 2)}\n`;
