import {
  files,
  formatEnv,
  formatJson,
  formatPhase,
  type Phase,
  parsePasswords,
  type Services,
} from "../contract/delivery.ts";
import { toSandboxName } from "../contract/names.ts";
import { formatRefusal, type Refusal } from "../contract/refusal.ts";
import type { Registry } from "../engines/registry.ts";
import { EngineFaultError, EngineRejectedError } from "../errors.ts";
import { type Delivered, toLife } from "./observe.ts";
import type { ContainerView, DockerPort } from "./ports.ts";
import { checkRunDirectory, runDirectoryTarget } from "./requirements.ts";

/** Writes an agent's run directory, and remembers what is there. The phase goes with each write: a write-ahead intent. */
export const createDelivery = (docker: DockerPort, registry: Registry, deliveries: Map<string, Delivered>) => {
  const write = async (agent: ContainerView, phase: Phase, contents: Record<string, string>): Promise<void> => {
    // The environment last, and first when it is taken away: bin/enter reads the phase, then goes on if it is there.
    const { [files.env]: environment, ...rest } = contents;
    const all: Record<string, string> = {
      ...(environment === "" ? { [files.env]: "" } : {}),
      ...rest,
      [files.phase]: formatPhase(phase, agent.id, agent.networkMode),
      ...(environment ? { [files.env]: environment } : {}),
    };
    // Nothing can be written there, which is why this agent is refused: memory has to do.
    if (checkRunDirectory(agent).length > 0) {
      remember(agent, all);
      return;
    }
    const target = runDirectoryTarget(agent);
    if ((await docker.writeFiles(agent.id, target, all)) === "gone") return;
    remember(agent, all);
  };

  const remember = (agent: ContainerView, written: Record<string, string>): void => {
    const merged = { ...deliveries.get(agent.id)?.files, ...written };
    deliveries.set(agent.id, { life: toLife(agent), files: merged, passwords: parsePasswords(merged[files.json]) });
  };

  const voided = (agent: ContainerView, agentId: string): Record<string, string> =>
    deliveries.get(agent.id)?.files[files.env] || deliveries.get(agent.id)?.files[files.json]
      ? { [files.env]: "", [files.json]: formatJson(agentId, "gone", {}) }
      : {};

  return {
    arm: (agent: ContainerView, agentId: string) => write(agent, "armed", voided(agent, agentId)),

    refuse: async (agent: ContainerView, agentId: string, refusal: Refusal): Promise<void> => {
      try {
        await write(agent, "refused", { ...voided(agent, agentId), [files.refused]: formatRefusal(refusal) });
      } catch (error) {
        if (!(error instanceof EngineRejectedError || error instanceof EngineFaultError)) throw error;
        // Told in the log all the same; what must not wait for it is the end of the agent.
        remember(agent, { [files.phase]: formatPhase("refused", agent.id, agent.networkMode) });
      }
    },

    deliver: (
      agent: ContainerView,
      agentId: string,
      phase: "delivered" | "released",
      passwords: Readonly<Record<string, string>>,
    ) => {
      const services = toServices(registry, agentId, passwords);
      const hadRefusal = Boolean(deliveries.get(agent.id)?.files[files.refused]);
      return write(agent, phase, {
        ...(hadRefusal ? { [files.refused]: "" } : {}),
        [files.json]: formatJson(agentId, "ready", services),
        [files.env]: formatEnv(services),
      });
    },

    forget: (key: string): void => {
      deliveries.delete(key);
    },

    mark: (agent: ContainerView, phase: Phase) => write(agent, phase, {}),
  };
};
export type Delivery = ReturnType<typeof createDelivery>;

export const toServices = (
  registry: Registry,
  agentId: string,
  passwords: Readonly<Record<string, string>>,
): Services =>
  Object.fromEntries(
    registry.flatMap((engine) => {
      const password = passwords[engine.name];
      if (password === undefined) return [];
      const endpoint = { host: toSandboxName(engine.shortName, agentId), port: engine.port, password };
      const service = {
        host: endpoint.host,
        port: endpoint.port,
        ...(engine.user === undefined ? {} : { user: engine.user }),
        password,
        ...(engine.database === undefined ? {} : { database: engine.database }),
        env: engine.agentVariables(endpoint),
      };
      return [[engine.name, service]];
    }),
  );
