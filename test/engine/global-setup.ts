import type { TestProject } from "vitest/node";
import type { Images } from "./images.ts";
import { resolveEngine } from "./resolve-engine.ts";

export interface ProvidedEngine {
  dockerHost: string;
  socketPath: string;
  /** The Engine's own words: its version, and the newest API it speaks. */
  version: string;
  apiVersion: string;
  /** The Debian suite of a private engine, else "user". */
  suite: string;
  owned: boolean;
  images: Images;
}

declare module "vitest" {
  interface ProvidedContext {
    engine: ProvidedEngine;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { engine, images } = await resolveEngine();
  const { dockerHost, socketPath, version, apiVersion, owned } = engine;
  const suite = "suite" in engine ? String(engine.suite) : "user";
  console.error(`engine: Docker ${version} (API ${apiVersion}), ${owned ? `private, Debian ${suite}` : dockerHost}`);
  if (images.mongoSkipReason) console.error(`engine: tests with Mongo are skipped: ${images.mongoSkipReason}`);
  project.provide("engine", { dockerHost, socketPath, version, apiVersion, suite, owned, images });
  return () => engine.stop();
}
