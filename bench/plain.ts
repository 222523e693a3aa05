import { setTimeout as delay } from "node:timers/promises";
import type Docker from "dockerode";
import type { SandboxEngine } from "../src/engines/engine.ts";
import type { watchEvents } from "./events.ts";

const password = "00000000000000000000000000000000";

/**
 * The same work without us: agent and databases created and started in parallel with the same images and limits, a login
 * polled over the network. Resolves to ms from the agent's `create` event to the last login.
 */
export const makePlainly = async (
  databases: readonly { engine: SandboxEngine; image: string }[],
  {
    docker,
    events,
    network,
    agentImage,
  }: {
    docker: Docker;
    events: Awaited<ReturnType<typeof watchEvents>>;
    network: string;
    agentImage: string;
  },
): Promise<number> => {
  const made: Docker.Container[] = [];
  const make = async (options: Docker.ContainerCreateOptions): Promise<Docker.Container> => {
    const container = await docker.createContainer(options);
    made.push(container);
    await container.start();
    return container;
  };
  const agent = make({ Image: agentImage, Cmd: ["sleep", "infinity"], HostConfig: { NetworkMode: network } });
  const ready = databases.map(async ({ engine, image }) => {
    const container = await make({
      Image: image,
      ...(engine.command ? { Cmd: [...engine.command] } : {}),
      Env: Object.entries({ ...engine.environment, [engine.passwordVariable]: password }).map(([k, v]) => `${k}=${v}`),
      HostConfig: {
        NetworkMode: network,
        Memory: 512 * 1024 * 1024,
        MemorySwap: 512 * 1024 * 1024,
        NanoCpus: 1e9,
        ...(engine.dataPath ? { Tmpfs: { [engine.dataPath]: "" } } : {}),
      },
    });
    const { NetworkSettings } = await container.inspect();
    const host = NetworkSettings.Networks[network]?.IPAddress ?? "";
    while (
      !(await engine.login({ host, port: engine.port, password }, { timeoutMs: 2000 }).then(
        () => true,
        () => false,
      ))
    ) {
      await delay(25);
    }
    return performance.timeOrigin + performance.now();
  });
  const [{ id }, ...logins] = await Promise.all([agent, ...ready]);
  const created = await events.first("create", id);
  await Promise.all(made.map((container) => container.remove({ force: true, v: true })));
  return Math.max(...logins) - created;
};
