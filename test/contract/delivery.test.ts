import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import {
  formatEnv,
  formatJson,
  formatPhase,
  type Phase,
  parsePasswords,
  parsePhase,
} from "../../src/contract/delivery.ts";
import { registry } from "../../src/engines/registry.ts";
import { toServices } from "../../src/reconcile/deliver.ts";

const passwords = { postgres: "0a".repeat(16), redis: "1b".repeat(16), mongo: "2c".repeat(16) };
const services = toServices(registry, "ada", passwords);

const expectedEnvironment = {
  ROBOCO_TEST_DB_HOST: "roboco-sandbox-pg-ada",
  ROBOCO_TEST_DB_PORT: "5432",
  ROBOCO_TEST_DB_USER: "sandbox",
  ROBOCO_TEST_DB_PASSWORD: passwords.postgres,
  ROBOCO_TEST_DB_ADMIN_DB: "sandbox",
  ROBOCO_TEST_REDIS_HOST: "roboco-sandbox-redis-ada",
  ROBOCO_TEST_REDIS_PORT: "6379",
  ROBOCO_TEST_REDIS_PASSWORD: passwords.redis,
  ROBOCO_TEST_MONGO_HOST: "roboco-sandbox-mongo-ada",
  ROBOCO_TEST_MONGO_PORT: "27017",
  ROBOCO_TEST_MONGO_USER: "sandbox",
  ROBOCO_TEST_MONGO_PASSWORD: passwords.mongo,
  ROBOCO_TEST_MONGO_AUTH_DB: "admin",
};

const directory = mkdtempSync(join(tmpdir(), "roboco-delivery-"));
afterAll(() => rmSync(directory, { recursive: true }));

describe("formatEnv", () => {
  it("sets exactly the contract's variables for a shell that reads it with `.`", () => {
    const path = join(directory, "sandbox.env");
    writeFileSync(path, formatEnv(services));
    const printed = execFileSync("/bin/sh", ["-e", "-u", "-c", 'set -a; . "$1"; exec env', "sh", path], {
      env: {},
      encoding: "utf8",
    });
    const set = Object.fromEntries(
      printed
        .split("\n")
        .filter((line) => line.startsWith("ROBOCO_"))
        .map((line) => line.split("=", 2)),
    );
    expect(set).toEqual(expectedEnvironment);
  });

  it("sets the same for a dotenv reader", () => {
    expect(parseEnv(formatEnv(services))).toEqual(expectedEnvironment);
  });

  it("has a line for each variable and no character that a reader could take for syntax", () => {
    const lines = formatEnv(services).trimEnd().split("\n");
    expect(lines).toHaveLength(Object.keys(expectedEnvironment).length);
    for (const line of lines) expect(line).toMatch(/^ROBOCO_TEST_[A-Z_]+=[A-Za-z0-9.-]+$/);
  });

  it("is not empty for an agent without a sandbox, for bin/enter waits until it is not, and sets nothing", () => {
    expect(formatEnv({}).trim()).not.toBe("");
    expect(parseEnv(formatEnv({}))).toEqual({});
  });
});

describe("formatJson", () => {
  it("has the contract's shape", () => {
    expect(JSON.parse(formatJson("ada", "ready", services))).toEqual({
      schema: 1,
      agent: "ada",
      state: "ready",
      services: {
        postgres: {
          host: "roboco-sandbox-pg-ada",
          port: 5432,
          user: "sandbox",
          password: passwords.postgres,
          database: "sandbox",
          env: expect.objectContaining({ ROBOCO_TEST_DB_PASSWORD: passwords.postgres }),
        },
        redis: {
          host: "roboco-sandbox-redis-ada",
          port: 6379,
          password: passwords.redis,
          env: expect.objectContaining({ ROBOCO_TEST_REDIS_PASSWORD: passwords.redis }),
        },
        mongo: {
          host: "roboco-sandbox-mongo-ada",
          port: 27017,
          user: "sandbox",
          password: passwords.mongo,
          database: "admin",
          env: expect.objectContaining({ ROBOCO_TEST_MONGO_AUTH_DB: "admin" }),
        },
      },
    });
  });

  it("carries no service and no secret once the sandboxes are gone", () => {
    expect(JSON.parse(formatJson("ada", "gone", {}))).toEqual({ schema: 1, agent: "ada", state: "gone", services: {} });
  });
});

describe("parsePasswords", () => {
  it("reads back what was delivered", () => {
    expect(parsePasswords(formatJson("ada", "ready", services))).toEqual(passwords);
  });

  it("reads nothing from voided files", () => {
    expect(parsePasswords(formatJson("ada", "gone", {}))).toEqual({});
  });

  it("never throws, whatever an agent's file holds", () => {
    const anything = fc.oneof(
      fc.string(),
      fc.json(),
      fc.anything().map((value) => JSON.stringify(value) ?? ""),
      fc.constant(undefined),
    );
    fc.assert(
      fc.property(anything, (text) => {
        for (const password of Object.values(parsePasswords(text))) expect(password).toBeTypeOf("string");
      }),
    );
    expect(parsePasswords('{"services":{"redis":{"password":7}}}')).toEqual({});
    expect(parsePasswords("null")).toEqual({});
  });
});

describe("parsePhase", () => {
  const phases = fc.constantFrom<Phase>("armed", "delivered", "released", "refused");
  const ids = fc.stringMatching(/^[0-9a-f]{64}$/);

  it("reads back the phase of the same container", () => {
    fc.assert(
      fc.property(phases, ids, (phase, id) => {
        expect(parsePhase(formatPhase(phase, id), id)).toBe(phase);
      }),
    );
  });

  it("knows nothing of a phase that a predecessor left in a shared volume", () => {
    fc.assert(
      fc.property(phases, ids, ids, (phase, id, other) => {
        fc.pre(id !== other);
        expect(parsePhase(formatPhase(phase, id), other)).toBeUndefined();
      }),
    );
  });

  it.each([undefined, "", "armed", "held abc", "toString abc", "released"])("reads %j as no phase", (text) => {
    expect(parsePhase(text, "abc")).toBeUndefined();
  });

  it("never throws, whatever an agent's file holds", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(parsePhase(text, "abc")).toBeUndefined();
      }),
    );
  });
});
