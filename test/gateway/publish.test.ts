import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { builtInRoles } from "../../src/gateway/built-in-roles.ts";
import { type Manifest, toManifest } from "../../src/gateway/manifest.ts";
import { publishShared } from "../../src/gateway/publish.ts";
import type { RoleConfiguration } from "../../src/gateway/role-schema.ts";
import { SharedDirError } from "../../src/gateway/shared-dir-error.ts";

const { developer, qa, auditor } = builtInRoles;
if (!developer || !qa || !auditor) throw new Error("a built-in role is missing");
const small: RoleConfiguration = { developer, qa };

let sharedDir: string;
beforeEach(async () => {
  sharedDir = await mkdtemp(join(tmpdir(), "shared-"));
});
afterEach(() => rm(sharedDir, { recursive: true, force: true }));

const at = (...parts: string[]): string => join(sharedDir, ...parts);
const readManifest = async (role: string): Promise<Manifest> =>
  JSON.parse(await readFile(at("manifests", `${role}.json`), "utf8"));
const modeOf = async (path: string): Promise<string> => ((await lstat(path)).mode & 0o7777).toString(8);
const publish = (roles: RoleConfiguration = small) => publishShared({ sharedDir, roles });
const asset = () => readFile(new URL("../../assets/enter", import.meta.url), "utf8");

/** What is there, and is all that is there; `previous`: the set that was replaced last. */
const expectPublished = async (roles: RoleConfiguration, previous: readonly string[] = []): Promise<void> => {
  const link = await readlink(at("manifests"));
  expect((await readdir(sharedDir)).sort()).toEqual(["bin", "manifests", link, ...previous].sort());
  expect(await readdir(at("bin"))).toEqual(["enter"]);
  expect(await readFile(at("bin/enter"), "utf8")).toBe(await asset());
  expect(await modeOf(at("bin/enter"))).toBe("555");
  expect((await readdir(at("manifests"))).sort()).toEqual(Object.keys(roles).map((role) => `${role}.json`));
  for (const role of Object.keys(roles)) {
    expect(await readManifest(role)).toEqual(toManifest(role, roles));
    expect(await modeOf(at("manifests", `${role}.json`))).toBe("444");
  }
};

describe("publishShared", () => {
  it("puts the launcher and one manifest a role into an empty directory", async () => {
    expect(await publish()).toEqual({
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      roles: ["developer", "qa"],
      changed: true,
    });
    await expectPublished(small);
  });

  it("links the manifests relatively, since agents mount the directory elsewhere", async () => {
    const { hash } = await publish();
    expect(await readlink(at("manifests"))).toMatch(new RegExp(`^\\.manifests-${hash}-[0-9a-f]+$`));
  });

  it("is readable by agents of any user, whatever the umask", async () => {
    const before = process.umask(0o077);
    try {
      await publish();
    } finally {
      process.umask(before);
    }
    expect(await modeOf(at("bin"))).toBe("755");
    expect(((await stat(at("manifests"))).mode & 0o777).toString(8)).toBe("755");
    await expectPublished(small);
  });

  it("rewrites nothing when all is in place", async () => {
    const first = await publish();
    const look = async () => [
      await readlink(at("manifests")),
      (await stat(at("manifests/qa.json"))).ino,
      (await stat(at("bin/enter"))).ino,
    ];
    const before = await look();
    expect(await publish({ qa, developer })).toEqual({ ...first, changed: false });
    expect(await look()).toEqual(before);
  });

  it("replaces one set by another: removed roles vanish, new ones appear", async () => {
    const first = await publish();
    const previous = await readlink(at("manifests"));
    const other = { auditor, qa };
    const second = await publish(other);
    expect(second).toMatchObject({ roles: ["auditor", "qa"], changed: true });
    expect(second.hash).not.toBe(first.hash);
    await expectPublished(other, [previous]);
  });

  it("keeps the replaced set for readers that are in it, and only until the next time", async () => {
    await publish();
    const [first, firstText] = [await readlink(at("manifests")), await readFile(at("manifests/qa.json"), "utf8")];
    await publish({ auditor });
    expect(await readFile(at(first, "qa.json"), "utf8")).toBe(firstText);
    const second = await readlink(at("manifests"));
    await publish();
    await expectPublished(small, [second]);
    await publish();
    await expectPublished(small);
  });

  it.each<[string, () => Promise<unknown>]>([
    [
      "a manifest of other content",
      async () => {
        await rm(at("manifests/qa.json"));
        await writeFile(at("manifests/qa.json"), "{}", { mode: 0o444 });
      },
    ],
    ["a missing manifest", () => rm(at("manifests/qa.json"))],
    ["a manifest more", () => writeFile(at("manifests/root.json"), "{}")],
    ["a writable manifest", () => chmod(at("manifests/qa.json"), 0o666)],
    [
      "a manifest that is a link",
      async () => {
        await writeFile(at(".manifests-copy"), await readFile(at("manifests/qa.json")), { mode: 0o444 });
        await rm(at("manifests/qa.json"));
        await symlink(at(".manifests-copy"), at("manifests/qa.json"));
      },
    ],
    ["a writable directory of manifests", async () => chmod(at(await readlink(at("manifests"))), 0o777)],
    ["a dangling link", async () => rm(at(await readlink(at("manifests"))), { recursive: true })],
    ["no link", () => rm(at("manifests"))],
    [
      "a link to somewhere else",
      async () => {
        await rm(at("manifests"));
        await symlink("/", at("manifests"));
      },
    ],
    [
      "an ordinary directory instead of the link",
      async () => {
        await rm(at("manifests"));
        await mkdir(at("manifests"));
        await writeFile(at("manifests/qa.json"), "{}");
      },
    ],
    [
      "a file instead of the link",
      async () => {
        await rm(at("manifests"));
        await writeFile(at("manifests"), "");
      },
    ],
    ["no launcher", () => rm(at("bin"), { recursive: true })],
    [
      "a launcher of other content",
      () => rm(at("bin/enter")).then(() => writeFile(at("bin/enter"), "", { mode: 0o555 })),
    ],
    ["a launcher that does not run", () => chmod(at("bin/enter"), 0o444)],
    ["a directory instead of the launcher", () => rm(at("bin/enter")).then(() => mkdir(at("bin/enter")))],
  ])("repairs what it finds: %s", async (_what, tamper) => {
    await publish();
    await tamper();
    expect(await publish()).toMatchObject({ changed: true });
    expect(await publish()).toMatchObject({ changed: false });
    await expectPublished(small);
  });

  it.each([
    ["when there is something to publish", {}],
    ["when all is in place already", small],
  ])("removes what a crashed publisher left behind, %s", async (_when, before: RoleConfiguration) => {
    await publish(before);
    const previous = before === small ? [] : [await readlink(at("manifests"))];
    await mkdir(at(".manifests-0123-half"));
    await writeFile(at(".manifests-0123-half/qa.json"), '{"schema"', { mode: 0o444 });
    await symlink(".manifests-0123-half", at(".manifests-link-0123"));
    await writeFile(at("bin/.enter-new-0123"), "#!/bi");
    await publish();
    await expectPublished(small, previous);
  });

  it("leaves alone what others keep in the directory", async () => {
    await writeFile(at("README"), "ours");
    await publish();
    expect(await readFile(at("README"), "utf8")).toBe("ours");
  });

  it("never shows a reader a missing, partial or mixed-up manifest while sets are replaced", async () => {
    const sets = ["one", "two", "three"].map(
      (description): RoleConfiguration => ({ qa: { ...qa, description: description.repeat(2000) } }),
    );
    const valid = new Set(sets.map((roles) => toManifest("qa", roles).hash));
    await publish(sets[0]);
    let done = false;
    const seen = new Set<string>();
    const reads = [0, 0];
    const read = async (reader: number): Promise<void> => {
      while (!done) {
        const manifest = await readManifest("qa");
        expect(manifest).toEqual(toManifest("qa", { qa: { ...qa, description: manifest.description } }));
        seen.add(manifest.hash);
        expect((await readFile(at("bin/enter"))).length).toBeGreaterThan(0);
        reads[reader] = (reads[reader] ?? 0) + 1;
      }
    };
    const replace = async (): Promise<void> => {
      try {
        for (let round = 1; round <= 50; round++) {
          const before = [...reads];
          await publish(sets[round % sets.length]);
          await chmod(at("bin/enter"), 0o500);
          // A replaced set lasts until the next is published: by then each reader is out of it.
          await vi.waitUntil(() => reads.every((count, reader) => count > (before[reader] ?? 0) + 1), { interval: 1 });
        }
      } finally {
        done = true;
      }
    };
    await Promise.all([replace(), read(0), read(1)]);
    expect([...seen].filter((hash) => !valid.has(hash))).toEqual([]);
    expect(seen.size).toBeGreaterThan(1);
  });

  describe("when the directory cannot be used", () => {
    const failure = async (directory: string): Promise<SharedDirError> => {
      const error = await publishShared({ sharedDir: directory, roles: small }).catch((thrown: unknown) => thrown);
      if (!(error instanceof SharedDirError)) throw new Error("no SharedDirError", { cause: error });
      return error;
    };

    it.each([
      ["missing", async () => at("absent"), "does not exist"],
      [
        "a file",
        async () => {
          await writeFile(at("file"), "", { mode: 0o777 });
          return at("file");
        },
        "not a directory",
      ],
      [
        "below a file",
        async () => {
          await writeFile(at("file"), "");
          return at("file", "below");
        },
        "not a directory",
      ],
    ])("names it, says that it is %s and what to do", async (_what, prepare, why) => {
      const directory = await prepare();
      const error = await failure(directory);
      expect(error.code).toBe("SHARED_DIR_UNUSABLE");
      expect(error.message).toContain(directory);
      expect(error.message).toContain(why);
      expect(error.remediate).toContain("ROBOCO_SHARED_DIR");
    });

    it("says that this user may not write there, and changes nothing", async () => {
      await chmod(sharedDir, 0o555);
      // The superuser may write everywhere: be somebody else for this.
      const isRoot = process.getuid?.() === 0;
      if (isRoot) process.seteuid?.(65534);
      try {
        expect((await failure(sharedDir)).message).toContain("this user may not write there");
      } finally {
        if (isRoot) process.seteuid?.(0);
      }
      expect(await readdir(sharedDir)).toEqual([]);
    });

    it("tells a read-only mount from a lack of permission", () => {
      const cause = Object.assign(new Error("EROFS: read-only file system, mkdir"), {
        code: "EROFS",
        syscall: "mkdir",
      });
      expect(new SharedDirError("/roboco", cause).message).toContain("mounted read-only");
    });
  });
});
