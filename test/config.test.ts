import { availableParallelism } from "node:os";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Config, loadConfig } from "../src/config.ts";
import { registry } from "../src/engines/registry.ts";
import { ConfigError } from "../src/errors.ts";

const load = (environment: Record<string, string | undefined>): Config => loadConfig(registry, environment);

const problemsOf = (environment: Record<string, string>): string[] => {
  try {
    load(environment);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
  return [];
};

const MiB = 1024 * 1024;

describe("loadConfig", () => {
  it("has the contract's defaults", () => {
    expect(load({})).toEqual({
      enabled: false,
      engineAddress: { kind: "unix", socketPath: expect.stringMatching(/docker\.sock$/) },
      installation: "default",
      network: undefined,
      images: { postgres: "postgres:16-alpine", redis: "redis:8-alpine", mongo: "mongo:8" },
      memoryBytes: 512 * MiB,
      cpus: 1,
      maxSandboxes: 100,
      concurrency: 2 * availableParallelism(),
      pullTimeoutMs: 300_000,
      janitorIntervalMs: 30_000,
      janitorGraceMs: 180_000,
      teardownGraceMs: 2000,
      sharedDir: "/roboco",
      rolesFile: undefined,
      listen: { host: "127.0.0.1", port: 7070 },
      logLevel: "info",
    });
  });

  it("takes every variable of the contract", () => {
    expect(
      load({
        ROBOCO_SANDBOX_DB_ENABLED: "true",
        DOCKER_HOST: "unix:///run/user/1000/docker.sock",
        ROBOCO_INSTALLATION: "ci-2",
        ROBOCO_SANDBOX_NETWORK: "agents_net",
        ROBOCO_SANDBOX_POSTGRES_IMAGE: "registry.example:5000/pg@sha256:0",
        ROBOCO_SANDBOX_REDIS_IMAGE: "valkey/valkey:8",
        ROBOCO_SANDBOX_MONGO_IMAGE: "mongo:7",
        ROBOCO_SANDBOX_MEMORY: "1g",
        ROBOCO_SANDBOX_CPUS: "0.5",
        ROBOCO_SANDBOX_MAX: "7",
        ROBOCO_SANDBOX_CONCURRENCY: "3",
        ROBOCO_SANDBOX_PULL_TIMEOUT_SECONDS: "60",
        ROBOCO_JANITOR_INTERVAL_SECONDS: "5",
        ROBOCO_JANITOR_GRACE_SECONDS: "20",
        ROBOCO_TEARDOWN_GRACE_SECONDS: "0",
        ROBOCO_SHARED_DIR: "/srv/roboco",
        ROBOCO_ROLES_FILE: "/etc/roles.yaml",
        ROBOCO_HTTP_LISTEN: "0.0.0.0:8080",
        ROBOCO_LOG_LEVEL: "debug",
      }),
    ).toEqual({
      enabled: true,
      engineAddress: { kind: "unix", socketPath: "/run/user/1000/docker.sock" },
      installation: "ci-2",
      network: "agents_net",
      images: { postgres: "registry.example:5000/pg@sha256:0", redis: "valkey/valkey:8", mongo: "mongo:7" },
      memoryBytes: 1024 * MiB,
      cpus: 0.5,
      maxSandboxes: 7,
      concurrency: 3,
      pullTimeoutMs: 60_000,
      janitorIntervalMs: 5000,
      janitorGraceMs: 20_000,
      teardownGraceMs: 0,
      sharedDir: "/srv/roboco",
      rolesFile: "/etc/roles.yaml",
      listen: { host: "0.0.0.0", port: 8080 },
      logLevel: "debug",
    });
  });

  it("takes empty and blank values as unset, for compose passes them so", () => {
    const { engineAddress: _address, ...expected } = load({});
    const names = [
      "ROBOCO_SANDBOX_DB_ENABLED",
      "DOCKER_HOST",
      "ROBOCO_INSTALLATION",
      "ROBOCO_SANDBOX_NETWORK",
      "ROBOCO_SANDBOX_POSTGRES_IMAGE",
      "ROBOCO_SANDBOX_MEMORY",
      "ROBOCO_SANDBOX_CPUS",
      "ROBOCO_SANDBOX_MAX",
      "ROBOCO_SANDBOX_CONCURRENCY",
      "ROBOCO_SHARED_DIR",
      "ROBOCO_ROLES_FILE",
      "ROBOCO_HTTP_LISTEN",
      "ROBOCO_LOG_LEVEL",
    ];
    expect(load(Object.fromEntries(names.map((name) => [name, ""])))).toMatchObject(expected);
    expect(load(Object.fromEntries(names.map((name) => [name, "  "])))).toMatchObject(expected);
  });

  it("names every wrong variable at once, each with its value, and what to read", () => {
    const wrong = {
      ROBOCO_SANDBOX_DB_ENABLED: "maybe",
      DOCKER_HOST: "ssh://me@host",
      ROBOCO_INSTALLATION: "Up Per",
      ROBOCO_SANDBOX_NETWORK: "host",
      ROBOCO_SANDBOX_POSTGRES_IMAGE: "postgres 16",
      ROBOCO_SANDBOX_MEMORY: "plenty",
      ROBOCO_SANDBOX_CPUS: "0",
      ROBOCO_SANDBOX_MAX: "0",
      ROBOCO_SANDBOX_CONCURRENCY: "1.5",
      ROBOCO_SANDBOX_PULL_TIMEOUT_SECONDS: "5m",
      ROBOCO_JANITOR_INTERVAL_SECONDS: "-1",
      ROBOCO_JANITOR_GRACE_SECONDS: "0",
      ROBOCO_TEARDOWN_GRACE_SECONDS: "soon",
      ROBOCO_SHARED_DIR: "roboco",
      ROBOCO_HTTP_LISTEN: "7070",
      ROBOCO_LOG_LEVEL: "loud",
    };
    const problems = problemsOf(wrong);
    expect(problems.map((problem) => problem.split(":")[0]).sort()).toEqual(
      Object.entries(wrong)
        .map(([name, value]) => `${name}=${value}`.split(":")[0])
        .sort(),
    );
    expect(() => load(wrong)).toThrow(
      expect.objectContaining({ remediate: expect.stringContaining("configuration.md") }),
    );
  });

  it("leaves other programs' variables alone", () => {
    expect(() => load({ PATH: "/bin", ROBOCO_TEST_DB_HOST: "x", DOCKER_TLS_VERIFY: "1" })).not.toThrow();
  });

  it.each([
    ["true", true],
    ["TRUE", true],
    ["1", true],
    ["false", false],
    ["0", false],
  ])("reads the master switch %j as %j", (text, enabled) => {
    expect(load({ ROBOCO_SANDBOX_DB_ENABLED: text }).enabled).toBe(enabled);
  });

  it.each([
    ["512m", 512 * MiB],
    ["512M", 512 * MiB],
    ["512mb", 512 * MiB],
    ["1g", 1024 * MiB],
    ["1.5g", 1536 * MiB],
    ["65536k", 64 * MiB],
    ["536870912", 512 * MiB],
    ["536870912b", 512 * MiB],
    ["6m", 6 * MiB],
  ])("reads the memory size %j", (text, bytes) => {
    expect(load({ ROBOCO_SANDBOX_MEMORY: text }).memoryBytes).toBe(bytes);
  });

  it.each(["5m", "512", "0", "-512m", "512 m", "1t", "m", "1e9", "Infinity"])("rejects the memory size %j", (text) => {
    expect(problemsOf({ ROBOCO_SANDBOX_MEMORY: text })).toEqual([
      `ROBOCO_SANDBOX_MEMORY=${text}: must be a size of at least 6m, such as 512m or 1g`,
    ]);
  });

  it("reads any size with a unit as that many whole bytes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 6 * 1024, max: 1e9 }), fc.constantFrom("k", "K", "kb"), (size, unit) => {
        expect(load({ ROBOCO_SANDBOX_MEMORY: `${size}${unit}` }).memoryBytes).toBe(size * 1024);
      }),
    );
  });

  it.each(["0", "-1", "many", "Infinity", "NaN", "1025"])("rejects %j CPUs", (text) => {
    expect(problemsOf({ ROBOCO_SANDBOX_CPUS: text })).toHaveLength(1);
  });

  it.each([
    ["127.0.0.1:7070", { host: "127.0.0.1", port: 7070 }],
    ["localhost:1", { host: "localhost", port: 1 }],
    [":7070", { host: "0.0.0.0", port: 7070 }],
    ["[::1]:7070", { host: "::1", port: 7070 }],
    ["0.0.0.0:0", { host: "0.0.0.0", port: 0 }],
  ])("listens at %j", (text, listen) => {
    expect(load({ ROBOCO_HTTP_LISTEN: text }).listen).toEqual(listen);
  });

  it.each(["7070", "host", "host:", "host:65536", "::1:7070", "a b:1", "http://host:1"])(
    "rejects the address %j",
    (text) => {
      expect(problemsOf({ ROBOCO_HTTP_LISTEN: text })).toHaveLength(1);
    },
  );

  it.each([
    ["unix:///var/run/docker.sock", { kind: "unix", socketPath: "/var/run/docker.sock" }],
    ["tcp://10.0.0.1:2375", { kind: "tcp", host: "10.0.0.1", port: 2375 }],
    ["http://docker:2375/", { kind: "tcp", host: "docker", port: 2375 }],
  ])("finds the Engine at %j", (text, address) => {
    expect(load({ DOCKER_HOST: text }).engineAddress).toEqual(address);
  });

  it.each([
    "/var/run/docker.sock",
    "unix://docker.sock",
    "unix://",
    "tcp://host",
    "ssh://host",
    "npipe:////./pipe/docker_engine",
  ])("rejects DOCKER_HOST=%s", (text) => {
    expect(problemsOf({ DOCKER_HOST: text })).toHaveLength(1);
  });

  it.each(["bridge", "host", "none", "default"])("rejects the network %j, where names do not resolve", (name) => {
    expect(problemsOf({ ROBOCO_SANDBOX_NETWORK: name })).toEqual([
      expect.stringContaining("must be a user-defined network"),
    ]);
  });

  it("never throws anything but a ConfigError that names the variable, whatever its value", () => {
    const names = fc.constantFrom(
      "ROBOCO_SANDBOX_MEMORY",
      "ROBOCO_SANDBOX_MAX",
      "ROBOCO_HTTP_LISTEN",
      "DOCKER_HOST",
      "ROBOCO_SANDBOX_CPUS",
      "ROBOCO_INSTALLATION",
      "ROBOCO_LOG_LEVEL",
      "ROBOCO_SANDBOX_DB_ENABLED",
      "ROBOCO_SANDBOX_REDIS_IMAGE",
    );
    fc.assert(
      fc.property(names, fc.string(), (name, value) => {
        for (const problem of problemsOf({ [name]: value.replaceAll("\n", "") })) expect(problem).toContain(name);
      }),
    );
  });
});
