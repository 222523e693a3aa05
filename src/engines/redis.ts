import { expectAnswer, type SandboxEngine } from "./engine.ts";

export const redis: SandboxEngine = {
  name: "redis",
  shortName: "redis",
  image: "redis:8-alpine",
  port: 6379,
  readyWithinMs: 15_000,
  passwordVariable: "REDIS_PASSWORD",
  // The image takes no password from its environment, and a command line is no place for one: the configuration goes
  // in on standard input. Nothing is saved: what is lost with the container is meant to be.
  command: [
    "sh",
    "-c",
    'exec docker-entrypoint.sh redis-server - <<EOF\nrequirepass $REDIS_PASSWORD\nsave ""\nappendonly no\nEOF\n',
  ],
  agentVariables: ({ host, port, password }) => ({
    ROBOCO_TEST_REDIS_HOST: host,
    ROBOCO_TEST_REDIS_PORT: String(port),
    ROBOCO_TEST_REDIS_PASSWORD: password,
  }),
  // The reply is compared: NOAUTH and LOADING are answers, too.
  login: async ({ host, port, password }, { timeoutMs }) => {
    const { createClient } = await import("@redis/client");
    const client = createClient({
      socket: { host, port, connectTimeout: timeoutMs, socketTimeout: timeoutMs, reconnectStrategy: false },
      password,
      disableOfflineQueue: true,
    });
    client.on("error", () => {}); // the same failure rejects the step below
    try {
      await client.connect();
      expectAnswer(await client.ping(), "PONG");
    } finally {
      client.destroy();
    }
  },
};
