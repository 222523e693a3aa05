import { run } from "./run.ts";

/** A bridge and a /16 that no other engine on this machine uses. */
export interface EngineNetwork {
  bridge: string;
  pool: string;
}

const poolOf = (octet: number) => `10.${octet}.0.0/16`;
const inRoot = (root: string, ...command: string[]) => run("chroot", [root, ...command]);

/**
 * Engines in one network namespace would overwrite each other's firewall chains, so dockerd is told to leave iptables
 * alone and these rules stand in: networks cannot reach each other, the outside is reached by the host's address.
 */
const rules = (pool: string): string[][] => [
  ["nat", "POSTROUTING", "-s", pool, "!", "-d", pool, "-j", "MASQUERADE"],
  ["filter", "FORWARD", "-s", pool, "!", "-d", pool, "-j", "ACCEPT"],
  ["filter", "FORWARD", "-d", pool, "!", "-s", pool, "-j", "ACCEPT"],
  // Where bridged packets pass the firewall too, only the routed ones are to be dropped.
  ["filter", "FORWARD", "-s", pool, "-d", pool, "-m", "physdev", "!", "--physdev-is-bridged", "-j", "DROP"],
];

export async function claimNetwork(root: string): Promise<EngineNetwork> {
  const taken = (await inRoot(root, "ip", "-4", "route", "show", "table", "all")).stdout;
  const first = Math.floor(Math.random() * 100);
  for (let i = 0; i < 100; i++) {
    const octet = 100 + ((first + i) % 100);
    if (taken.includes(` 10.${octet}.`) || taken.includes(`\n10.${octet}.`)) continue;
    const network = { bridge: `roboco${octet}`, pool: poolOf(octet) };
    // Adding the link is the claim: of two engines that choose one number, one fails here.
    const claim = await run("chroot", [root, "ip", "link", "add", network.bridge, "type", "bridge"], { anyCode: true });
    if (claim.code !== 0) {
      if (claim.stderr.includes("File exists")) continue;
      throw new Error(`cannot add a bridge: ${claim.stderr}`);
    }
    await inRoot(root, "ip", "address", "add", `10.${octet}.255.1/24`, "dev", network.bridge);
    await inRoot(root, "ip", "link", "set", network.bridge, "up");
    const iptables = await workingIptables(root);
    for (const [table = "", ...rule] of rules(network.pool)) {
      await run("chroot", [root, iptables, "-w", "-t", table, "-I", ...rule], { anyCode: true });
    }
    return network;
  }
  throw new Error("no free network between 10.100.0.0/16 and 10.199.0.0/16");
}

/** Removes the bridge, the bridges dockerd made in the pool, and the rules. */
export async function releaseNetwork(root: string, { bridge, pool }: EngineNetwork): Promise<void> {
  const iptables = await workingIptables(root);
  for (const [table = "", ...rule] of rules(pool)) {
    await run("chroot", [root, iptables, "-w", "-t", table, "-D", ...rule], { anyCode: true });
  }
  const addresses = (await inRoot(root, "ip", "-4", "-oneline", "address", "show")).stdout;
  const mine = new RegExp(`^\\d+: (\\S+) +inet ${pool.slice(0, -"0.0/16".length).replaceAll(".", "\\.")}`, "gm");
  const links = new Set([bridge, ...[...addresses.matchAll(mine)].map(([, link = ""]) => link)]);
  for (const link of links) await run("chroot", [root, "ip", "link", "delete", link], { anyCode: true });
}

const workingIptables = async (root: string): Promise<string> =>
  (await run("chroot", [root, "iptables", "-w", "-t", "nat", "-S"], { anyCode: true })).code === 0
    ? "iptables"
    : "iptables-legacy";
