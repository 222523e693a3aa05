import { randomBytes } from "node:crypto";
import { labels } from "../contract/labels.ts";
import type { Log } from "../contract/log-events.ts";
import { passwordBytes, toSandboxName } from "../contract/names.ts";
import type { Refusal } from "../contract/refusal.ts";
import type { SandboxEngine } from "../engines/engine.ts";
import { EngineFaultError, EngineRejectedError, isCancelled } from "../errors.ts";
import { awaitReady } from "./await-ready.ts";
import { inspectOwner } from "./observe.ts";
import { isAlive, isEnded } from "./observed.ts";
import type { ContainerView, DockerPort, Reach } from "./ports.ts";
import { RefusedError } from "./refused-error.ts";
import { explainExit, explainSilence, refuseSandbox } from "./sandbox-failure.ts";
import { toSpecification } from "./sandbox-specification.ts";

export interface ProvisionRequest {
  readonly engine: SandboxEngine;
  readonly agentId: string;
  readonly ownerContainer: string;
  readonly network: string;
  /** Of an earlier delivery: a sandbox made again keeps its credentials. */
  readonly password: string | undefined;
}

export interface ProvisionOptions {
  readonly docker: DockerPort;
  readonly reach: Reach;
  readonly log: Log;
  readonly installation: string;
  readonly images: Readonly<Record<string, string>>;
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly ensureImage: (reference: string, signal: AbortSignal) => Promise<readonly string[]>;
}

export type Provisioned =
  | { readonly kind: "ready"; readonly containerId: string; readonly password: string }
  | { readonly kind: "failed"; readonly refusal: Refusal };

/** Names held by a sandbox that is just going are free within a moment. */
const maxNameAttempts = 5;

/**
 * Makes one sandbox, or takes over what a process before this one left of it, until it answers a login.
 * Failures that will not mend are values; an Engine that is away rejects, and so does a cancellation.
 */
export const provision = async (
  request: ProvisionRequest,
  options: ProvisionOptions,
  signal: AbortSignal,
): Promise<Provisioned> => {
  try {
    return await makeOne(request, options, signal);
  } catch (error) {
    if (isCancelled(signal)) throw error;
    if (error instanceof RefusedError) return { kind: "failed", refusal: error.refusal };
    if (error instanceof EngineRejectedError || error instanceof EngineFaultError) {
      const refusal = refuseSandbox(
        request.engine,
        "SANDBOX_REJECTED",
        `The Engine refused it: ${error.message}.`,
        error.remediate,
      );
      return { kind: "failed", refusal };
    }
    throw error;
  }
};

const makeOne = async (
  request: ProvisionRequest,
  options: ProvisionOptions,
  signal: AbortSignal,
): Promise<Provisioned> => {
  const { engine, agentId } = request;
  const { docker } = options;
  const name = toSandboxName(engine.shortName, agentId);
  // Joining a network and starting a container do not wait for each other.
  const reaching = options.reach.hold(request.network);
  reaching.catch(() => {}); // awaited below
  try {
    const { id, password } = await createOrAdopt(name, request, options, signal);
    signal.throwIfAborted();

    await docker.startContainer(id);
    const view = await docker.inspectContainer(id);
    if (!view || !isAlive(view.status)) throw new RefusedError(await explainExit(engine, docker, { id, password }));
    const host = view.networks[request.network] || Object.values(view.networks).find((address) => address !== "");
    if (!host) {
      const message = `It got no address on the network ${request.network}.`;
      throw new RefusedError(refuseSandbox(engine, "SANDBOX_REJECTED", message, networkRemedy));
    }
    await reaching;
    const readiness = await awaitReady(
      engine,
      { host, port: engine.port, password },
      {
        isRunning: async () => isAlive((await docker.inspectContainer(id))?.status ?? "gone"),
        signal,
      },
    );
    if (readiness.kind === "exited") throw new RefusedError(await explainExit(engine, docker, { id, password }));
    if (readiness.kind === "timeout") {
      const address = `${host}:${engine.port}`;
      throw new RefusedError(
        await explainSilence(engine, docker, { id, password, address, lastError: readiness.lastError }),
      );
    }
    return { kind: "ready", containerId: id, password };
  } finally {
    await reaching.then((handle) => handle[Symbol.asyncDispose]()).catch(() => {});
  }
};

const createOrAdopt = async (
  name: string,
  request: ProvisionRequest,
  options: ProvisionOptions,
  signal: AbortSignal,
): Promise<{ id: string; password: string }> => {
  const { docker } = options;
  const { engine } = request;
  let password = request.password ?? randomBytes(passwordBytes).toString("hex");
  for (let attempt = 1; ; attempt += 1) {
    const image = options.images[engine.name] ?? engine.image;
    const volumes = await options.ensureImage(image, signal);
    signal.throwIfAborted();
    const created = await docker.createContainer(toSpecification(name, request, options, { image, volumes, password }));
    if (created !== "conflict" && created !== "no-image") return { id: created, password };
    if (created === "conflict") {
      const holder = await docker.inspectContainer(name);
      if (holder) {
        const verdict = await judgeHolder(holder, request, options);
        const known = holder.environment[engine.passwordVariable];
        if (verdict === "adopt" && known) {
          if (holder.status === "paused") await docker.unpauseContainer(holder.id); // it could not be started
          return { id: holder.id, password: known };
        }
        if (verdict === "replace" && known) password = known;
        await docker.removeContainer(holder.id);
      }
    }
    if (attempt >= maxNameAttempts) {
      throw new RefusedError(
        refuseSandbox(
          engine,
          created === "conflict" ? "NAME_TAKEN" : "IMAGE_UNAVAILABLE",
          created === "conflict"
            ? `Its name ${name} stays taken though its holder was removed.`
            : `The image ${image} vanishes as soon as it is there.`,
          "See what else works on this Engine, then recreate the agent.",
        ),
      );
    }
  }
};

/** A sandbox of ours that nobody living owns is stale. Whatever else holds the name is not ours to touch. */
const judgeHolder = async (
  holder: ContainerView,
  request: ProvisionRequest,
  { docker, installation }: ProvisionOptions,
): Promise<"adopt" | "replace" | "stale"> => {
  const owner = holder.labels[labels.ownerContainer];
  const isOurs =
    holder.labels[labels.sandbox] === "1" && holder.labels[labels.installation] === installation && owner !== undefined;
  if (isOurs && owner === request.ownerContainer) {
    return isEnded(holder.status) || holder.status === "removing" ? "replace" : "adopt";
  }
  if (isOurs) {
    const ownerView = await inspectOwner(docker, owner);
    if (!ownerView || isEnded(ownerView.status)) return "stale";
  }
  throw new RefusedError(
    refuseSandbox(
      request.engine,
      "NAME_TAKEN",
      `The name ${holder.name} is taken by the container ${holder.id.slice(0, 12)}, which is not this agent's sandbox.`,
      `Remove or rename that container, or give the agent another id (label ${labels.agentId}).`,
    ),
  );
};

const networkRemedy = "Look at that network (docker network inspect) and recreate the agent.";
