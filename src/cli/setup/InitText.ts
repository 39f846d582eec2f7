/**
 * InitText: generates the agentd.jsonc with comments that `agentd init` writes, for an agent program and the selected
 * roles. Pure.
 *
 * Guarantees: each generated text is a valid config. Examples for agents that are not installed are put into comments.
 */
import { basename } from "node:path"
import type { Found } from "./AgentPrograms.ts"
import type { Role } from "./InitChoices.ts"
import type { Proposal } from "./InitTree.ts"

export const TITLES: { readonly [role in Role]: string } = {
  builder: "builds and fixes",
  reviewer: "reviews the work of others, and changes nothing",
  planner: "makes plans for goals, and changes nothing"
}

const INSTRUCTIONS: { readonly [role in Role]: string } = {
  builder: "Run the tests before you say that you are done.",
  reviewer: "Say what is wrong, where, and how to fix it, the worst problem first. If nothing is wrong, say so.",
  planner: "Make small tasks, each with a way to check that it is done. Read the project before you plan."
}

/** The backend's config. */
export const backendOf = ({ id, key, program }: Pick<Found, "id" | "key" | "program">): object => {
  switch (id) {
    case "claude":
      return { type: "claude" }
    case "codex":
      return program !== null && basename(program) === "codex-acp"
        ? { type: "acp", argv: ["codex-acp"] }
        : { type: "codex" }
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

/** JSON on one line, with spaces in the style of hand-written JSON. */
const line = (value: unknown): string =>
  JSON.stringify(value, null, 1).replaceAll(/\n\s*/g, " ").replaceAll("[ ", "[").replaceAll(" ]", "]")

export interface Wanted {
  readonly found: Pick<Found, "id" | "key" | "program">
  readonly roles: ReadonlyArray<Role>
  /** True if the folder is a git repository with a commit. */
  readonly isRepository: boolean
  /** True if the builder is confined, and what stays in its sandbox runs unasked. */
  readonly inside?: boolean
  /** Settings of the builder's work tree. */
  readonly tree?: Proposal
}

/** True if the agent works in a sandbox without further settings, so that it can run there unasked. */
export const isConfinable = ({ id }: Pick<Found, "id">): boolean => id === "claude" || id === "model"

const approvals = (inside: boolean): ReadonlyArray<string> =>
  inside
    ? [
        `      // What stays in the agent's sandbox runs without your approval: it can change the project's files, and reaches`,
        `      // only its model. All other calls wait for you: agentd approve. Rules that deny or ask hold for all calls.`,
        `      "approvals": { "mode": "auto", "inside": "run" },`
      ]
    : [
        `      // Calls with side effects wait for your approval: agentd approve. Other modes: read_only, full_access.`,
        `      // With "inside": "run" and "sandbox": "required" in the backend, what stays in its sandbox runs unasked.`,
        `      "approvals": { "mode": "auto" },`
      ]

const worktree = (isRepository: boolean, tree: Proposal): ReadonlyArray<string> =>
  isRepository && Object.keys(tree).length > 0
    ? [
        `      // It holds the files in git, and: copies ("copy") and read-only views ("link") of other files of yours, what`,
        `      // "setup" makes, and "ports": PORT_0, PORT_1 and so on. The agent can read what is copied.`,
        `      "worktree": ${line(tree)},`
      ]
    : [`      "worktree": ${isRepository},`]

const builder = ({ found, inside = false, isRepository, tree = {} }: Wanted): ReadonlyArray<string> => [
  `    // The name of an agent. To send it a message: agentd send builder "…"`,
  `    "builder": {`,
  `      "role": "${TITLES.builder}",`,
  `      // Added to each prompt of the agent.`,
  `      "instructions": "${INSTRUCTIONS.builder}",`,
  ...(found.id === "claude"
    ? [
        `      // Claude Code, turn by turn: agentd attach builder. Other backends are below.`,
        `      // With "sandbox": "on" it can access only the project and its model: no other network, none of your settings.`,
        `      // agentd adds its key, or your login, to its requests (docs/security.md).`
      ]
    : []),
  `      "backend": ${line({ ...backendOf(found), ...(inside ? { sandbox: "required" } : {}) })},`,
  ...approvals(inside),
  `      // "inbox": it runs when it has a message. "loop" (with a "prompt"): it runs again and again.`,
  `      "mode": "inbox",`,
  `      // Its own repository and branch (agentd/NAME), so that agents do not change the same files.`,
  ...worktree(isRepository, tree),
  `      // After an error it waits 2 s, 4 s … up to 60 s. After this many errors it stops permanently, and a mail is sent.`,
  `      "maxConsecutiveErrors": 5,`,
  `      "maxTotalErrors": 20`,
  `    }`
]

const reader = (role: Exclude<Role, "builder">, { found }: Wanted): ReadonlyArray<string> => [
  `    "${role}": {`,
  `      "role": "${TITLES[role]}",`,
  `      "instructions": "${INSTRUCTIONS[role]}",`,
  `      "approvals": { "mode": "read_only" },`,
  `      "backend": ${line(backendOf(found))}`,
  `    }`
]

const EXAMPLES = `
    // Any program: it reads the prompt from standard input, and its exit code is the outcome.
    // ,"reporter": { "backend": { "type": "command", "argv": ["./report.sh"], "sandbox": "on" } }

    // A model behind an API: agentd runs its turns and tools, with the shell in a sandbox.
    // The key is in ANTHROPIC_API_KEY of the daemon's environment, or in "keyFile".
    // ,"critic": {
    //   "backend": { "type": "model", "provider": "anthropic", "model": "claude-sonnet-5-5" },
    //   "approvals": { "mode": "read_only" },
    //   "budget": { "tokens": 2000000 }
    // }

    // Any agent with the Agent Client Protocol. In its sandbox it can read its login, but nothing else in your home.
    // ,"opencode": {
    //   "backend": {
    //     "type": "acp",
    //     "argv": ["opencode", "acp"],
    //     "sandbox": "on",
    //     "network": true,
    //     "share": [".local/share/opencode/auth.json"]
    //   }
    // }`

/**
 * The lines with the goals section, in which planner, workers and critic are the selected roles. With fewer than two
 * roles, the section is only an example in a comment.
 */
const goals = (roles: ReadonlyArray<Role>): ReadonlyArray<string> => {
  const named = {
    ...(roles.includes("planner") ? { planner: "planner" } : {}),
    ...(roles.includes("reviewer") ? { critic: "reviewer" } : {}),
    ...(roles.includes("builder") ? { workers: ["builder"] } : {})
  }
  return roles.length < 2
    ? [
        `  // Which agent plans a goal, and which one reviews the result: agentd goal "…"`,
        `  // ,"goals": { "planner": "builder", "critic": "critic", "checks": ["npm test"] }`
      ]
    : [
        `  // Which agents plan a goal, do its tasks and review the result: agentd goal "…"`,
        `  // With "checks": ["npm test"], this command must succeed, too.`,
        `  "goals": ${line(named)}`
      ]
}

const REST = `  // A channel in which agents and you take turns: agentd channel join review
  // ,"channels": { "review": { "agents": ["builder", "critic"], "topic": "what is built" } }

EXAMPLE  // Who gets a mail when an agent has stopped permanently. To test it: agentd alert test
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
    "// The agents that agentd keeps running in this project.",
    "// All fields with their defaults and meanings: agentd schema",
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
