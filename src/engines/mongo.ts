import { expectAnswer, type SandboxEngine } from "./engine.ts";

export const mongo: SandboxEngine = {
  name: "mongo",
  shortName: "mongo",
  image: "mongo:8",
  port: 27017,
  dataPath: "/data/db",
  readyWithinMs: 60_000,
  user: "sandbox",
  database: "admin",
  passwordVariable: "MONGO_INITDB_ROOT_PASSWORD",
  environment: { MONGO_INITDB_ROOT_USERNAME: "sandbox", MONGO_INITDB_DATABASE: "sandbox" },
  agentVariables: ({ host, port, password }) => ({
    ROBOCO_TEST_MONGO_HOST: host,
    ROBOCO_TEST_MONGO_PORT: String(port),
    ROBOCO_TEST_MONGO_USER: "sandbox",
    ROBOCO_TEST_MONGO_PASSWORD: password,
    ROBOCO_TEST_MONGO_AUTH_DB: "admin",
  }),
  // The temporary server of a first start has this very port, without authentication, but on loopback only.
  // dbStats needs rights, which ping and hello do not.
  login: async ({ host, port, password }, { timeoutMs }) => {
    const { MongoClient } = await import("mongodb");
    const client = new MongoClient(`mongodb://${host}:${port}/`, {
      auth: { username: "sandbox", password },
      authSource: "admin",
      directConnection: true,
      serverSelectionTimeoutMS: timeoutMs,
      connectTimeoutMS: timeoutMs,
      socketTimeoutMS: timeoutMs,
    });
    try {
      await client.connect();
      const { ok } = await client.db("sandbox").command({ dbStats: 1 });
      expectAnswer(ok, 1);
    } finally {
      await client.close(true).catch(() => {});
    }
  },
};
