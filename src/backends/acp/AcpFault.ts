/**
 * AcpFault: what it means that an agent refused a request or came to no end. Pure.
 *
 * Guarantees: every fault has a class, by which the worker knows whether to go on; the
 * message is one bounded line. The protocol has a code for one class only (a login is
 * wanted); agents pass on in words what the model's API said, so the words are read.
 */
import type { Outcome } from "../Outcome.ts"
import type { AuthMethod } from "./AcpMessages.ts"
import type { Refusal } from "./AcpWire.ts"

export interface Fault {
  readonly errorType: string
  readonly message: string
  /** True where the same prompt may succeed when it is asked again. */
  readonly retry: boolean
  readonly outcome: Outcome
}

/** The agent, as remedies name it. */
export interface Agent {
  readonly name: string
  readonly authMethods: ReadonlyArray<AuthMethod>
}

const AUTH_REQUIRED = -32000
const UNKNOWN = -32601
export const NOT_FOUND = -32002
const INVALID = [-32600, -32602]
const MAX_MESSAGE = 500

export const oneLine = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, MAX_MESSAGE)

/** A fault that counts. */
export const error = (errorType: string, message: string, retry: boolean): Fault => {
  const detail = oneLine(message)
  return { errorType, message: detail, retry, outcome: { _tag: "Error", detail } }
}

export const fatal = (errorType: string, message: string, remedy: string): Fault => {
  const detail = oneLine(message)
  return { errorType, message: detail, retry: true, outcome: { _tag: "Fatal", detail, remedy } }
}

const uncounted = (
  errorType: string,
  message: string,
  reason: "quota" | "unavailable" | "overflow" | "held"
): Fault => ({
  errorType,
  message: oneLine(message),
  retry: true,
  outcome: { _tag: "Uncounted", reason }
})

/** The first row that fits. */
const kinds: ReadonlyArray<readonly [kind: Kind, words: RegExp]> = [
  ["billing", /credit balance|insufficient[_ ]quota|\bbilling\b|payment required|\b402\b/i],
  ["rate_limit", /\b429\b|rate[_ -]?limit|too many requests|resource[_ ]exhausted|usage limit|quota/i],
  [
    "overflow",
    /prompt is too long|context[_ ]length|context window|maximum context|request[_ ]too[_ ]large|exceeds? .{0,40}\btokens\b|\b413\b/i
  ],
  ["overloaded", /\b(503|529)\b|overloaded/i],
  ["server", /\b50[0234]\b|(internal|upstream) server error|bad gateway|gateway timeout|service unavailable/i],
  [
    "connection",
    /\bE(CONN\w+|PIPE|TIMEDOUT|AI_AGAIN|NOTFOUND|NETUNREACH|HOSTUNREACH)\b|fetch failed|(connection|network|socket)[^.]{0,20}\b(error|refused|reset|closed|lost|dropped|hang up|unreachable|timed out)\b|(unable|failed|cannot|could not) (to )?connect|dns error|error sending request|stream (disconnected|closed|ended)/i
  ],
  [
    "auth",
    /\b40[13]\b|unauthori[sz]ed|authenticat|(invalid|incorrect|missing|expired)[^.]{0,20}\b(api[_ -]?key|token|credential)|not logged in|log ?in (is )?required|please (log ?in|run \/login)/i
  ],
  ["held", /session[^.]{0,60}\b(in use|already (open|running|active|attached))\b/i]
]
type Kind = "billing" | "rate_limit" | "overflow" | "overloaded" | "server" | "connection" | "auth" | "held"

const textOf = (value: unknown): string => {
  if (value === undefined || value === null) return ""
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "")
}

export const loginRemedy = ({ authMethods, name }: Agent): string => {
  const ways = authMethods.map(({ description, id, name: label }) => {
    const words = [label, description].filter((word) => typeof word === "string" && word !== "").join(": ")
    return words === "" ? id : `${id} (${words})`
  })
  const offered =
    ways.length === 0 ? "" : ` It offers: ${ways.join("; ")}. One that needs no person can be named as authMethod.`
  return `log in to ${name} as the user that agentd runs as, or renew its key, then start the agent.${offered}`
}

const kindOf = ({ code, data, message }: Refusal): Kind | undefined => {
  const words = `${message} ${textOf(data)}`
  // other agents use the same code for whatever goes wrong in them
  const named = kinds.find(([, pattern]) => pattern.test(words))?.[0]
  return named ?? (code === AUTH_REQUIRED ? "auth" : undefined)
}

export const isAuth = (refusal: Refusal): boolean => kindOf(refusal) === "auth"

/** Whether the agent does not know the request at all, whatever it says of itself. */
export const isUnknown = ({ code, message }: Refusal): boolean =>
  code === UNKNOWN || /method not found|not implemented|unsupported method/i.test(message)

/** Whether it is not the agent's own: its login, or its provider. */
export const isOutside = (refusal: Refusal): boolean => kindOf(refusal) !== undefined

/** Whether it says that there is no such session any more. */
export const isGone = ({ code, data, message }: Refusal): boolean =>
  code === NOT_FOUND ||
  /not found|no (such|previous|saved)|unknown session|does not exist|no (conversations?|sessions?) found|invalid session/i.test(
    `${message} ${textOf(data)}`
  )

/** `doing` in words, for a message that says nothing by itself. */
export const ofRefusal = (refusal: Refusal, doing: string, agent: Agent): Fault => {
  const { code, data, message } = refusal
  const details = textOf(data)
  const told = `${agent.name} refused ${doing}: ${message}${details === "" || details === "{}" ? "" : ` ${details}`}`
  const kind = kindOf(refusal)
  switch (kind) {
    case "billing":
      return fatal("billing", told, `pay for the account that ${agent.name} uses, then start the agent`)
    case "auth":
      return fatal("auth", told, loginRemedy(agent))
    case "rate_limit":
      return uncounted("rate_limit", told, "quota")
    case "overflow":
      return uncounted("overflow", told, "overflow")
    case "held":
      return uncounted("held", told, "held")
    case "overloaded":
    case "server":
    case "connection":
      return uncounted(kind, told, "unavailable")
    default:
      return INVALID.includes(code) ? error("invalid_request", told, false) : error("agent", told, true)
  }
}

/** The fault of an agent that may only read, and did more without asking. */
export const unasked = ({ name }: Agent, title: string, mode: string): Fault =>
  fatal(
    "unasked",
    `${name} ran a call that may change something and asked nobody, though the agent may only read (approvals.mode read_only): ${title}`,
    `see what it did; give it a mode of its own in which it asks${mode === "" ? "" : ` (now: ${mode})`}, by its own config or by mode, or approvals.mode auto; then start the agent`
  )

/** The fault in a turn's stop reason, where it is one. */
export const ofStopReason = (reason: string, agent: Agent): Fault | undefined => {
  switch (reason) {
    case "max_tokens":
      return error("max_tokens", `the answer of ${agent.name} became too long and was cut off`, false)
    case "max_turn_requests":
      return error("max_turn_requests", `${agent.name} asked its model as often as it may in one turn`, false)
    case "refusal":
      return error("refusal", `the model of ${agent.name} refused to go on`, false)
    default:
      return undefined
  }
}
