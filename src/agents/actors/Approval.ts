/**
 * Approval: whether a tool call waits for a person. Pure.
 *
 * A tool's own `always` or `never` wins over the agent's mode; `always` wins where
 * both name it. What nobody knows to be free of side effects has some; a name alone makes
 * no call agentd's own.
 */
import { createHash } from "node:crypto"
import type { ApprovalPolicy } from "../../config/AgentConfig.ts"

export type Verdict =
  | { readonly _tag: "Ask"; readonly reason: string }
  | { readonly _tag: "Run"; readonly reason: string }
  | { readonly _tag: "Deny"; readonly reason: string }

export interface Call {
  readonly tool: string
  readonly readOnly: boolean
  /** True for a tool of agentd's own voice: the agent's `may` says what it may do. */
  readonly voice?: boolean
  /** Nothing holds it: there is no sandbox. */
  readonly asksAlways?: boolean
  /** True where the call puts a question to a person: leave is no answer to it. */
  readonly asksToChoose?: boolean
}

/** The mode that an agent is told, by which it asks: tools that always ask are asked for in each. */
export const toldMode = ({ always, mode }: ApprovalPolicy): ApprovalPolicy["mode"] =>
  mode === "full_access" && always.length > 0 ? "auto" : mode

/** `mcp__shop__*`: a star stands for any text. Linear: no pattern of a config is a regular expression. */
const matches = (pattern: string, name: string): boolean => {
  const [head = "", ...parts] = pattern.split("*")
  if (parts.length === 0) return head === name
  const last = parts.pop()!
  if (!name.startsWith(head) || name.length < head.length + last.length || !name.endsWith(last)) return false
  let at = head.length
  for (const part of parts) {
    const found = name.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return at <= name.length - last.length
}

const names = (patterns: ReadonlyArray<string>, tool: string): boolean =>
  patterns.some((pattern) => matches(pattern, tool))

export const decide = (policy: ApprovalPolicy, { asksAlways, asksToChoose, readOnly, tool, voice }: Call): Verdict => {
  if (asksAlways === true) return { _tag: "Ask", reason: `nothing holds ${tool} in its workspace` }
  if (names(policy.always, tool)) return { _tag: "Ask", reason: `approvals.always names ${tool}` }
  if (names(policy.never, tool)) return { _tag: "Run", reason: `approvals.never names ${tool}` }
  if (asksToChoose === true) return { _tag: "Ask", reason: "it has a question" }
  if (voice === true) return { _tag: "Run", reason: "it is agentd's own, and the agent may" }
  if (policy.mode === "full_access") return { _tag: "Run", reason: "the agent has full access" }
  if (readOnly) return { _tag: "Run", reason: `${tool} has no side effects` }
  return policy.mode === "auto"
    ? { _tag: "Ask", reason: `${tool} may have side effects` }
    : { _tag: "Deny", reason: `${tool} may have side effects, and the agent may only read (approvals.mode read_only)` }
}

/** The same for calls that are the same, in the same folder: an answer that came too late for one holds for the next. */
export const keyOf = (tool: string, input: unknown, folder?: string): string =>
  createHash("sha256")
    .update(JSON.stringify([tool, input ?? null, ...(folder === undefined ? [] : [folder])]))
    .digest("hex")
