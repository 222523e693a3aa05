import type { RoleConfiguration } from "./role-schema.ts";

const inbox = ["notify_list", "notify_get", "notify_ack", "read_messages", "read_a2a"] as const;
const readOnly = { git: ["status", "log", "diff"], kb: ["search", "query", "stats"] } as const;

/** The roles that are served when no roles file is given. Who can do what is decided here and nowhere else. */
export const builtInRoles: RoleConfiguration = {
  developer: {
    description: "Writes the code of one task on its own branch, opens the pull request and hands it to QA.",
    // Nothing that merges or completes: the author of a change never accepts it.
    flow: [
      "give_me_work",
      "i_will_work_on",
      "open_pr",
      "i_am_done",
      "i_am_blocked",
      "unclaim",
      "resume",
      "sync_branch",
      "i_am_idle",
    ],
    do: ["commit", "note", "dm", "evidence", "progress", "pr_update", ...inbox],
    ...readOnly,
    files: { write: true },
  },
  qa: {
    description: "Verifies a finished task against its acceptance criteria and passes or fails it.",
    flow: [
      "give_me_work",
      "claim_review",
      "pass_review",
      "fail_review",
      "i_am_blocked",
      "unclaim",
      "resume",
      "i_am_idle",
    ],
    // No commit: who verifies a change must not be able to make it.
    do: ["note", "dm", "evidence", ...inbox],
    ...readOnly,
    files: { write: false },
  },
  documenter: {
    description: "Documents a change that passed QA, on the branch of that change.",
    flow: ["give_me_work", "claim_doc_task", "i_documented", "i_am_blocked", "unclaim", "resume", "i_am_idle"],
    do: ["commit", "note", "dm", "evidence", "progress", "pr_update", ...inbox],
    ...readOnly,
    files: { write: true },
  },
  cell_pm: {
    description: "Plans the work of one cell, delegates it to developers and accepts what comes back reviewed.",
    flow: [
      "give_me_work",
      "i_will_plan",
      "delegate",
      "reassign",
      "declare_coverage",
      "submit_up",
      "complete",
      "request_changes",
      "escalate_up",
      "triage",
      "unblock",
      "unclaim",
      "resume",
      "i_am_idle",
    ],
    do: ["note", "dm", "notify", "evidence", "pr_update", ...inbox],
    ...readOnly,
    files: { write: false },
  },
  main_pm: {
    description: "Plans across all cells, delegates to their PMs and hands finished work to the human for acceptance.",
    flow: [
      "give_me_work",
      "i_will_plan",
      "delegate",
      "declare_coverage",
      "submit_root",
      "complete",
      "request_changes",
      "escalate_up",
      "escalate_to_ceo",
      "triage",
      "triage_all",
      "unblock",
      "unclaim",
      "resume",
      "i_am_idle",
    ],
    do: ["note", "dm", "notify", "evidence", "pr_update", ...inbox],
    ...readOnly,
    files: { write: false },
  },
  pr_reviewer: {
    description: "Reviews an assembled pull request, passes or fails it and posts the review on it.",
    flow: [
      "give_me_work",
      "claim_gate_review",
      "pr_pass",
      "pr_fail",
      "claim_pr_review",
      "post_pr_review",
      "unclaim",
      "i_am_idle",
    ],
    // No chat, not even to read: a verdict is about the change, not about what its author says of it.
    do: ["note", "evidence", "notify_list", "notify_get"],
    ...readOnly,
    files: { write: false },
  },
  auditor: {
    description: "Observes the work and leaves private notes; never takes part in it.",
    // No waive_finding: waiving takes part.
    flow: ["triage", "i_am_idle"],
    do: ["note", "evidence"],
    ...readOnly,
    files: { write: false },
  },
};
