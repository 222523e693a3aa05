import Docker from "dockerode";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { labels } from "../../src/contract/labels.ts";
import { resolveEngine } from "../engine/resolve-engine.ts";
import type { RunResult } from "../engine/run.ts";
import { until } from "./support/until.ts";

const info = inject("engine");
const docker = new Docker({ socketPath: info.socketPath });
const root = new URL("../..", import.meta.url).pathname;
const project = "roboco";

let compose: (...args: string[]) => Promise<RunResult>;
let stop: () => Promise<void>;
let before: { containers: string[]; networks: string[]; volumes: string[] };

beforeAll(async () => {
  // The engine of the whole run, and not one more of the suite under test.
  delete process.env.ROBOCO_TEST_SUITE;
  process.env.DOCKER_HOST = info.dockerHost;
  const { engine } = await resolveEngine();
  stop = () => engine.stop();
  // The host's network, since a private engine's own has no way out.
  await engine.docker(
    ["build", "--network", "host", "--build-arg", `BASE_IMAGE=${info.images.nodeBase}`, "-t", "roboco-sidecar", "."],
    { cwd: root },
  );
  compose = (...args) => engine.compose(["-f", "compose.yaml", ...args], { cwd: root, anyCode: true });
  before = await inventory();
});
afterAll(async () => {
  await compose?.("down", "--volumes");
  await stop?.();
});

const inventory = async () => ({
  containers: (await docker.listContainers({ all: true })).map(({ Id }) => Id).sort(),
  networks: (await docker.listNetworks()).map(({ Id }) => Id).sort(),
  volumes: ((await docker.listVolumes()).Volumes ?? []).map(({ Name }) => Name).sort(),
});

const containers = (service: string) =>
  docker.listContainers({
    all: true,
    filters: { label: [`com.docker.compose.project=${project}`, `com.docker.compose.service=${service}`] },
  });
const sandboxes = (engine?: string) =>
  docker.listContainers({
    all: true,
    filters: { label: [`${labels.sandbox}=1`, ...(engine ? [`${labels.engine}=${engine}`] : [])] },
  });
const logOf = async (id: string) =>
  (await docker.getContainer(id).logs({ stdout: true, stderr: true, follow: false })).toString();
const sidecarLines = async () => {
  const [sidecar] = await containers("sidecar");
  // Frames of the log stream begin with eight bytes of their own.
  const lines = (await logOf(sidecar?.Id ?? "")).split("\n").map((line) => line.slice(line.indexOf("{")));
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
};
const up = async (...args: string[]) => {
  const { code, stderr } = await compose("up", "--detach", "--no-build", ...args);
  expect(stderr).not.toMatch(/error|fail|unhealthy/i);
  expect(code).toBe(0);
};

test("docker compose up starts the agents after their sandboxes", async () => {
  await up();
  const [developer] = await containers("developer");
  const [qa] = await containers("qa");
  await until("the developer has used its database", async () =>
    (await logOf(developer?.Id ?? "")).includes("hello from developer"),
  );
  await until("qa has used its store", async () => (await logOf(qa?.Id ?? "")).includes("hello from qa"));
  expect((await sandboxes()).map(({ Names }) => Names[0]).sort()).toEqual([
    "/roboco-sandbox-pg-roboco-developer-1",
    "/roboco-sandbox-redis-roboco-developer-1",
    "/roboco-sandbox-redis-roboco-qa-1",
  ]);
  const lines = await sidecarLines();
  expect(lines.some(({ event }) => event === "agent.held")).toBe(false);
  expect(lines.filter(({ event }) => event === "agent.released")).toHaveLength(2);
});

test("the sidecar runs as nobody, and its agents see no socket and a read-only manifest", async () => {
  const [sidecar] = await containers("sidecar");
  const top = await docker.getContainer(sidecar?.Id ?? "").top({ ps_args: "-eo pid,uid,args" });
  const uids: string[] = top.Processes.filter((row: string[]) => row[2]?.includes("main.js run")).map(
    (row: string[]) => row[1],
  );
  expect(uids).toEqual(["65532"]);
  const [developer] = await containers("developer");
  const { Mounts } = await docker.getContainer(developer?.Id ?? "").inspect();
  expect(Mounts.filter(({ Type }) => Type === "volume")).toMatchObject([{ Destination: "/roboco", RW: false }]);
  expect(JSON.stringify(Mounts)).not.toContain("docker.sock");
});

test("up --force-recreate gives the new agents new sandboxes", async () => {
  const old = (await sandboxes()).map(({ Id }) => Id);
  await up("--force-recreate");
  await until("there are new ones only", async () => {
    const now = await sandboxes();
    return now.length === 3 && now.every(({ Id, State }) => State === "running" && !old.includes(Id));
  });
  const [developer] = await containers("developer");
  await until("the new developer has used its database", async () =>
    (await logOf(developer?.Id ?? "")).includes("hello from developer"),
  );
});

test("recreating only an agent, its successor waits for the predecessor to go and never inherits", async () => {
  const old = (await sandboxes("postgres")).map(({ Id }) => Id);
  await up("--force-recreate", "--no-deps", "developer");
  const [developer] = await containers("developer");
  await until("the new developer has used its database", async () =>
    (await logOf(developer?.Id ?? "")).includes("hello from developer"),
  );
  const now = await sandboxes("postgres");
  expect(now).toHaveLength(1);
  expect(old).not.toContain(now[0]?.Id);
  expect(now[0]?.Labels[labels.ownerContainer]).toBe(developer?.Id);
});

test("up --scale gives each agent sandboxes of its own, and takes those of the ones that go", async () => {
  await up("--scale", "developer=3");
  await until("three agents have used their databases", async () => {
    const agents = await containers("developer");
    const logs = await Promise.all(agents.map(({ Id }) => logOf(Id)));
    return agents.length === 3 && logs.every((log) => log.includes("hello from developer"));
  });
  expect(await sandboxes("postgres")).toHaveLength(3);
  await up("--scale", "developer=1");
  await until("two are gone with their sandboxes", async () => (await sandboxes("postgres")).length === 1);
});

test("docker compose down leaves nothing and prints no error", async () => {
  const { code, stderr } = await compose("down", "--volumes");
  expect(stderr).not.toMatch(/error|in use|fail/i);
  expect(code).toBe(0);
  expect(await inventory()).toEqual(before);
});

test("docker compose down without --volumes leaves the stack's own named volume and nothing of ours", async () => {
  await up();
  const { code, stderr } = await compose("down");
  expect(stderr).not.toMatch(/error|in use|fail/i);
  expect(code).toBe(0);
  const after = await inventory();
  expect({ ...after, volumes: after.volumes.filter((name) => name !== `${project}_roboco`) }).toEqual(before);
});
