/**
 * Approval: decides whether a tool call runs, waits for the user, or is denied. The one place for all backends. Pure.
 *
 * Rules, the mode and the effects of the call decide (see Decision). Besides, a call that no sandbox confines and a call
 * that asks the user a question wait for the user, and a tool of agentd itself needs no leave. A tool has side effects
 * unless it is known to have none. A tool name alone does not prove that the tool is agentd's own.
 */
import { createHash } from "node:crypto"
import { resolve } from "node:path"
import { restricts, type Rule } from "../../approvals/Rule.ts"
import * as Rules from "../../approvals/Decision.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import { programOf } from "../../runs/AcpProgram.ts"
import { isBare } from "../../runs/GitFolders.ts"
import { type ReportedCall, subjectOf } from "../run/CallSubject.ts"

export interface Call extends ReportedCall {
  /** Absolute path of the agent's work tree. */
  readonly folder: string
  /** True for a tool of agentd itself. The agent's setting `may` limits the use of these tools. */
  readonly voice?: boolean
  /** True if no sandbox confines the call. */
  readonly asksAlways?: boolean
  /** True if the call asks the user a question, which needs an answer, not only an approval. */
  readonly asksToChoose?: boolean
}

/** The approval mode for the agent's CLI. In every mode, the CLI must ask about calls that a rule denies or asks about. */
export const toldMode = (mode: AgentConfig["approvals"]["mode"], rules: ReadonlyArray<Rule>): typeof mode =>
  mode === "full_access" && restricts(rules) ? "auto" : mode

/** True if a sandbox without a network holds every run of each backend: without the sandbox, there is no run. */
export const isConfined = ({ backend, fallback }: Pick<AgentConfig, "backend" | "fallback">): boolean =>
  [backend, ...fallback].every((one) => "network" in one && one.sandbox === "required" && !one.network)

/** ACP agents that start a shell of its own for each call. */
const FRESH: ReadonlySet<string | undefined> = new Set(["codex", "gemini", "opencode", "qwen"])

/** Facts of a run from its start to its end, whatever the config says later. */
export interface RunFacts {
  /** True if a sandbox without a network holds the run. */
  readonly confined: boolean
  /** True if the run's program may keep the folder of its shell between calls, as Claude Code and Copilot do. */
  readonly keepsFolder: boolean
}

/** The facts of a run of which none was recorded, as by an earlier version of agentd. */
export const UNKNOWN_FACTS: RunFacts = { confined: false, keepsFolder: true }

/** The facts of a run that starts now. */
export const factsOf = (config: Pick<AgentConfig, "backend" | "fallback">): RunFacts => ({
  confined: isConfined(config),
  keepsFolder: [config.backend, ...config.fallback].some(
    (one) => one.type === "claude" || (one.type === "acp" && !FRESH.has(programOf(one.argv)))
  )
})

export const decide = (
  config: Pick<AgentConfig, "approvals" | "backend">,
  rules: ReadonlyArray<Rule>,
  call: Call,
  { confined, keepsFolder } = UNKNOWN_FACTS
): Rules.Decision => {
  const { asksAlways, asksToChoose, folder, tool, voice } = call
  const { inside, mode } = config.approvals
  const setting = {
    mode,
    rules,
    inside,
    confined,
    root: folder,
    isBare: (path: string) => isBare(folder, path)
  }
  const start = "cwd" in config.backend ? resolve(folder, config.backend.cwd ?? ".") : folder
  const { stood, ...fresh } = call
  const reported = keepsFolder && stood !== undefined ? { ...fresh, stood } : fresh
  const decision = Rules.decide(subjectOf(reported, folder, start), setting)
  const { rule, verdict } = decision
  const ask = (reason: string): Rules.Decision => ({ verdict: "ask", reason, parts: decision.parts, offers: [] })
  if (verdict === "deny" && (rule !== undefined || mode !== "read_only")) return decision
  if (asksAlways === true) return ask(`no sandbox confines ${tool} to its workspace`)
  if (rule !== undefined && (verdict === "ask" || "tool" in rule.subject)) return decision
  if (asksToChoose === true) return ask("the call asks a question")
  if (voice === true) return { ...decision, verdict: "run", reason: "it is a tool of agentd, and the agent may use it" }
  return decision
}

/** Hash of a call. Equal calls in the same folder have equal hashes, so a late answer applies to the repeated call. */
export const keyOf = (tool: string, input: unknown, folder?: string): string =>
  createHash("sha256")
    .update(JSON.stringify([tool, input ?? null, ...(folder === undefined ? [] : [folder])]))
    .digest("hex")
