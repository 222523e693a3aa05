/** What the demo's agent runs: it knows its environment, and nothing else. */
export const agentScript = `
const pg = require("pg");
const { createClient } = require("redis");
const { env } = process;
(async () => {
  const names = Object.keys(env).filter((name) => name.startsWith("ROBOCO_TEST_"));
  console.log("I was given " + names.join(", "));
  const db = new pg.Client({
    host: env.ROBOCO_TEST_DB_HOST,
    port: Number(env.ROBOCO_TEST_DB_PORT),
    user: env.ROBOCO_TEST_DB_USER,
    password: env.ROBOCO_TEST_DB_PASSWORD,
    database: env.ROBOCO_TEST_DB_ADMIN_DB,
  });
  await db.connect();
  await db.query("CREATE TABLE notes (id serial, text text)");
  await db.query("INSERT INTO notes (text) VALUES ('first'), ('second')");
  const { rows } = await db.query("SELECT * FROM notes ORDER BY id");
  console.log("Postgres at " + env.ROBOCO_TEST_DB_HOST + " has " + JSON.stringify(rows));
  await db.end();
  const store = createClient({
    socket: { host: env.ROBOCO_TEST_REDIS_HOST, port: Number(env.ROBOCO_TEST_REDIS_PORT) },
    password: env.ROBOCO_TEST_REDIS_PASSWORD,
  });
  await store.connect();
  await store.set("greeting", "hello");
  console.log("Redis at " + env.ROBOCO_TEST_REDIS_HOST + " has greeting=" + (await store.get("greeting")));
  await store.quit();
  console.log("done");
  setInterval(() => {}, 1000);
})().catch((error) => { console.error("failed: " + error.stack); process.exit(1); });
`;
