import type { StartedTestContainer } from "testcontainers";
import type { Images } from "../test/engine/images.ts";
import type { Engine } from "../test/engine/start-engine.ts";

/** The databases' part by testcontainers-node, its reaper off, waiting as its own modules for these databases do. */
export const withTestcontainers = async (
  engine: Engine,
  images: Images,
  services: readonly ("postgres" | "redis")[],
): Promise<number> => {
  process.env.DOCKER_HOST = engine.dockerHost;
  process.env.TESTCONTAINERS_RYUK_DISABLED = "true";
  const { GenericContainer, Wait } = await import("testcontainers");
  const start = {
    postgres: () =>
      new GenericContainer(images.postgres)
        .withEnvironment({ POSTGRES_USER: "sandbox", POSTGRES_DB: "sandbox", POSTGRES_PASSWORD: "secret" })
        .withTmpFs({ "/var/lib/postgresql/data": "rw" })
        .withExposedPorts(5432)
        .withHealthCheck({
          test: ["CMD-SHELL", "PGPASSWORD=secret pg_isready --host localhost --username sandbox --dbname sandbox"],
          interval: 250,
          timeout: 1000,
          retries: 1000,
        })
        .withWaitStrategy(Wait.forAll([Wait.forHealthCheck(), Wait.forListeningPorts()]))
        .start(),
    redis: () =>
      new GenericContainer(images.redis)
        .withCommand(["redis-server", "--requirepass", "secret"])
        .withExposedPorts(6379)
        .withWaitStrategy(Wait.forLogMessage("Ready to accept connections"))
        .start(),
  };
  const startedAt = performance.now();
  const started: StartedTestContainer[] = await Promise.all(services.map((service) => start[service]()));
  const durationMs = performance.now() - startedAt;
  await Promise.all(started.map((container) => container.stop({ timeout: 0 })));
  return durationMs;
};
