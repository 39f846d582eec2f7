/**
 * AnswerTarget: finds the call or request that the user's answer is for: a tool call of one of our agents, or a
 * permission request from a session.
 *
 * Guarantees: an answer applies to one call or request only. If a prefix matches several ids, the answer is rejected:
 * ids that were created in the same minute begin alike. A settled call is never mistaken for a waiting one. An agent's
 * name selects its waiting call, if there is exactly one. Several calls are approved together or not at all: each must
 * still be the call that was shown.
 */
import { Effect, Result } from "effect"
import type { Lasting } from "../approvals/AnswerScope.ts"
import { isOf } from "../config/ProjectName.ts"
import { agentKinds } from "../agents/machines/AgentKinds.ts"
import { Agents } from "../projects/service/Agents.ts"
import type { Answer } from "../agents/machines/CallRow.ts"
import * as CallHash from "../domain/CallHash.ts"
import { type Caller, type CallInfo, type PlateInfo, refuse } from "../domain/Messages.ts"
import type { Decision } from "../plates/Approvals.ts"
import { Plates } from "../plates/Plates.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { EventLog } from "../core/event-log/EventLog.ts"

export type Meant =
  | { readonly _tag: "Call"; readonly callId: string }
  /** `name` is a session name that Plates accepts. */
  | { readonly _tag: "Session"; readonly name: string }
  | { readonly _tag: "Several"; readonly which: ReadonlyArray<string> }
  | { readonly _tag: "None" }

const call = ({ callId }: CallInfo): Meant => ({ _tag: "Call", callId })

/** Finds the call or session that a name means. Calls that wait have priority, and so has an exact id over a prefix. */
export const meant = (
  name: string,
  calls: ReadonlyArray<CallInfo>,
  plates: ReadonlyArray<PlateInfo>,
  /** The config file of the caller's project. A name without a project is one of that project's agents. */
  config: string | null = null
): Meant => {
  const exact = calls.find(({ callId }) => callId === name)
  if (exact !== undefined) return call(exact)
  const asking = plates.filter(({ approval }) => approval !== null)
  if (asking.some((plate) => [plate.plateId, plate.sessionId, plate.approval].includes(name))) {
    return { _tag: "Session", name }
  }
  const isHere = (conversation: string) => config === null || isOf(config, conversation)
  const open = calls.filter(
    ({ agent, callId, conversation, project, state }) =>
      state === "awaiting_approval" &&
      (callId.startsWith(name) || name === `${project}/${agent}` || (name === agent && isHere(conversation)))
  )
  const byPlate = asking.filter(({ plateId }) => plateId.startsWith(name))
  const byRequest = asking.filter((plate) => !byPlate.includes(plate) && plate.approval?.startsWith(name) === true)
  if (open.length + byPlate.length + byRequest.length > 1) {
    const which = [
      ...open.map(({ agent, callId, project, tool }) => `${callId} (${tool} of ${project}/${agent})`),
      ...[...byPlate, ...byRequest].map(({ detail, plateId }) => `${plateId} (${detail})`)
    ]
    return { _tag: "Several", which }
  }
  if (open.length === 1) return call(open[0]!)
  if (byPlate.length === 1) return { _tag: "Session", name: byPlate[0]!.plateId }
  if (byRequest.length === 1) return { _tag: "Session", name: byRequest[0]!.approval! }
  const known = calls.filter(({ callId }) => callId.startsWith(name))
  return known.length === 1 ? call(known[0]!) : { _tag: "None" }
}

/** Maximum number of recent approval runes that are searched for a settled call. */
const SETTLED = 1000
/** Kinds of runes about calls that asked for approval or were answered. Their payloads are small. */
const ASKED = {
  "tool.approval_requested": agentKinds["tool.approval_requested"],
  "tool.approved": agentKinds["tool.approved"],
  "tool.denied": agentKinds["tool.denied"]
}
const readAsked = reader(ASKED)
/** Minimum length, in characters, of an id prefix with which settled calls are searched. */
const TELLING = 8

/** Ids of calls that asked recently, settled or not: whether `name` is one, and the newest that begins with `name`. */
const asks = Effect.fnUntraced(function* (name: string) {
  const runes = yield* (yield* EventLog).tail({ kinds: Object.keys(ASKED) }, SETTLED)
  const ids = runes.flatMap((rune) => readAsked(rune)?.payload.call_id ?? [])
  return {
    exact: ids.includes(name),
    begins: name.length < TELLING ? undefined : ids.findLast((id) => id.startsWith(name))
  }
})

/** The reason that a denied session is sent; never empty. */
const told = (reason: string): string => reason.trim() || "Refused by the user."

/** The call or session that a name means. An unknown name is passed to Plates, which rejects it with a reason. */
const found = Effect.fnUntraced(function* (name: string, { config }: Caller) {
  if (name.trim() === "") {
    return yield* refuse("invalid", "No call is named.", "See what waits: agentd approve")
  }
  const known = yield* asks(name)
  // one id can be the beginning of another: a settled call must not be mistaken for a waiting one
  if (known.exact) return { _tag: "Call", callId: name } as const
  const [agents, plates] = [yield* Agents, yield* Plates]
  const which = meant(name, yield* agents.calls, yield* plates.list({ closed: false }), config)
  if (which._tag === "Several")
    return yield* refuse(
      "ambiguous",
      `"${name}" matches ${which.which.length} calls or sessions that wait for an answer.`,
      `Name one by its id: ${which.which.slice(0, 5).join(", ")}${which.which.length > 5 ? ", …" : ""}`
    )
  if (which._tag !== "None") return which
  // for a settled call, Agents reports what happened to it
  return known.begins === undefined
    ? ({ _tag: "Session", name } as const)
    : ({ _tag: "Call", callId: known.begins } as const)
})

/** The call or request that the user's answer decides, with its whole input. */
export const asked = Effect.fnUntraced(function* (name: string, caller: Caller) {
  const which = yield* found(name, caller)
  return which._tag === "Call"
    ? yield* (yield* Agents).askedCall(which.callId)
    : yield* (yield* Plates).asked(which.name)
})

/**
 * The user's answer. `lasting`: the approval also keeps a rule, and `hash` is the hash of its preview. `also`: further
 * calls that are approved with it.
 */
export type Given = Omit<Answer, "lasting"> & {
  readonly lasting?: Lasting | undefined
  readonly also?: ReadonlyArray<{ readonly name: string; readonly hash: string }> | undefined
}

const ONCE = refuse(
  "invalid",
  "A request of a session can only be approved once.",
  "Approve it without a scope: agentd approve CALL"
)

export const preview = Effect.fnUntraced(function* (name: string, lasting: Lasting, caller: Caller) {
  const which = yield* found(name, caller)
  return which._tag === "Call" ? yield* (yield* Agents).answerPreview(which.callId, lasting) : yield* ONCE
})

const answerOne = Effect.fnUntraced(function* (
  name: string,
  { answers, behavior, hash, lasting, reason }: Given,
  caller: Caller
) {
  const which = yield* found(name, caller)
  if (which._tag === "Call") {
    return yield* (yield* Agents).answerCall(which.callId, { behavior, reason, answers, hash, lasting }, caller)
  }
  if (lasting !== undefined) return yield* ONCE
  const decision: Decision = behavior === "allow" ? { behavior, answers, hash } : { behavior, message: told(reason) }
  return yield* (yield* Plates).answer(which.name, decision, caller)
})

const THEM = "See the calls that wait now: agentd approve --all"

/** Approves several calls once. If one of them has changed or no longer waits, none is approved. */
const answerAll = Effect.fnUntraced(function* (
  all: ReadonlyArray<{ readonly name: string; readonly hash: string }>,
  given: Given,
  caller: Caller
) {
  const none = (why: string) => refuse("conflict", `None of the ${all.length} calls was approved: ${why}`, THEM)
  for (const { hash, name } of all) {
    const now = yield* Effect.mapError(asked(name, caller), ({ message }) => none(message))
    if (now.questions !== undefined) return yield* none(`${now.id} asks you to choose.`)
    const changed = CallHash.refusalOf(now.id, hash, now.hash)
    if (changed !== undefined) return yield* none(changed.message)
  }
  const said = yield* Effect.forEach(all, ({ hash, name }) =>
    Effect.result(answerOne(name, { ...given, hash }, caller))
  )
  const failed = said.filter(Result.isFailure)
  if (failed.length > 0) {
    const [{ failure }] = failed as [(typeof failed)[number]]
    const count = `${failed.length} of ${all.length} calls were not approved`
    return yield* refuse("conflict", `${count}: ${failure.message}`, THEM)
  }
  const last = said.filter(Result.isSuccess).at(-1)!.success
  return { ...last, message: `${all.length} calls are approved.` }
})

export const answer = (name: string, given: Given, caller: Caller) => {
  const { also = [], answers, behavior, hash, lasting } = given
  if (also.length === 0) return answerOne(name, given, caller)
  if (behavior === "deny" || answers !== undefined || lasting !== undefined || hash === undefined)
    return refuse(
      "invalid",
      "Several calls can only be approved once, each by its hash: `also` fits no denial, `answers` or `lasting`.",
      "Answer the calls one by one: agentd approve"
    )
  return answerAll([{ name, hash }, ...also], given, caller)
}
