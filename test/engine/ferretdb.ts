import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeOnce, remove } from "./cache.ts";
import { run } from "./run.ts";

const module = "github.com/FerretDB/FerretDB";
export const ferretdbVersion = "v1.24.2";
const missing = `mongo:8 cannot be pulled, and there is no Go toolchain to build FerretDB ${ferretdbVersion} with`;

/** Why FerretDB cannot be built here; undefined when it can. */
export const ferretdbObstacle = (): Promise<string | undefined> =>
  run("go", ["version"]).then(
    () => undefined,
    () => missing,
  );

/** The path of the FerretDB program, a real server of Mongo's protocol: built from the Go module proxy once. */
export async function ferretdb(cacheDir: string): Promise<string> {
  const path = join(cacheDir, `ferretdb-${ferretdbVersion}-${process.arch}`, "ferretdb");
  const obstacle = await ferretdbObstacle();
  if (obstacle) throw new Error(obstacle);
  await makeOnce(join(path, ".."), async (temporary) => {
    console.error(`engine: building FerretDB ${ferretdbVersion} (once; some minutes)`);
    const { stdout } = await run("go", ["mod", "download", "-json", `${module}@${ferretdbVersion}`]);
    const source = `${temporary}/source`;
    await mkdir(temporary);
    await run("cp", ["-r", "--no-preserve=mode", (JSON.parse(stdout) as { Dir: string }).Dir, source]);
    // The one file it insists on that its release build generates.
    await writeFile(join(source, "build/version/version.txt"), ferretdbVersion);
    // Pure Go, and polite to what else runs.
    await run("nice", ["go", "build", "-ldflags=-s -w", "-o", join(temporary, "ferretdb"), "./cmd/ferretdb"], {
      cwd: source,
      env: { ...process.env, CGO_ENABLED: "0" },
    });
    await remove(source);
  });
  return path;
}
