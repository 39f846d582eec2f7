/**
 * InitText: the commented agentd.jsonc that `agentd init` writes, for a program and some roles. Pure.
 *
 * Guarantees: each text is a valid config; examples for agents that are not installed are comments.
 */
import { basename } from "node:path"
import type { Found } from "./AgentPrograms.ts"
import type { Role } from "./InitChoices.ts"

export const TITLES: { readonly [role in Role]: string } = {
  builder: "builds and fixes",
  reviewer: "looks at what others have made, and changes nothing",
  planner: "makes plans of goals, and changes nothing"
}

const INSTRUCTIONS: { readonly [role in Role]: string } = {
  builder: "Run the tests before you say that you are done.",
  reviewer: "Say what is wrong, where, and how to mend it, the worst first. Say so when nothing is.",
  planner: "Small tasks, each with how to see that it is done. Read the project before you plan."
}

/** The backend of a program. `reads`: the agent must change nothing. */
export const backendOf = ({ id, key, program }: Pick<Found, "id" | "key" | "program">, reads: boolean): object => {
  switch (id) {
    case "claude":
      return { type: "claude" }
    case "codex":
      return program !== null && basename(program) === "codex-acp"
        ? { type: "acp", argv: ["codex-acp"] }
        : {
            type: "command",
            argv: ["codex", "exec", "--skip-git-repo-check", "--sandbox", reads ? "read-only" : "workspace-write", "-"]
          }
    case "opencode":
      return { type: "acp", argv: ["opencode", "acp"], ...(key === null ? {} : { passEnv: [key] }) }
    case "gemini":
      return { type: "acp", argv: ["gemini", "--experimental-acp"] }
    case "model":
      return key === "OPENAI_API_KEY"
        ? { type: "model", provider: "openai", model: "gpt-5.5" }
        : { type: "model", provider: "anthropic", model: "claude-sonnet-5-5" }
  }
}

/** JSON on one line with spaces, as a person would write it. */
const line = (value: unknown): string =>
  JSON.stringify(value, null, 1).replaceAll(/\n\s*/g, " ").replaceAll("[ ", "[").replaceAll(" ]", "]")

export interface Wanted {
  readonly found: Pick<Found, "id" | "key" | "program">
  readonly roles: ReadonlyArray<Role>
  /** Whether the folder is a git repository with a commit. */
  readonly isRepository: boolean
}

const builder = ({ found, isRepository }: Wanted): ReadonlyArray<string> => [
  `    // An agent's name; messages go to it with: agentd send builder "…"`,
  `    "builder": {`,
  `      "role": "${TITLES.builder}",`,
  `      // Goes into each of its prompts.`,
  `      "instructions": "${INSTRUCTIONS.builder}",`,
  ...(found.id === "claude"
    ? [
        `      // Claude Code, turn by turn: agentd attach builder. Others are below.`,
        `      // With "sandbox": "on" it is held in the project, and reaches its model alone: no other network, none of your`,
        `      // settings. Its key, or your login, goes through agentd (docs/security.md).`
      ]
    : []),
  `      "backend": ${line(backendOf(found, false))},`,
  ...approvals(
    found,
    `{ "mode": "auto" }`,
    `      // What has side effects asks you: agentd approve. Also: read_only, full_access.`
  ),
  `      // "inbox": it runs when there is a message. "loop" (with a "prompt"): again and again.`,
  `      "mode": "inbox",`,
  `      // A repository and branch of its own (agentd/NAME), so that agents do not step on each other.`,
  `      "worktree": ${isRepository},`,
  `      // After an error it waits 2 s, 4 s … up to 60 s; after so many it stops for good and mails.`,
  `      "maxConsecutiveErrors": 5,`,
  `      "maxTotalErrors": 20`,
  `    }`
]

/** Codex without ACP asks agentd for no approvals, so it gets no such setting. */
const approvals = (found: Wanted["found"], mode: string, ...comment: ReadonlyArray<string>): ReadonlyArray<string> =>
  "argv" in backendOf(found, false) && found.id === "codex" && !isAcp(found)
    ? []
    : [...comment, `      "approvals": ${mode},`]

const isAcp = (found: Wanted["found"]): boolean => JSON.stringify(backendOf(found, false)).includes('"acp"')

const reader = (role: Exclude<Role, "builder">, { found }: Wanted): ReadonlyArray<string> => [
  `    "${role}": {`,
  `      "role": "${TITLES[role]}",`,
  `      "instructions": "${INSTRUCTIONS[role]}",`,
  ...approvals(found, `{ "mode": "read_only" }`),
  `      "backend": ${line(backendOf(found, true))}`,
  `    }`
]

const EXAMPLES = `
    // Any program: the prompt comes on its standard input, its exit code is the outcome.
    // ,"reporter": { "backend": { "type": "command", "argv": ["./report.sh"], "sandbox": "on" } }

    // A model behind an API: agentd runs its turns and its tools, the shell in a sandbox.
    // The key is in ANTHROPIC_API_KEY where the daemon is started, or in "keyFile".
    // ,"critic": {
    //   "backend": { "type": "model", "provider": "anthropic", "model": "claude-sonnet-5-5" },
    //   "approvals": { "mode": "read_only" },
    //   "budget": { "tokens": 2000000 }
    // }

    // Any agent that speaks the Agent Client Protocol. In its sandbox it sees its login and nothing else of your home.
    // ,"opencode": {
    //   "backend": {
    //     "type": "acp",
    //     "argv": ["opencode", "acp"],
    //     "sandbox": "on",
    //     "network": true,
    //     "share": [".local/share/opencode/auth.json"]
    //   }
    // }`

/** Planner, workers and critic from the chosen roles; with fewer than two roles, an example in a comment. */
const goals = (roles: ReadonlyArray<Role>): ReadonlyArray<string> => {
  const named = {
    ...(roles.includes("planner") ? { planner: "planner" } : {}),
    ...(roles.includes("reviewer") ? { critic: "reviewer" } : {}),
    ...(roles.includes("builder") ? { workers: ["builder"] } : {})
  }
  return roles.length < 2
    ? [
        `  // Who makes the plan of a goal, and who looks at the result: agentd goal "…"`,
        `  // ,"goals": { "planner": "builder", "critic": "critic", "checks": ["npm test"] }`
      ]
    : [
        `  // Who plans a goal, works it off and looks at the result: agentd goal "…"`,
        `  // With "checks": ["npm test"] that has to succeed, too.`,
        `  "goals": ${line(named)}`
      ]
}

const REST = `  // A room in which agents and you take turns: agentd channel join review
  // ,"channels": { "review": { "agents": ["builder", "critic"], "topic": "what is built" } }

EXAMPLE  // Who is told when an agent has stopped for good. Try it: agentd alert test
  // ,"mail": {
  //   "to": "ada@example.org",
  //   "smtp": {
  //     "host": "smtp.example.org",
  //     "security": "starttls",
  //     "user": "ada",
  //     "passwordFile": "/home/ada/.config/agentd/smtp-password"
  //   }
  // }
}
`

export const textOf = (wanted: Wanted): string => {
  const { roles } = wanted
  const blocks = roles.map((role) => (role === "builder" ? builder(wanted) : reader(role, wanted)))
  const [own, example] = roles.length < 2 ? [[], [...goals(roles), "", ""]] : [[...goals(roles), ""], []]
  return [
    "// What agentd keeps running in this project.",
    "// Every field, its default and its meaning: agentd schema",
    "{",
    `  "agents": {`,
    blocks.map((lines) => lines.join("\n")).join(",\n"),
    EXAMPLES,
    own.length === 0 ? "  }" : "  },",
    "",
    ...own,
    REST.replace("EXAMPLE", example.join("\n"))
  ].join("\n")
}
