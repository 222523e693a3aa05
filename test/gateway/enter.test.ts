import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { mkdtemp, open, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { formatRefusal } from "../../src/contract/refusal.ts";

const enter = fileURLToPath(new URL("../../assets/enter", import.meta.url));
const path = process.env.PATH ?? "/usr/bin:/bin";

const isInstalled = (program: string): boolean =>
  path.split(":").some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });

interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

describe.each([["sh"], ["dash"], ["bash"], ["busybox", "sh"]])("enter under %s", (...shell) => {
  const missing = !isInstalled(shell[0] ?? "");
  if (missing && shell[0] === "sh") throw new Error("no sh on PATH");

  describe.skipIf(missing)(missing ? "(not installed here)" : "", () => {
    let directory: string;
    const running = new Set<ChildProcess>();
    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), "enter-"));
    });
    afterEach(async () => {
      for (const child of running) child.kill("SIGKILL");
      running.clear();
      await rm(directory, { recursive: true });
    });

    const put = async (name: string, content: string): Promise<void> => {
      await writeFile(join(directory, `new-${name}`), content);
      await rename(join(directory, `new-${name}`), join(directory, name));
    };
    const start = (command: readonly string[], env: Record<string, string> = {}) => {
      const [program = "sh", ...options] = shell;
      const child = spawn(program, [...options, enter, ...command], {
        env: { PATH: path, ROBOCO_RUN_DIR: directory, ROBOCO_MOUNTINFO: join(directory, "mountinfo"), ...env },
        stdio: ["ignore", "pipe", "pipe"],
      });
      running.add(child);
      const outcome = (async (): Promise<Outcome> => {
        const [stdout, stderr, [code, signal]] = await Promise.all([
          text(child.stdout),
          text(child.stderr),
          once(child, "close"),
        ]);
        return { code, signal, stdout, stderr };
      })();
      return { child, outcome };
    };
    /** Makes `.phase` a pipe, which blocks each look of the launcher until the test answers it. */
    const controlLooks = async () => {
      const [phase, next] = [join(directory, ".phase"), join(directory, "next")];
      const makePipe = () => promisify(execFile)("mkfifo", [next]).then(() => rename(next, phase));
      await makePipe();
      return async (answer: string, meanwhile?: () => Promise<unknown>): Promise<void> => {
        // Fails until the launcher has the other end open.
        const pipe = await vi.waitFor(() => open(phase, constants.O_WRONLY | constants.O_NONBLOCK), { timeout: 4000 });
        // Another pipe for each look: the launcher may still hold this one when the next answer comes.
        await makePipe();
        await meanwhile?.();
        await pipe.writeFile(answer).finally(() => pipe.close());
      };
    };
    const run = (command: readonly string[], env?: Record<string, string>): Promise<Outcome> =>
      start(command, env).outcome;

    const variables = "ROBOCO_TEST_DB_HOST=roboco-sandbox-pg-a\nROBOCO_TEST_DB_PASSWORD=0123abcd\n";
    const refusal = formatRefusal({
      error: "IMAGE_UNAVAILABLE",
      message: 'No "postgres" in C:\\new, after 300 s.',
      remediate: 'Set "X", then \\"retry\\".',
      missing: ["postgres"],
    });

    it("starts the command with the delivered variables and its arguments unchanged", async () => {
      await put("sandbox.env", variables);
      const script = 'printf "%s|" "$ROBOCO_TEST_DB_HOST" "$ROBOCO_TEST_DB_PASSWORD" "$@"';
      expect(await run(["sh", "-c", script, "sh", "a b", "", "*", "$HOME", '"'])).toEqual({
        code: 0,
        signal: null,
        stdout: 'roboco-sandbox-pg-a|0123abcd|a b||*|$HOME|"|',
        stderr: "",
      });
    });

    it("adds nothing to the environment of the command but the delivered variables", async () => {
      await put("sandbox.env", variables);
      const names = ["message", "field", "timeout", "start", "phase", "MIXED_case"];
      const given = Object.fromEntries(names.map((name) => [name, `own ${name}`]));
      const { stdout } = await run(["env"], { ...given, ROBOCO_ENTER_TIMEOUT: "5" });
      const lines = stdout.trimEnd().split("\n");
      // What any shell sets by itself.
      const ofShell = /^(PWD|OLDPWD|SHLVL|_)=/;
      expect(lines.filter((line) => !ofShell.test(line)).sort()).toEqual(
        [
          ...Object.entries(given).map(([name, value]) => `${name}=${value}`),
          ...variables.trimEnd().split("\n"),
          `PATH=${path}`,
          `ROBOCO_RUN_DIR=${directory}`,
          `ROBOCO_MOUNTINFO=${join(directory, "mountinfo")}`,
          "ROBOCO_ENTER_TIMEOUT=5",
        ].sort(),
      );
    });

    it("starts the command of an agent that gets no sandbox: a file of a comment only", async () => {
      await put("sandbox.env", "# no sandbox was asked for\n");
      expect(await run(["echo", "ran"])).toMatchObject({ code: 0, stdout: "ran\n" });
    });

    it.each(["360", "08"])("waits for the variables, up to %s s", async (timeout) => {
      await put("sandbox.env", "");
      const answerLook = await controlLooks();
      const { outcome } = start(["sh", "-c", 'echo "$A"'], { ROBOCO_ENTER_TIMEOUT: timeout });
      await answerLook("\n");
      await answerLook("\n", () => put("sandbox.env", "A=late\n"));
      expect(await outcome).toMatchObject({ code: 0, stdout: "late\n", stderr: "" });
    });

    it("passes the exit code of the command through", async () => {
      await put("sandbox.env", variables);
      expect(await run(["sh", "-c", "exit 42"])).toMatchObject({ code: 42, stderr: "" });
    });

    it("becomes the command, so that it gets the signals itself", async () => {
      await put("sandbox.env", variables);
      const { child, outcome } = start([
        "sh",
        "-c",
        'trap "echo caught; exit 3" TERM; echo $$; while :; do sleep 0.05; done',
      ]);
      const [first] = await once(child.stdout, "data");
      expect(Number(String(first))).toBe(child.pid);
      child.kill("SIGTERM");
      expect((await outcome).code).toBe(3);
    });

    it("leaves the command the default reaction to a signal", async () => {
      await put("sandbox.env", variables);
      const { child, outcome } = start(["sh", "-c", "echo up; exec sleep 60"]);
      await once(child.stdout, "data");
      child.kill("SIGTERM");
      expect(await outcome).toMatchObject({ code: null, signal: "SIGTERM" });
    });

    it("exits 127 when there is no such command", async () => {
      await put("sandbox.env", variables);
      const { code, stderr } = await run(["no-such-command-anywhere"]);
      expect(code).toBe(127);
      expect(stderr).toContain("no-such-command-anywhere");
    });

    it("prints message and remedy of a refusal as they were meant, and exits 69", async () => {
      await put("refused.json", refusal);
      expect(await run(["echo", "ran"])).toEqual({
        code: 69,
        signal: null,
        stdout: "",
        stderr: 'enter: refused: No "postgres" in C:\\new, after 300 s.\nenter: remedy: Set "X", then \\"retry\\".\n',
      });
    });

    it.each([
      ["refused", 69],
      ["released", 69],
      ["armed", 0],
    ])("with a refusal beside variables, in phase %s, exits %i", async (phase, code) => {
      await put("refused.json", refusal);
      await put("sandbox.env", variables);
      await put(".phase", `${phase} 0123456789ab\n`);
      expect(await run(["true"])).toMatchObject({ code });
    });

    it("waits out an earlier refusal while the sidecar decides anew, and takes the new one", async () => {
      await put("refused.json", refusal);
      const answerLook = await controlLooks();
      const { outcome } = start(["echo", "ran"]);
      await answerLook("armed 0123456789ab\n");
      await answerLook("refused 0123456789ab\n", () => put("refused.json", refusal.replace("300", "600")));
      const { code, stderr } = await outcome;
      expect(code).toBe(69);
      expect(stderr).toContain("600 s");
    });

    const mountOf = (id: string): string =>
      `1 2 8:1 / / rw - ext4 /dev/x rw\n3 2 8:1 /var/lib/docker/containers/${id}/hostname /etc/hostname rw - ext4 /dev/x rw\n`;

    it.each([
      ["variables", "released", { "sandbox.env": "A=stale\n" }],
      ["a refusal", "refused", { "refused.json": formatRefusal({ ...JSON.parse(refusal), message: "stale" }) }],
    ])(
      "waits out %s of an earlier container on the same volume",
      async (_what, phase, stale: Record<string, string>) => {
        await put("mountinfo", mountOf("bbbb"));
        for (const [name, content] of Object.entries(stale)) await put(name, content);
        const answerLook = await controlLooks();
        const { outcome } = start(["sh", "-c", 'echo "$A"']);
        await answerLook(`${phase} aaaa\n`);
        await answerLook("released bbbb\n", async () => {
          await put("refused.json", "");
          await put("sandbox.env", "A=own\n");
        });
        expect(await outcome).toMatchObject({ code: 0, stdout: "own\n" });
      },
    );

    it.each(["released aaaa bbbb", "released bbbb"])(
      "takes files of %j for its own in the container bbbb",
      async (phase) => {
        await put("mountinfo", mountOf("bbbb"));
        await put(".phase", `${phase}\n`);
        await put("sandbox.env", variables);
        expect(await run(["true"])).toMatchObject({ code: 0 });
      },
    );

    it("takes an empty refusal for none", async () => {
      await put("refused.json", "");
      await put("sandbox.env", variables);
      expect(await run(["true"])).toMatchObject({ code: 0 });
    });

    it("points at the file when it cannot read a refusal", async () => {
      await put("refused.json", "{}");
      const { code, stderr } = await run(["true"]);
      expect(code).toBe(69);
      expect(stderr).toContain(join(directory, "refused.json"));
    });

    it("looks at the files before the time: delivered counts, however late", async () => {
      await put("sandbox.env", variables);
      expect(await run(["true"], { ROBOCO_ENTER_TIMEOUT: "0" })).toMatchObject({ code: 0 });
    });

    it.each(["0", "00", "1"])("exits 75 and says what to check when nothing comes within %s s", async (timeout) => {
      const { code, stdout, stderr } = await run(["echo", "ran"], { ROBOCO_ENTER_TIMEOUT: timeout });
      expect(code).toBe(75);
      expect(stdout).toBe("");
      for (const word of [directory, "roboco-sidecar", "roboco.sandbox.services", "ROBOCO_SANDBOX_DB_ENABLED"]) {
        expect(stderr).toContain(word);
      }
    });

    it.each(["soon", "1.5", "-1", "1 2", "$(true)", "12345678901"])("exits 64 for the time-out %j", async (timeout) => {
      await put("sandbox.env", variables);
      const { code, stderr } = await run(["true"], { ROBOCO_ENTER_TIMEOUT: timeout });
      expect(code).toBe(64);
      expect(stderr).toContain(`"${timeout}"`);
    });

    it("exits 64 with its usage when there is no command", async () => {
      const { code, stderr } = await run([]);
      expect(code).toBe(64);
      expect(stderr).toContain("usage: enter COMMAND");
    });

    it("can be stopped while it waits", async () => {
      const answerLook = await controlLooks();
      const { child, outcome } = start(["true"]);
      await answerLook("\n");
      // The second look has begun: the handlers are set. Its pipe may break, as the launcher ends.
      await answerLook("\n", async () => child.kill("SIGTERM")).catch(() => undefined);
      expect(await outcome).toMatchObject({ code: 143, signal: null });
    });
  });
});
