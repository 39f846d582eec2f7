/**
 * Approval: decides whether a tool call waits for the user's approval. Pure.
 *
 * `always` and `never` override the agent's mode, and `always` overrides `never`. A tool has side effects unless it is
 * known to have none. A tool name alone does not prove that the tool is agentd's own.
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
  /** True for a tool of agentd itself. The agent's setting `may` limits the use of these tools. */
  readonly voice?: boolean
  /** True if no sandbox confines the call. */
  readonly asksAlways?: boolean
  /** True if the call asks the user a question, which needs an answer, not only an approval. */
  readonly asksToChoose?: boolean
}

/** The approval mode for the agent's CLI. In every mode, the CLI must ask before it uses a tool in `always`. */
export const toldMode = ({ always, mode }: ApprovalPolicy): ApprovalPolicy["mode"] =>
  mode === "full_access" && always.length > 0 ? "auto" : mode

/**
 * Matches a pattern such as `mcp__shop__*`, in which `*` matches any text. Takes linear time, because it uses no
 * regular expression.
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
  if (asksAlways === true) return { _tag: "Ask", reason: `no sandbox confines ${tool} to its workspace` }
  if (names(policy.always, tool)) return { _tag: "Ask", reason: `approvals.always names ${tool}` }
  if (names(policy.never, tool)) return { _tag: "Run", reason: `approvals.never names ${tool}` }
  if (asksToChoose === true) return { _tag: "Ask", reason: "the call asks a question" }
  if (voice === true) return { _tag: "Run", reason: "it is a tool of agentd, and the agent may use it" }
  if (policy.mode === "full_access") return { _tag: "Run", reason: "the agent has full access" }
  if (readOnly) return { _tag: "Run", reason: `${tool} has no side effects` }
  return policy.mode === "auto"
    ? { _tag: "Ask", reason: `${tool} may have side effects` }
    : { _tag: "Deny", reason: `${tool} may have side effects, and the agent may only read (approvals.mode read_only)` }
}

/** Hash of a call. Equal calls in the same folder have equal hashes, so a late answer applies to the repeated call. */
export const keyOf = (tool: string, input: unknown, folder?: string): string =>
  createHash("sha256")
    .update(JSON.stringify([tool, input ?? null, ...(folder === undefined ? [] : [folder])]))
    .digest("hex")
