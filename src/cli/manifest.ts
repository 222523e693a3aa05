import { suggest } from "../contract/suggest.ts";
import { UsageError } from "../errors.ts";
import { formatManifest, toManifest } from "../gateway/manifest.ts";
import { loadRoles } from "../gateway/roles.ts";

/** The manifest of a role as an agent finds it at /roboco/manifests/{role}.json. */
export const printManifest = async (role: string, rolesFile: string | undefined): Promise<string> => {
  const roles = await loadRoles(rolesFile);
  const known = Object.keys(roles);
  if (!known.includes(role)) {
    throw new UsageError(`There is no role "${role}"${suggest(role, known)}.`, `Known roles: ${known.join(", ")}.`);
  }
  return formatManifest(toManifest(role, roles));
};
