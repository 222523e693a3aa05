import type Docker from "dockerode";
import type { Reach } from "../reconcile/ports.ts";
import { answers, call } from "./call.ts";
import { inspectSelf, type Self } from "./self.ts";

/** On an endpoint that we made, so that a successor of a killed process knows it from one of the user's. */
const probeAlias = "roboco-sidecar-probe";

/**
 * A login must come from the network that the agent will use. On the host every bridge is reachable; in a container the
 * sidecar joins that network while a sandbox there becomes ready, and leaves it again: a network with an endpoint of
 * ours could not be removed by its owner.
 */
export const createReach = (docker: Docker, self: Self | undefined): Reach & { leaveStale(): Promise<void> } => {
  if (self === undefined || self.onHostNetwork) {
    return { hold: async () => ({ [Symbol.asyncDispose]: async () => {} }), leaveStale: async () => {} };
  }
  const members = new Map<string, { holders: number; joined: Promise<boolean> }>();
  // One connect or disconnect at a time: the Engine does them one by one anyway, and their order is what counts.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(step: () => Promise<T>): Promise<T> => {
    const next = last.then(step, step);
    last = next.catch(() => {});
    return next;
  };

  const leave = (network: string) =>
    call(`leave of network ${network}`, async () => {
      await docker.getNetwork(network).disconnect({ Container: self.id, Force: true });
    }).catch(answers({ 404: undefined, 403: undefined, 409: undefined }));

  const join = async (network: string): Promise<boolean> => {
    const networks = (await inspectSelf(docker, self.id))?.networks ?? [];
    if (networks.some(({ name }) => name === network)) return false;
    await call(`join of network ${network}`, async () => {
      await docker.getNetwork(network).connect({ Container: self.id, EndpointConfig: { Aliases: [probeAlias] } });
    });
    return true;
  };

  return {
    hold: async (network) => {
      const member = members.get(network) ?? { holders: 0, joined: inTurn(() => join(network)) };
      member.holders += 1;
      members.set(network, member);
      const release = async (): Promise<void> => {
        member.holders -= 1;
        if (member.holders > 0) return;
        members.delete(network);
        if (await member.joined.catch(() => false)) await inTurn(() => leave(network));
      };
      try {
        await member.joined;
      } catch (error) {
        await release();
        throw error;
      }
      return { [Symbol.asyncDispose]: release };
    },

    leaveStale: async () => {
      const stale = self.networks.filter(({ aliases }) => aliases.includes(probeAlias));
      for (const { name } of stale) await leave(name);
    },
  };
};
