/**
 * AcpFault: classifies an agent's refusal of a request, or its failure. Pure.
 *
 * Guarantees: every fault has a class, by which the worker decides whether to continue. The message is one line of
 * limited length. The protocol has a code for one class only (login required). Agents pass on error messages from the
 * model's API, so the message is matched as well.
 */
import * as Fault from "../Fault.ts"
import type { Outcome } from "../Outcome.ts"
import type { AuthMethod } from "./AcpMessages.ts"
import * as AcpMeta from "./AcpMeta.ts"
import * as AgentdMeta from "./AgentdMeta.ts"
import type { Refusal } from "./AcpWire.ts"

export { error, fatal, type Fault, oneLine } from "../Fault.ts"

export interface Agent {
  readonly name: string
  readonly authMethods: ReadonlyArray<AuthMethod>
}

const AUTH_REQUIRED = -32000
const UNKNOWN = -32601
export const NOT_FOUND = -32002
const INVALID = [-32600, -32602]

const textOf = (value: unknown): string => {
  if (value === undefined || value === null) return ""
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "")
}

export const offered = ({ authMethods }: Pick<Agent, "authMethods">): string => {
  const ways = authMethods.map(({ description, id, name: label }) => {
    const words = [label, description].filter((word) => typeof word === "string" && word !== "").join(": ")
    return words === "" ? id : `${id} (${words})`
  })
  return ways.length === 0 ? "" : ` It offers: ${ways.join("; ")}. One that needs no user can be set as authMethod.`
}

const loginRemedy = (agent: Agent): string =>
  `log in to ${agent.name} as the daemon's user, or renew its key: its agents then continue by themselves.${offered(agent)}`

const kindOf = (refusal: Refusal): Fault.Kind => {
  const told = AcpMeta.errorOf(refusal.data)
  if (told !== undefined) return told.error
  const kind = Fault.kindOf(Fault.saidIn(refusal))
  // Other agents use this code for any failure, so the text is matched first.
  return kind === "unknown" && refusal.code === AUTH_REQUIRED ? "auth" : kind
}

export const isAuth = (refusal: Refusal): boolean => kindOf(refusal) === "auth"

/** True if the agent does not support the request at all, whatever its capabilities claim. */
export const isUnknown = ({ code, message }: Refusal): boolean =>
  code === UNKNOWN || /method not found|not implemented|unsupported method/i.test(message)

export const isOutside = (refusal: Refusal): boolean => Fault.isOutside(kindOf(refusal))

/** True if the agent says that the session no longer exists. */
export const isGone = ({ code, data, message }: Refusal): boolean =>
  AcpMeta.errorOf(data) === undefined &&
  (code === NOT_FOUND ||
    /not found|no (such|previous|saved)|unknown session|does not exist|no (conversations?|sessions?) found|invalid session/i.test(
      `${message} ${textOf(data)}`
    ))

const remediesOf = (agent: Agent): Fault.Remedies => ({
  auth: loginRemedy(agent),
  billing: `pay for the account that ${agent.name} uses, then start the agent`,
  model: "correct model in the agent's backend, then start the agent"
})

export const auth = (message: string, agent: Agent): Fault.Fault => Fault.refusedLogin(message, loginRemedy(agent))

/** The fault of the class that the agent itself names, with its remedy. `now`: ms since the epoch. */
const ofMeta = (
  { error, remedy, retryAfter }: AcpMeta.ErrorMeta,
  told: string,
  agent: Agent,
  now: number
): Fault.Fault => {
  const remedies = remediesOf(agent)
  const { auth, billing } =
    remedy === undefined ? remedies : { auth: remedy, billing: `${remedy}; then start the agent` }
  const fault = Fault.faultOf(error, told, { ...remedies, auth, billing })
  return retryAfter === undefined || fault.outcome._tag !== "Uncounted"
    ? fault
    : { ...fault, outcome: { ...fault.outcome, until: now + retryAfter * 1000 } }
}

/**
 * Classifies a rejected request. `doing` names the request, because the agent's message may not name it. `now`: ms since
 * the epoch.
 */
export const ofRefusal = (refusal: Refusal, doing: string, agent: Agent, now: number): Fault.Fault => {
  const { code, data, message } = refusal
  const meta = AcpMeta.errorOf(data)
  if (meta !== undefined) return ofMeta(meta, `${agent.name} refused ${doing}: ${message}`, agent, now)
  const { error } = AgentdMeta.of(data)
  if (error !== undefined)
    return { errorType: error.class, message: error.message, retry: error.retry, outcome: error.outcome }
  const details = textOf(data)
  const told = `${agent.name} refused ${doing}: ${message}${details === "" || details === "{}" ? "" : ` ${details}`}`
  const kind = kindOf(refusal)
  if (kind !== "unknown") return Fault.faultOf(kind, told, remediesOf(agent))
  return INVALID.includes(code) ? Fault.error("invalid_request", told, false) : Fault.error("agent", told, true)
}

/** Builds the fault for a failure that the agent reports separately and not in its answer. */
export const ofFailure = (
  { said, words }: { readonly said: unknown; readonly words: string },
  agent: Agent
): Fault.Fault => {
  const kind = Fault.kindOf(Fault.saidIn(said, words))
  const told = `${agent.name} failed: ${words === "" ? textOf(said) : words}`
  return kind === "unknown" ? Fault.error("agent", told, true) : Fault.faultOf(kind, told, remediesOf(agent))
}

/**
 * Returns the outcome of an agent that ended before it had a session. `said`: the last line that it wrote to standard
 * error.
 */
export const ofBirth = (said: string, what: string, name: string): Outcome => {
  const kind = Fault.kindOf(Fault.saidIn(said))
  const remedies = remediesOf({ name, authMethods: [] })
  return Fault.isOutside(kind) ? Fault.faultOf(kind, what, remedies).outcome : { _tag: "Error", detail: what }
}

/** Builds the fault for an agent that may only read, but has run a call with side effects without asking. */
export const unasked = ({ name }: Agent, title: string, mode: string): Fault.Fault =>
  Fault.fatal(
    "unasked",
    `${name} ran a call that may change something without asking, although the agent may only read (approvals.mode read_only): ${title}`,
    `check what it did; choose a mode in which it asks${mode === "" ? "" : ` (now: ${mode})`}, by its own config or by mode, or approvals.mode auto; then start the agent`
  )

export const ofStopReason = (reason: string, agent: Agent): Fault.Fault | undefined => {
  switch (reason) {
    case "max_tokens":
      return Fault.error("max_tokens", `the answer of ${agent.name} became too long and was cut off`, false)
    case "max_turn_requests":
      return Fault.error("max_turn_requests", `${agent.name} reached its limit of model requests in one turn`, false)
    case "refusal":
      return Fault.error("refusal", `the model of ${agent.name} refused to continue`, false)
    default:
      return undefined
  }
}
