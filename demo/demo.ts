import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";
import { type Sidecar, startSidecar } from "../test/e2e/support/sidecar.ts";
import { until } from "../test/e2e/support/until.ts";
import { resolveEngine } from "../test/engine/resolve-engine.ts";
import { agentScript } from "./agent-script.ts";

// The main job on a real Docker Engine, start to finish. An Engine that answers is used; else a private one is started.
const startedAt = performance.now();
const say = (text: string): void =>
  console.log(`\n[${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s] ${text}`);

say("1. A Docker Engine, and images for Postgres, Redis and an agent (the first time takes a minute or two)");
const { engine, images } = await resolveEngine({ mongo: false });
const docker = new Docker({ socketPath: engine.socketPath });
console.log(
  `   Docker ${engine.version}, ${engine.owned ? "a private one, stopped again at the end" : engine.dockerHost}`,
);

const inventory = async () => ({
  containers: (await docker.listContainers({ all: true })).map(({ Names }) => Names[0]),
  networks: (await docker.listNetworks()).map(({ Name }) => Name).sort(),
  volumes: ((await docker.listVolumes()).Volumes ?? []).map(({ Name }) => Name).sort(),
});
const before = await inventory();
const id = `demo-${process.pid}`;
const sharedDir = await mkdtemp(join(tmpdir(), "roboco-demo-"));
let sidecar: Sidecar | undefined;
let agent: Docker.Container | undefined;
let failed = false;
try {
  await docker.createNetwork({ Name: id, CheckDuplicate: true });

  say("2. The sidecar, as `npm start` runs it");
  sidecar = await startSidecar({
    DOCKER_HOST: engine.dockerHost,
    ROBOCO_INSTALLATION: id,
    ROBOCO_SHARED_DIR: sharedDir,
    ROBOCO_LOG_LEVEL: "info",
    ROBOCO_SANDBOX_POSTGRES_IMAGE: images.postgres,
    ROBOCO_SANDBOX_REDIS_IMAGE: images.redis,
  });
  await sidecar.line("sidecar.ready");
  console.log("   it is ready");

  say("3. An agent: one container with two labels. It is given nothing else");
  agent = await docker.createContainer({
    name: `${id}-developer`,
    Image: images.agent,
    Entrypoint: ["/roboco/bin/enter"],
    Cmd: ["node", "-e", agentScript],
    Labels: {
      "roboco.sandbox.services": "postgres,redis",
      "roboco.agent.role": "developer",
      "roboco.agent.installation": id,
    },
    HostConfig: { NetworkMode: id, Binds: [`${sharedDir}:/roboco:ro`] },
  });
  await agent.start();
  const output = await until("the agent has used its databases", async () => {
    const text = (await agent?.logs({ stdout: true, stderr: true, follow: false }))?.toString() ?? "";
    if (text.includes("failed:")) throw new Error(text);
    return text.includes("done") && text;
  });
  // Frames of the log stream begin with eight bytes of their own.
  for (const line of output.split("\n").filter(Boolean)) console.log(`   agent: ${line.slice(8)}`);
  const siblings = await docker.listContainers({ filters: { label: [`roboco.sandbox.installation=${id}`] } });
  for (const { Names, Status } of siblings) console.log(`   sibling: ${Names[0]?.slice(1)} (${Status})`);

  say("4. The agent dies. Its sandboxes go with it");
  const { id: agentId } = agent;
  await agent.remove({ force: true });
  await sidecar.line("agent.gone", ({ container }) => container === agentId);

  say("5. What the sidecar said, less ids and times");
  for (const { event, level, msg, agent: who, engine: which, durationMs } of sidecar.lines) {
    const facts = Object.entries({ agent: who, engine: which, durationMs }).flatMap(([k, v]) =>
      v === undefined ? [] : `${k}=${v}`,
    );
    console.log(`   ${level.padEnd(5)} ${event.padEnd(20)} ${[msg, ...facts].join(" ")}`);
  }
} catch (error) {
  failed = true;
  console.error(error, sidecar?.output().slice(-3000));
  await agent?.remove({ force: true }).catch(() => {});
} finally {
  const code = (await sidecar?.stop()) ?? 1;
  await docker
    .getNetwork(id)
    .remove()
    .catch(() => {});
  await rm(sharedDir, { recursive: true, force: true });
  say(`6. The sidecar has stopped (exit code ${code}). What is left on the Engine that was not there before?`);
  const after = await inventory();
  const isClean = JSON.stringify(after) === JSON.stringify(before);
  console.log(isClean ? "   nothing" : `   LEFT: ${JSON.stringify(after)} instead of ${JSON.stringify(before)}`);
  await engine.stop();
  failed ||= !isClean || code !== 0;
}
say(failed ? "FAILED" : "done");
process.exit(failed ? 1 : 0);
