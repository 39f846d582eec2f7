/**
 * Unseen: the calls of an agent that no rule sees, because its program makes them without asking. Pure.
 *
 * While a rule denies or asks, a program is started so that it asks about every call, if it has such a mode and the
 * config names no other (`RunSpec.asksAll`). What it does unasked all the same is named here, as it was measured on the
 * programs; docs/approvals.md has the table with their versions.
 */
import { restricts, type Rule } from "../../approvals/Rule.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type * as Config from "../../config/BackendConfig.ts"
import { type AcpProgram, PERMISSION, programOf } from "../../runs/AcpProgram.ts"

const LOOKS = "its tools that read and search files"

const OF_PROGRAM: { readonly [program in AcpProgram]: string } = {
  claude: `${LOOKS}, commands that it takes for reading (ls, cat, git status), and what the settings of Claude Code allow`,
  codex: "commands that its sandbox lets only read, and what the rules of Codex allow",
  copilot: `${LOOKS}, also outside the work tree, and its sub-agents`,
  gemini: `${LOOKS}, commands that it takes for reading (ls, echo, find, git status), and what its settings allow`,
  opencode: 'what its config allows for one of its agents ("agent") or for a tool by name',
  qwen: `${LOOKS}, commands that it takes for reading (ls, cat, grep, find, sort, git status), also outside the work tree, and what its settings allow`
}

const ofClaude = ({ args, permissionMode }: Config.ClaudeBackend): ReadonlyArray<string> => {
  if (permissionMode === "bypassPermissions")
    return ["any call of Claude Code: its permissionMode is bypassPermissions"]
  const named = permissionMode !== "default" ? `its permissionMode is ${permissionMode}` : undefined
  const settings = args.some((word) => /^--settings(?:=|$)/.test(word)) ? "its args have --settings" : undefined
  const why = named ?? settings
  return [
    ...(why === undefined
      ? []
      : [
          `${OF_PROGRAM.claude}${permissionMode === "acceptEdits" ? ", and edits of files" : ""}, for Claude Code asks only about other calls: ${why}`
        ]),
    "a call that a PermissionRequest hook in the settings of Claude Code allows before agentd answers"
  ]
}

const ofCodex = ({ approvalPolicy = "untrusted", sandboxMode }: Config.CodexBackend): ReadonlyArray<string> => {
  const held = `what Codex's sandbox permits${sandboxMode === undefined ? "" : ` (${sandboxMode})`}`
  return [
    ...(approvalPolicy === "untrusted" ? [] : [`${held}, without a question: its approvalPolicy is ${approvalPolicy}`]),
    "commands that the rules of Codex allow (rules/*.rules in its home and in .codex of the project)",
    "tools of Codex that need no approval: MCP tools that say that they only read, sub-agents, input to a running command"
  ]
}

const ofAcp = ({ argv, env, mode }: Config.AcpBackend): ReadonlyArray<string> => {
  const program = programOf(argv)
  const own =
    PERMISSION in env && program === "opencode" ? `what its config allows: its env sets ${PERMISSION}` : undefined
  const known =
    program === undefined ? "calls about which it does not ask; agentd does not know which" : OF_PROGRAM[program]
  return [
    own ?? known,
    ...(mode === undefined ? [] : [`what it does without a question in the mode "${mode}", which its config names`])
  ]
}

const ofBackend = (backend: Config.BackendConfig): ReadonlyArray<string> => {
  switch (backend.type) {
    case "claude":
      return ofClaude(backend)
    case "codex":
      return ofCodex(backend)
    case "acp":
      return ofAcp(backend)
    case "command":
    case "exec":
      return ["any call: its program tells agentd none"]
    case "model":
      return []
  }
}

/**
 * Sentences about the calls that no rule sees, of the agent's backend and of its fallbacks, each once. Empty if none of
 * the rules denies or asks.
 */
export const unseenBy = (
  { backend, fallback }: Pick<AgentConfig, "backend" | "fallback">,
  rules: ReadonlyArray<Rule>
): ReadonlyArray<string> =>
  restricts(rules)
    ? [...new Set([backend, ...fallback].flatMap(ofBackend))].map((calls) => `No rule sees ${calls}.`)
    : []
