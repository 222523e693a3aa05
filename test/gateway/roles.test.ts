import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtInRoles } from "../../src/gateway/built-in-roles.ts";
import { roleConfigurationSchema } from "../../src/gateway/role-schema.ts";
import { loadRoles, RolesFileError } from "../../src/gateway/roles.ts";
import { toolsByServer } from "../../src/gateway/verbs.ts";

const role = (name: string) => {
  const definition = builtInRoles[name];
  if (!definition) throw new Error(`no role ${name}`);
  return definition;
};
const allTools = (name: string): string[] => [
  ...role(name).flow,
  ...role(name).do,
  ...role(name).git,
  ...role(name).kb,
];

describe("the built-in roles", () => {
  it("are the seven of the seed", () => {
    expect(Object.keys(builtInRoles).sort()).toEqual(
      ["auditor", "cell_pm", "developer", "documenter", "main_pm", "pr_reviewer", "qa"].sort(),
    );
  });

  it("keep the rules that a roles file must keep", () => {
    expect(roleConfigurationSchema.parse(builtInRoles)).toEqual(builtInRoles);
  });

  it.each<[string, readonly string[]]>([
    ["developer", ["give_me_work", "i_will_work_on", "open_pr", "i_am_done", "commit"]],
    ["qa", ["claim_review", "pass_review", "fail_review", "note", "evidence"]],
    ["documenter", ["claim_doc_task", "i_documented", "commit"]],
    ["cell_pm", ["delegate", "submit_up", "complete", "notify"]],
    ["main_pm", ["delegate", "submit_root", "complete", "escalate_to_ceo", "notify"]],
    ["pr_reviewer", ["claim_gate_review", "pr_pass", "pr_fail", "post_pr_review", "note"]],
    ["auditor", ["triage", "note", "evidence"]],
  ])("let a %s do its job: %j", (name, tools) => {
    expect(allTools(name)).toEqual(expect.arrayContaining([...tools]));
  });

  it.each<[string, string, RegExp]>([
    ["developer", "merge or accept anything", /merge|^complete$|^submit_|^pass_review$|^pr_pass$/],
    ["qa", "commit", /^commit$/],
    ["qa", "merge or complete", /merge|^complete$|^submit_/],
    ["documenter", "merge or complete", /merge|^complete$|^submit_/],
    ["cell_pm", "commit or submit the root", /^commit$|^submit_root$/],
    ["main_pm", "commit", /^commit$/],
    ["pr_reviewer", "chat with agents", /^say$|^dm$|^notify$|^read_messages$|^read_a2a$/],
    ["pr_reviewer", "commit or complete", /^commit$|^complete$/],
    ["auditor", "chat or take part", /^say$|^dm$|notify|^read_|^waive_|^claim_|^pr_/],
  ])("give a %s no way to %s", (name, _what, forbidden) => {
    expect(allTools(name).filter((tool) => forbidden.test(tool))).toEqual([]);
  });

  it("leave the auditor note and evidence as its only content tools", () => {
    expect(role("auditor").do).toEqual(["note", "evidence"]);
  });

  it("let QA and reviews be decided by one role each", () => {
    const holders = (tool: string) => Object.keys(builtInRoles).filter((name) => allTools(name).includes(tool));
    expect(["pass_review", "fail_review", "pr_pass", "pr_fail", "i_documented", "i_am_done"].map(holders)).toEqual([
      ["qa"],
      ["qa"],
      ["pr_reviewer"],
      ["pr_reviewer"],
      ["documenter"],
      ["developer"],
    ]);
  });

  it("let only developer and documenter write files and commit", () => {
    const names = Object.keys(builtInRoles);
    expect(names.filter((name) => role(name).files.write)).toEqual(["developer", "documenter"]);
    expect(names.filter((name) => allTools(name).includes("commit"))).toEqual(["developer", "documenter"]);
  });

  it.each(Object.keys(builtInRoles))("give a %s the read-only git and knowledge base tools", (name) => {
    expect(role(name).git).toEqual(["status", "log", "diff"]);
    expect(role(name).kb).toEqual(["search", "query", "stats"]);
  });
});

describe("the known tools", () => {
  it("are in snake_case, each once per server, none of them a merge", () => {
    for (const tools of Object.values<readonly string[]>(toolsByServer)) {
      expect(tools.filter((tool) => !/^[a-z0-9]+(_[a-z0-9]+)*$/.test(tool) || tool.includes("merge"))).toEqual([]);
      expect(new Set(tools).size).toBe(tools.length);
    }
  });
});

describe("loadRoles", () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "roles-"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const load = async (text: string) => {
    const file = join(directory, "roles.yaml");
    await writeFile(file, text);
    return loadRoles(file);
  };
  const problemsOf = async (text: string): Promise<readonly string[]> => {
    const error = await load(text).catch((thrown: unknown) => thrown);
    if (!(error instanceof RolesFileError)) throw new Error("was accepted", { cause: error });
    return error.problems;
  };
  const scout = {
    description: "Looks.",
    flow: ["triage"],
    do: ["note"],
    git: ["log"],
    kb: [],
    files: { write: false },
  };

  it("gives the built-in roles when no file is named", async () => {
    expect(await loadRoles(undefined)).toBe(builtInRoles);
  });

  it("replaces the built-in roles as a whole by those of a YAML file", async () => {
    const yaml =
      "scout:\n  description: Looks.\n  flow: [triage]\n  do:\n    - note\n  git: [log]\n  kb: []\n  files: { write: false }\n";
    expect(await load(yaml)).toEqual({ scout });
  });

  it("reads JSON too", async () => {
    expect(await load(JSON.stringify({ scout }, null, 2))).toEqual({ scout });
  });

  it("tells every problem of every role at once, each with its path, and the remedy", async () => {
    const { kb: _kb, ...withoutKb } = scout;
    const error = await load(
      JSON.stringify({
        "Bad-Name": { ...scout, flow: ["triag"] },
        developer: { ...withoutKb, do: ["comit", "note", "note", 7], flw: [], files: { write: "yes", read: true } },
        qa: "everything",
      }),
    ).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RolesFileError);
    const { code, problems, message, remediate } = error as RolesFileError;
    expect(code).toBe("ROLES_FILE_INVALID");
    expect([...problems].sort()).toEqual([
      'Bad-Name.flow[0]: unknown flow tool "triag" (did you mean "triage"?)',
      "developer.do: named more than once: note",
      'developer.do[0]: unknown do tool "comit" (did you mean "commit"?)',
      "developer.do[3]: expected the name of a do tool, found 7",
      "developer.files.read: unknown key",
      "developer.files.write: Invalid input: expected boolean, received string",
      'developer.flw: unknown key (did you mean "flow"?)',
      "developer.kb: Invalid input: expected array, received undefined",
      "qa: Invalid input: expected object, received string",
      'role names must match ^[a-z][a-z0-9_]{0,31}$: "Bad-Name"',
    ]);
    for (const problem of problems) expect(message).toContain(problem);
    expect(message).toContain(join(directory, "roles.yaml"));
    expect(remediate).toContain("ROBOCO_ROLES_FILE");
  });

  it("refuses a tool of one server under another", async () => {
    expect(await problemsOf(JSON.stringify({ scout: { ...scout, git: ["commit"] } }))).toEqual([
      'scout.git[0]: unknown git tool "commit", known are: status, log, diff',
    ]);
  });

  it.each([
    ["a", true],
    ["a".repeat(32), true],
    ["a".repeat(33), false],
    ["1st", false],
    ["_a", false],
    ["../x", false],
    ["", false],
  ])("for the role name %j says: valid is %j", async (name, valid) => {
    const outcome = await load(JSON.stringify({ [name]: scout })).then(
      () => true,
      () => false,
    );
    expect(outcome).toBe(valid);
  });

  it.each([
    ["is empty", "", /expected record, received null/],
    ["is a list", "- a", /expected record, received array/],
    ["names no role", "{}", /^names no role$/],
    ["is neither YAML nor JSON", "a: [1\nb: 2\n", /line 2, column 1$/],
    ["has a role twice", "a: 1\na: 2\n", /keys must be unique/],
    ["uses an anchor that is not there", "a: *gone\n", /gone/],
  ])("refuses a file that %s", async (_what, text, problem) => {
    expect(await problemsOf(text)).toContainEqual(expect.stringMatching(problem));
  });

  it("says which file it cannot read", async () => {
    const file = join(directory, "absent.yaml");
    await expect(loadRoles(file)).rejects.toThrow(
      expect.objectContaining({ code: "ROLES_FILE_INVALID", message: expect.stringContaining(file) }),
    );
  });
});
