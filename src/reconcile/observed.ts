import type { Phase } from "../contract/delivery.ts";
import type { OptIn } from "../contract/opt-in.ts";
import type { Refusal } from "../contract/refusal.ts";
import type { ContainerStatus, ContainerView } from "./ports.ts";

/** Everything that a decision about one agent rests on, as read just now. */
export interface Observed {
  /** Full id of the agent's container: the key of everything. */
  readonly key: string;
  /** `undefined`: the container is gone. */
  readonly agent: ContainerView | undefined;
  readonly optIn: OptIn;
  readonly agentId: string;
  /** Sandboxes that name this container as their owner. */
  readonly sandboxes: readonly SandboxView[];
  /** Other containers of the same agent id. */
  readonly peers: readonly Peer[];
  readonly phase: Phase | undefined;
  /** Provisioning of this agent's sandboxes in this process, by engine name. */
  readonly jobs: Readonly<Record<string, Job>>;
}

export interface SandboxView {
  readonly id: string;
  readonly name: string;
  readonly engine: string;
  readonly status: ContainerStatus;
  readonly createdAt: number;
  readonly networks: readonly string[];
}

export interface Peer {
  readonly id: string;
  readonly name: string;
  /** `gone`: only its sandboxes are left. */
  readonly status: ContainerStatus | "gone";
  readonly createdAt: number;
  /** Has sandboxes, or some being made. */
  readonly owns: boolean;
}

export type Job =
  | { readonly state: "running" }
  | { readonly state: "ready"; readonly containerId: string }
  | { readonly state: "failed"; readonly refusal: Refusal };

export const isAlive = (status: ContainerStatus | "gone"): boolean =>
  status === "running" || status === "paused" || status === "restarting";

export const isEnded = (status: ContainerStatus | "gone"): boolean => status === "exited" || status === "dead";
