import type { SandboxEngine } from "./engine.ts";
import { mongo } from "./mongo.ts";
import { postgres } from "./postgres.ts";
import { redis } from "./redis.ts";

export type Registry = readonly SandboxEngine[];

/** The only place that names the engines there are. */
export const registry: Registry = [postgres, redis, mongo];
