/**
 * Approval: decides whether a tool call waits for a person. Pure.
 *
 * A tool's entry in `always` or `never` wins over the agent's mode; `always` wins if both name it. A tool that is not
 * known to be free of side effects counts as having some. A name alone does not make a call one of agentd's own.
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
  /** True for a tool of agentd itself: the agent's `may` limits its use. */
  readonly voice?: boolean
  /** True if no sandbox confines the call. */
  readonly asksAlways?: boolean
  /** True if the call asks a person a question: an approval does not answer it. */
  readonly asksToChoose?: boolean
}

/** The approval mode given to the agent's CLI. Tools in `always` must ask in every mode. */
export const toldMode = ({ always, mode }: ApprovalPolicy): ApprovalPolicy["mode"] =>
  mode === "full_access" && always.length > 0 ? "auto" : mode

/**
 * Matches a pattern such as `mcp__shop__*`, in which a star stands for any text. Linear time, since no pattern is
 * compiled to a regular expression.
 */
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

/** Equal for equal calls in the same folder: a late answer to one call then holds for the next. */
export const keyOf = (tool: string, input: unknown, folder?: string): string =>
  createHash("sha256")
    .update(JSON.stringify([tool, input ?? null, ...(folder === undefined ? [] : [folder])]))
    .digest("hex")
