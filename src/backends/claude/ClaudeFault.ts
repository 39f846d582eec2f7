/**
 * ClaudeFault: how a turn of Claude Code ended, and what it means that it, or the
 * program, failed. Pure.
 *
 * Guarantees: `subtype: "success"` and exit code 0 are believed only where nothing
 * contradicts them; every fault has a class, by which the worker knows whether to go on;
 * every text of it is one bounded line.
 */
import type { Outcome } from "../Outcome.ts"
import { epoch } from "../../gateway/LimitHeaders.ts"
import { type ClaudeRecord, number, oneLine, text, texts } from "./ClaudeRecord.ts"
import type { ExitStatus } from "../process/ChildProcess.ts"

export interface Fault {
  readonly errorType: string
  readonly message: string
  /** True where the same input may succeed when it is asked again. */
  readonly retry: boolean
  /** The outcome with which the run ends for it. */
  readonly outcome: Outcome
}

export type End =
  | { readonly _tag: "Completed"; readonly output: string }
  | { readonly _tag: "Interrupted" }
  | { readonly _tag: "Failed"; readonly fault: Fault }

/** The facts besides the result itself. */
export interface Context {
  /** The kind of the error that the last message of the main chain carried; "" for none. */
  readonly error: string
  /** When the limit on use is lifted, ms since the epoch. */
  readonly resetsAt: number | undefined
  /** We have asked for an interrupt. */
  readonly interrupted: boolean
  readonly now: number
}

/** A limit of which nobody says when it ends is looked at again after this long, ms. */
const LIMIT_UNKNOWN = 60_000

export const error = (errorType: string, message: string, retry: boolean): Fault => {
  const detail = oneLine(message)
  return { errorType, message: detail, retry, outcome: { _tag: "Error", detail } }
}

const fatal = (errorType: string, message: string, remedy: string): Fault => {
  const detail = oneLine(message)
  return { errorType, message: detail, retry: true, outcome: { _tag: "Fatal", detail, remedy } }
}

const uncounted = (errorType: string, message: string, outcome: Outcome): Fault => ({
  errorType,
  message: oneLine(message),
  retry: true,
  outcome
})

interface Said {
  /** The names of error, reason and subtype. */
  readonly names: string
  readonly status: number
  readonly words: string
}

type Kind =
  | "overflow"
  | "billing"
  | "rate_limit"
  | "model"
  | "auth"
  | "refusal"
  | "max_tokens"
  | "max_turns"
  | "budget"
  | "overloaded"
  | "stream"
  | "server"
  | "invalid_request"
  | "unknown"

/** The first row that fits. Names go before numbers: 400 means several things. */
const kinds: ReadonlyArray<readonly [kind: Kind, fits: (said: Said) => boolean]> = [
  [
    "overflow",
    ({ names, status, words }) =>
      status === 413 ||
      /prompt_too_long/.test(names) ||
      /prompt is too long|request too large|context window|maximum context/i.test(words)
  ],
  ["billing", ({ names, status, words }) => /billing/.test(names) || status === 402 || /credit balance/i.test(words)],
  [
    "rate_limit",
    ({ names, status, words }) =>
      /rate_limit|usage_limit/.test(names) || status === 429 || /usage limit reached/i.test(words)
  ],
  ["model", ({ names }) => /model_not_found/.test(names)],
  [
    "auth",
    ({ names, status, words }) =>
      /authentication|oauth/.test(names) ||
      status === 401 ||
      status === 403 ||
      /not logged in|run \/login|invalid api key/i.test(words)
  ],
  ["refusal", ({ names }) => /\brefusal\b/.test(names)],
  ["max_tokens", ({ names }) => /max_output_tokens/.test(names)],
  ["max_turns", ({ names }) => /max_turns/.test(names)],
  ["budget", ({ names }) => /max_budget/.test(names)],
  [
    "overloaded",
    ({ names, status, words }) =>
      status === 529 || status === 503 || /overloaded/.test(names) || /overloaded/i.test(words)
  ],
  [
    "stream",
    ({ status, words }) =>
      status === 0 &&
      /\bE(CONN\w+|PIPE|TIMEDOUT|AI_AGAIN|NOTFOUND)\b|connection (dropped|error|closed|refused)|socket|network/i.test(
        words
      )
  ],
  [
    "server",
    ({ names, status }) => /server_error|api_error_5/.test(names) || status >= 500 || status === 408 || status === 409
  ],
  ["invalid_request", ({ names, status }) => /invalid_request/.test(names) || status >= 400]
]

/** Faults that asking again will not mend. */
const FINAL: ReadonlySet<Kind> = new Set(["refusal", "max_tokens", "max_turns", "budget", "invalid_request"])

const faultOf = (said: Said, { now, resetsAt }: Pick<Context, "now" | "resetsAt">): Fault => {
  const kind = kinds.find(([, fits]) => fits(said))?.[0] ?? "unknown"
  const { words } = said
  switch (kind) {
    case "overflow":
      return uncounted(kind, words, { _tag: "Uncounted", reason: "overflow" })
    case "rate_limit": {
      const until = resetsAt !== undefined && resetsAt > now ? resetsAt : now + LIMIT_UNKNOWN
      return uncounted(kind, words, { _tag: "Uncounted", reason: "quota", until })
    }
    case "billing":
      return fatal(kind, words, "pay for the account that Claude Code uses, then start the agent")
    case "auth":
      return fatal(
        kind,
        words,
        "log in with `claude` as the user that agentd runs as, or renew the key in its environment, then start the agent"
      )
    case "overloaded":
    case "server":
    case "stream":
      return uncounted(kind, words, { _tag: "Uncounted", reason: "unavailable" })
    case "model":
      return fatal(kind, words, "correct model in the agent's backend, then start the agent")
    default:
      return error(kind, words, !FINAL.has(kind))
  }
}

/** Older ones say only in words when the limit is lifted: `Claude AI usage limit reached|1763000000`. */
const resetIn = (words: string): number | undefined => {
  const at = /limit reached\|(\d{9,13})/i.exec(words)?.[1]
  return at === undefined ? undefined : epoch(Number(at))
}

/** The end of a turn by its `result`. */
export const endOf = (result: ClaudeRecord, context: Context): End => {
  const [subtype, reason] = [text(result, "subtype"), text(result, "terminal_reason")]
  const output = text(result, "result")
  if (result["is_error"] !== true && subtype === "success") return { _tag: "Completed", output }
  if (reason.startsWith("aborted")) return { _tag: "Interrupted" }
  // older ones give no reason
  if (context.interrupted && reason === "" && subtype === "error_during_execution") return { _tag: "Interrupted" }
  const words = [output, ...texts(result, "errors")].find((one) => one !== "") ?? `it ended with ${subtype}`
  const names = [context.error, reason, subtype, text(result, "stop_reason"), text(result, "api_error")].join(" ")
  const status = number(result, "api_error_status") ?? 0
  const fault = faultOf({ names, status, words }, { ...context, resetsAt: resetIn(words) ?? context.resetsAt })
  return { _tag: "Failed", fault }
}

const GONE = /no conversation found|requires a valid session id/i
const HELD = /already (open|running|in use)|open in another|in use by|running elsewhere/i
const ARGUMENTS = /^error: (unknown|option|too many|invalid)|cannot be used with root|invalid mcp config/im

/** How the program ended, in words. */
export const exitWords = ({ code, signal }: ExitStatus, said: string): string => {
  const how = signal === null ? `ended with exit code ${code}` : `was killed by ${signal}`
  const last = oneLine(said)
  return `claude ${how}${last === "" ? "" : `: ${last}`}`
}

/** The outcome of a program that ended before it was ready; "gone": the session that it was to continue is not there. */
export const birthOf = (status: ExitStatus, said: string): Outcome | "gone" => {
  if (GONE.test(said)) return "gone"
  if (HELD.test(said)) return { _tag: "Uncounted", reason: "held" }
  const detail = exitWords(status, said)
  return ARGUMENTS.test(said)
    ? { _tag: "Fatal", detail, remedy: "correct args, model or permissionMode of the agent's backend, then start it" }
    : { _tag: "Error", detail }
}
