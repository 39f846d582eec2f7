/**
 * Fault: classifies a failure of an agent, its program or its provider, in the same way for every backend. Pure.
 *
 * Guarantees: The error's name and HTTP status take precedence over its text. Temporary failures do not count against
 * the agent. Text from an agent's own tools is never treated as an error of the agent's provider.
 */
import { attempt } from "../config/Attempt.ts"
import type { Outcome } from "./Outcome.ts"

export interface Said {
  /** Kinds and codes of the error, as they were reported. */
  readonly names: string
  /** HTTP status of the error; 0 if unknown. */
  readonly status: number
  readonly words: string
}

export type Kind =
  | "overflow"
  | "max_tokens"
  | "billing"
  | "rate_limit"
  | "model"
  | "auth"
  | "refusal"
  | "max_turns"
  | "budget"
  | "held"
  | "overloaded"
  | "connection"
  | "server"
  | "not_found"
  | "invalid_request"
  | "unknown"

type Rows = ReadonlyArray<readonly [kind: Kind, pattern: RegExp]>

const OVERFLOW =
  /prompt[ _]is[ _]too[ _]long|prompt_too_long|context[ _-]?length|context[ _-]?window|contextwindow|contextoverflow|context (still )?exceeds|maximum context|context limit|exceed_context_size|exceeds? (the )?(available )?context|ran out of room|compaction (is )?exhausted|request[ _]too[ _]large|string_above_max_length/i

/** Codes and phrases that indicate a network, DNS or TLS failure. */
const NETWORK: Rows = [
  [
    "connection",
    /\b(E(CONN\w+|PIPE|TIMEDOUT|AI_\w+|NOTFOUND|NET\w+|HOST\w+|PROTO|ADDRNOTAVAIL)|ERR_(TLS|SSL|NETWORK|INTERNET|HTTP2|STREAM|SOCKET|PROXY|NAME|CONNECTION|OSSL)\w*|UND_ERR_\w+|CERT_\w+|(DEPTH_ZERO_)?SELF_SIGNED_\w+|UNABLE_TO_\w+|Connection(Refused|Reset|Closed|TimedOut|Error)|FailedToOpenSocket|APIConnection\w*)\b/i
  ],
  [
    "connection",
    /\b(timed?[ -]?outs?|deadline exceeded)\b|reset by peer|(lost|no) (the |internet |network )?connection|error: terminated\b|fetch failed|failed to fetch|getaddrinfo|name resolution|resolve host|name or service not known|no route to host|broken pipe|premature close|other side closed|error sending request|unexpected (eof|end of (file|stream))|no internet|\boffline\b|certificate|self[- ]signed/i
  ],
  [
    "connection",
    /\b(connect(ion)?|networks?|sockets?|streams?|tunnel\w*|internet|host|proxy|dns|tls|ssl|handshake)\b[^.\n]{0,40}\b(errors?|fail(ed|ure)|refused|reset|closed|lost|dropped|aborted|hang up|hung up|unreachable|interrupted|disconnected|ended|down|alert)\b/i
  ],
  ["connection", /\b(unable|failed|could ?n[o']t|cannot|can't) (to )?(connect|reach)/i]
]

/** Error names that determine the kind by themselves. The first matching row is used. */
const NAMES: Rows = [
  ["max_tokens", /max_output_tokens|max_tokens|outputlength|output_length/i],
  ["billing", /billing|insufficient_quota|insufficient_funds|payment_required/i],
  ["rate_limit", /rate_?limit|usage_?limit|resource_exhausted|too_many_requests|quota/i],
  ["model", /model_?not_?found|not_found_error/i],
  ["refusal", /\brefusal\b|content_filter|cyberpolicy|policyviolation/i],
  [
    "auth",
    /authenticat|oauth|unauthori[sz]ed|permission_error|permission_denied|api_?key|providerauth|account_on_hold|verification_required|credential/i
  ],
  ["max_turns", /max_turns|max_turn_requests/i],
  ["budget", /max_budget|budget_?exceeded/i],
  ["overloaded", /overloaded|\bunavailable\b|flexunavailable/i],
  ["connection", /transport_lost/i],
  ...NETWORK
]

/** Error names that can mean several kinds. The HTTP status and the text are checked first. */
const WIDE: Rows = [
  ["connection", /connectionfailed|streamdisconnected|toomanyfailedattempts/i],
  ["server", /server_?error|api_error|timeout_error|internal_error|\binternal\b|deadline_exceeded/i],
  ["invalid_request", /invalid_?request|invalid_argument|bad_?request/i]
]

/**
 * Text patterns, used if neither the error's name nor its status determines the kind. The first matching row is used.
 */
const WORDS: Rows = [
  ["max_tokens", /output[ -]tokens? (limit|maximum)|maximum output tokens?/i],
  ["rate_limit", /resource[_ ]exhausted|\b(retry|try again) in \d|reached your specified api usage limits/i],
  [
    "billing",
    /credit balance|insufficient[_ ](quota|funds|credits?|balance)|plan and billing|billing[_ ](error|hard|not)|payment required|out of credits/i
  ],
  [
    "rate_limit",
    /rate[ _-]?limit|too many requests|(?<!disk )quota|\b(usage|daily|weekly|monthly|hourly|session|5-hour|your) limit\b/i
  ],
  ["overflow", /exceeds? .{0,40}\btokens\b/i],
  ["refusal", /content moderation|content[ _]filter|usage policy/i],
  [
    "auth",
    /unauthori[sz]ed|authenticat|(invalid|incorrect|missing|expired)[^.]{0,20}(api[ _-]?key|(?<!unexpected )token|credential)|(api[ _-]?key|token|credentials?)[^.]{0,20}(not valid|invalid|incorrect|expired|revoked)|x-api-key|not logged in|log ?in (is )?required|(please|run) \/?log ?in/i
  ],
  ["held", /session[^.]{0,60}\b(in use|already (open|running|active|attached))\b/i],
  ["overloaded", /overloaded|high demand|(at|over|no) capacity|temporarily unavailable/i],
  ...NETWORK,
  [
    "server",
    /\bserver error\b|bad gateway|gateway time-?out|service unavailable|server had an error|an internal error|<!doctype html|<html/i
  ]
]

const STATUSES: { readonly [status: number]: Kind } = {
  401: "auth",
  402: "billing",
  403: "auth",
  408: "server",
  409: "server",
  413: "overflow",
  425: "server",
  503: "overloaded",
  529: "overloaded"
}

/** Returns the kind for an HTTP status if neither the names nor the text determine it. */
const restOf = (status: number): Kind => {
  if (status === 429) return "rate_limit"
  if (status === 404 || status === 405 || (status >= 300 && status < 400)) return "not_found"
  return status >= 400 ? "invalid_request" : "unknown"
}

/** Finds an HTTP status in a message: at its beginning, or after a word that announces it. */
const STATUS =
  /^\[?(?:(?:api|http|internal|agent)? ?error:? ?)*(?:http )?\(?([45]\d\d)\b|\b(?:https?(?:\/[\d.]+)?|status(?: code)?|last|api) ?(?:error)?:? ?\(?([45]\d\d)\b/im

/**
 * opencode and Kilo use the name `APIError` only for errors of their provider's API. Therefore any status in the text
 * comes from the API.
 */
const isOfApi = (names: string): boolean => /\bAPIError\b/.test(names)

const statusIn = ({ names, words }: Said): number => {
  const [, first, other] = (isOfApi(names) ? /\b([45]\d\d)\b/ : STATUS).exec(words) ?? []
  return Number(first ?? other ?? 0)
}

/** Kinds of errors that the agent itself or its input causes. */
const OWN: ReadonlySet<Kind> = new Set([
  "unknown",
  "not_found",
  "invalid_request",
  "refusal",
  "max_tokens",
  "max_turns",
  "budget"
])

/** Whether the cause is outside the agent: in its login, or in its provider. */
export const isOutside = (kind: Kind): boolean => !OWN.has(kind)

/** Matches a clause about an agent's tool or a tool server. */
const TOOLS = /\b(mcp|tool|command|hook|script|bash|terminal)\b[^;\n]*/gi

const named = (rows: Rows, text: string): Kind | undefined => rows.find(([, pattern]) => pattern.test(text))?.[0]

export const kindOf = (said: Said): Kind => {
  const { names } = said
  const words = said.words.replaceAll(TOOLS, "")
  const status = said.status === 0 ? statusIn({ ...said, words }) : said.status
  const isBarred = status === 401 || status === 402 || status === 403
  if (!isBarred && (OVERFLOW.test(names) || OVERFLOW.test(words))) return "overflow"
  return (
    named(NAMES, names) ??
    STATUSES[status] ??
    (status >= 500 ? "server" : undefined) ??
    named(WORDS, words) ??
    named(WIDE, names) ??
    restOf(status)
  )
}

/** Limits for reading an error's data: maximum depth, and maximum number of entries. */
const DEEP = 5
const MANY = 100

/** Reads the names, the status and the messages from an error's data: objects, lists, and JSON inside a string. */
export const saidIn = (...values: ReadonlyArray<unknown>): Said => {
  const [names, words]: [Array<string>, Array<string>] = [[], []]
  let status = 0
  const read = (value: unknown, key: string, depth: number): void => {
    if (depth > DEEP || names.length + words.length > MANY) return
    if (typeof value === "object" && value !== null)
      return Object.entries(value).forEach(([name, inner]) => {
        if (key === "codexErrorInfo") names.push(name)
        read(inner, name, depth + 1)
      })
    const code = /^(code|status|statusCode|httpStatus|httpStatusCode)$/.test(key) ? Number(value) : Number.NaN
    if (code >= 300 && code < 600) status ||= code
    if (typeof value !== "string") return
    const text = value.trim()
    const inner = /^\{.*\}$/s.test(text) ? parsed(text) : undefined
    if (inner !== undefined) read(inner, key, depth + 1)
    else (/^[\w.-]+$/.test(text) ? names : words).push(text)
  }
  for (const value of values) read(value, "", 0)
  return { names: names.join(" "), status, words: words.join("\n") }
}

const parsed = (text: string): unknown => attempt(() => JSON.parse(text))

const MAX_MESSAGE = 500

export const oneLine = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, MAX_MESSAGE)

export interface Fault {
  readonly errorType: string
  readonly message: string
  /** True if the same input can succeed when it is sent again. */
  readonly retry: boolean
  readonly outcome: Outcome
}

/** Creates a fault that counts as an error. */
export const error = (errorType: string, message: string, retry: boolean): Fault => {
  const detail = oneLine(message)
  return { errorType, message: detail, retry, outcome: { _tag: "Error", detail } }
}

export const fatal = (errorType: string, message: string, remedy: string): Fault => {
  const detail = oneLine(message)
  return { errorType, message: detail, retry: true, outcome: { _tag: "Fatal", detail, remedy } }
}

/** Fault for a rejected login. The account, and every agent that uses it, waits until the user logs in again. */
export const refusedLogin = (message: string, remedy: string): Fault => {
  const outcome: Outcome = { _tag: "Uncounted", reason: "auth", detail: `${oneLine(message)}; ${remedy}` }
  return { errorType: "auth", message: oneLine(message), retry: true, outcome }
}

export interface Remedies {
  readonly auth: string
  readonly billing: string
  readonly model: string
}

/** Kinds of errors that a retry cannot fix. */
const FINAL: ReadonlySet<Kind> = new Set([
  "refusal",
  "max_tokens",
  "max_turns",
  "budget",
  "not_found",
  "invalid_request"
])

/** Creates the fault for an error kind. `until`: when a usage limit resets, ms since the epoch. */
export const faultOf = (kind: Kind, words: string, remedies: Remedies, until?: number): Fault => {
  const uncounted = (outcome: Outcome): Fault => ({ errorType: kind, message: oneLine(words), retry: true, outcome })
  switch (kind) {
    case "billing":
    case "model":
      return fatal(kind, words, remedies[kind])
    case "auth":
      return refusedLogin(words, remedies.auth)
    case "rate_limit":
      return uncounted({ _tag: "Uncounted", reason: "quota", ...(until === undefined ? {} : { until }) })
    case "overflow":
    case "held":
      return uncounted({ _tag: "Uncounted", reason: kind })
    case "overloaded":
    case "connection":
    case "server":
      return uncounted({ _tag: "Uncounted", reason: "unavailable" })
    default:
      return error(kind, words, !FINAL.has(kind))
  }
}
