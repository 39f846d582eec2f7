/**
 * ClaudeFault: determines how a turn of Claude Code ended, and classifies failures of a turn or of the program. Pure.
 *
 * Guarantees: `subtype: "success"` and exit code 0 count as success only if nothing contradicts them. Every fault has a
 * class, by which the worker decides whether to continue. Every message in a fault is one line of limited length.
 */
import type { Outcome } from "../Outcome.ts"
import * as Fault from "../Fault.ts"
import { epoch } from "../gateway/LimitHeaders.ts"
import type { End } from "../line/LineProtocol.ts"
import { type ClaudeRecord, number, oneLine, text, texts } from "./ClaudeRecord.ts"
import type { ExitStatus } from "../process/ChildProcess.ts"
import * as RunEnd from "../RunEnd.ts"

/** Facts that the result itself does not contain. */
export interface Context {
  /** Kind of the error in the last message that is not from a subagent; "" if there was no error. */
  readonly error: string
  /** When the usage limit resets, ms since the epoch; undefined if unknown. */
  readonly resetsAt: number | undefined
  readonly interrupted: boolean
  readonly now: number
}

/** How long to wait for a usage limit whose end is unknown, in ms. */
const LIMIT_UNKNOWN = 60_000

const REMEDIES: Fault.Remedies = {
  billing: "pay for the account that Claude Code uses, then start the agent",
  auth: "log in with `claude` as the daemon's user, after which its agents continue by themselves. Or set a new key in your environment, then: agentd restart",
  model: "correct model in the agent's backend, then start the agent"
}

const faultOf = (said: Fault.Said, { now, resetsAt }: Pick<Context, "now" | "resetsAt">): Fault.Fault => {
  const kind = Fault.kindOf(said)
  const until = resetsAt !== undefined && resetsAt > now ? resetsAt : now + LIMIT_UNKNOWN
  const fault = Fault.faultOf(kind, said.words, REMEDIES, until)
  return kind === "connection" ? { ...fault, errorType: "stream" } : fault
}

/**
 * Pattern of a limit message in older versions, which name the limit's end only in text: `Claude AI usage limit
 * reached|1763000000`.
 */
const resetIn = (words: string): number | undefined => {
  const at = /limit reached\|(\d{9,13})/i.exec(words)?.[1]
  return at === undefined ? undefined : epoch(Number(at))
}

export const endOf = (result: ClaudeRecord, context: Context): End => {
  const [subtype, reason] = [text(result, "subtype"), text(result, "terminal_reason")]
  const output = text(result, "result")
  if (result["is_error"] !== true && subtype === "success") return { _tag: "Completed", output }
  if (reason.startsWith("aborted")) return { _tag: "Interrupted" }
  // older versions give no reason for the error
  if (context.interrupted && reason === "" && subtype === "error_during_execution") return { _tag: "Interrupted" }
  const words = [output, ...texts(result, "errors")].find((one) => one !== "") ?? `it ended with ${subtype}`
  const names = [context.error, reason === "api_error" ? "" : reason, subtype, text(result, "stop_reason")].join(" ")
  const said = {
    names: `${names} ${text(result, "api_error")}`,
    status: number(result, "api_error_status") ?? 0,
    words
  }
  return { _tag: "Failed", fault: faultOf(said, { ...context, resetsAt: resetIn(words) ?? context.resetsAt }) }
}

const GONE = /no conversation found|requires a valid session id/i
const HELD = /already (open|running|in use)|open in another|in use by|running elsewhere/i
const ARGUMENTS = /^error: (unknown|option|too many|invalid)|cannot be used with root|invalid mcp config/im

/**
 * Returns the outcome of a program that ended before it was ready. "gone": the session that should be resumed does not
 * exist.
 */
export const birthOf = (status: ExitStatus, said: string): Outcome | "gone" => {
  if (GONE.test(said)) return "gone"
  if (HELD.test(said)) return { _tag: "Uncounted", reason: "held" }
  const detail = RunEnd.wordsOf("claude", status, oneLine(said))
  const last = said.trim().split("\n").at(-1) ?? ""
  const kind = Fault.kindOf(Fault.saidIn(last))
  if (Fault.isOutside(kind)) return Fault.faultOf(kind, detail, REMEDIES).outcome
  return ARGUMENTS.test(said)
    ? { _tag: "Fatal", detail, remedy: "correct args, model or permissionMode of the agent's backend, then start it" }
    : { _tag: "Error", detail }
}
