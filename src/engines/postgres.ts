import { expectAnswer, type SandboxEngine } from "./engine.ts";

export const postgres: SandboxEngine = {
  name: "postgres",
  shortName: "pg",
  image: "postgres:16-alpine",
  port: 5432,
  dataPath: "/var/lib/postgresql/data",
  readyWithinMs: 60_000,
  user: "sandbox",
  database: "sandbox",
  passwordVariable: "POSTGRES_PASSWORD",
  environment: { POSTGRES_USER: "sandbox", POSTGRES_DB: "sandbox" },
  agentVariables: ({ host, port, password }) => ({
    ROBOCO_TEST_DB_HOST: host,
    ROBOCO_TEST_DB_PORT: String(port),
    ROBOCO_TEST_DB_USER: "sandbox",
    ROBOCO_TEST_DB_PASSWORD: password,
    ROBOCO_TEST_DB_ADMIN_DB: "sandbox",
  }),
  // The temporary server of a first start has no TCP port at all, so a login over the network cannot meet it.
  login: async ({ host, port, password }, { timeoutMs }) => {
    const { default: pg } = await import("pg");
    const client = new pg.Client({
      host,
      port,
      user: "sandbox",
      database: "sandbox",
      password,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
    });
    client.on("error", () => {}); // a server that goes away between two steps rejects the step as well
    try {
      await client.connect();
      const { rows } = await client.query("SELECT 1 AS one");
      expectAnswer(rows[0]?.one, 1);
    } finally {
      await client.end().catch(() => {});
    }
  },
};
