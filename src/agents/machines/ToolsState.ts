/**
 * ToolsState: the tool calls of one agent: open calls, recently ended calls, and late answers that can still be used.
 * Pure: computed from the log.
 */
import { HashMap, Option } from "effect"
import type { Question } from "../../runs/Question.ts"
import { reader, type Said } from "../../core/event-log/EventKinds.ts"
import type { Rule, RuleSubject } from "../../approvals/Rule.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { evolve, type Snapshot } from "../../core/event-actor/StateMachine.ts"
import { toolKinds } from "./AgentKinds.ts"
import * as Approval from "../actors/Approval.ts"
import * as ToolMachine from "./ToolMachine.ts"

export type CallSnapshot = Snapshot<ToolMachine.State, ToolMachine.Data>

/** A call that has no result yet. */
export interface Call {
  readonly callId: string
  readonly snapshot: CallSnapshot
  /** Event id of the call's first rune; absent in logs of older versions of agentd. */
  readonly made?: number
  /** True if the run has requested approval and has not withdrawn the request. */
  readonly asked?: boolean
  /** The arguments of the call, as JSON text. */
  readonly arguments: string
  /** Hash of the call; equal calls have equal hashes. */
  readonly key: string
  /** Why the user is asked; null if the user is not asked. */
  readonly reason: string | null
  /** Questions of the call to the user; empty if the call only requests approval. */
  readonly questions: ReadonlyArray<Question>
  /** Hash that an approval must contain. Undefined if the user is not asked, or in logs of older versions of agentd. */
  readonly hash: string | undefined
}

/** A late answer, which applies when the agent repeats the call. */
export interface Grant {
  readonly by: string
  readonly answers: ReadonlyArray<string> | null
}

/** The result of a call, with the fields of the rune `turn.tools_finished`. */
export interface Summary {
  readonly call_id: string
  readonly tool: string
  readonly status: ToolMachine.Status
}

/** The deadline of a call in its current state. */
interface Due {
  readonly callId: string
  readonly entered: number
  /** When the time limit of this state started, ms since the epoch. `at`: when it ends. */
  readonly since: number
  readonly at: number
}

/** How often each call was made in the newest turn, by the key of the call. */
interface Made {
  readonly turnId: string
  readonly times: HashMap.HashMap<string, number>
  /** The call that was repeated most, if it was repeated often enough to notify the user. */
  readonly most: { readonly tool: string; readonly times: number } | undefined
}

export interface ToolsState {
  readonly made?: Made
  /** When the newest question to the user ended, ms since the epoch. */
  readonly answeredAt?: number
  readonly open: HashMap.HashMap<string, Call>
  /** Deadlines of open calls, earliest first. */
  readonly due: ReadonlyArray<Due>
  /** Number of open calls by turn. */
  readonly counts: HashMap.HashMap<string, number>
  /** Results of the newest turn's calls since the turn began to wait for its tools. */
  readonly results: ReadonlyArray<Summary>
  /** Recently ended calls with their outcome, to explain why a late answer is rejected. */
  readonly ended: ReadonlyArray<readonly [callId: string, became: string]>
  /** The rules that a person has given for one run, the newest that such an answer was given to. It holds for this run only. */
  readonly allowed?: { readonly run: string; readonly subjects: ReadonlyArray<RuleSubject> }
  /** Late answers, by the key of the call. They arrived after the call's run had ended. */
  readonly grants: HashMap.HashMap<string, Grant>
}

/** Maximum number of results in the rune that ends a turn's calls; the log contains all results. */
const MAX_TOLD = 1_000
const EXPIRED = "expired: nobody answered in time"
const MAX_ENDED = 200

export const fresh: ToolsState = {
  open: HashMap.empty(),
  due: [],
  counts: HashMap.empty(),
  results: [],
  ended: [],
  grants: HashMap.empty()
}

/** New id for a call that was recorded as running and then requests approval. Each call can do this once. */
export const lateName = (callId: string): string => `${callId}a`

export const unborn: CallSnapshot = { state: "[*]", data: ToolMachine.initial(), entered: 0, seq: 0, at: 0 }

export const get = <V>(map: HashMap.HashMap<string, V>, key: string): V | undefined =>
  Option.getOrUndefined(HashMap.get(map, key))

const callIdOf = (actorName: string): string => actorName.split("/").slice(2).join("/")

/** The rules that a person has given for the run. */
export const rulesOf = ({ allowed }: ToolsState, run: string | undefined): ReadonlyArray<Rule> =>
  allowed === undefined || allowed.run !== run
    ? []
    : allowed.subjects.map((subject) => ({ effect: "allow", subject, place: { scope: "run", at: null } }))

const allowing = ({ allowed }: ToolsState, event: ToolMachine.Event): Pick<ToolsState, "allowed"> => {
  if (event._tag !== "approved" || event.scope !== "run" || event.run === undefined) {
    return allowed === undefined ? {} : { allowed }
  }
  const { rules = [], run } = event
  const before = allowed?.run === run ? allowed.subjects : []
  const known = new Set(before.map((subject) => JSON.stringify(subject)))
  const added = rules.filter((subject) => !known.has(JSON.stringify(subject)))
  return { allowed: { run, subjects: [...before, ...added] } }
}

const ends = (
  state: ToolsState,
  { callId, key, snapshot }: Call,
  event: ToolMachine.Event,
  status: ToolMachine.Status
): ToolsState => {
  const { toolName: tool, turnId } = snapshot.data
  const open = HashMap.remove(state.open, callId)
  const due = state.due.filter((due) => due.callId !== callId)
  const next = first(open, turnId)
  const count = (get(state.counts, turnId ?? "") ?? 1) - 1
  const isGranted = event._tag === "execution_error" && event.grant !== undefined
  return {
    ...(state.made === undefined ? {} : { made: state.made }),
    ...(state.answeredAt === undefined ? {} : { answeredAt: state.answeredAt }),
    ...(state.allowed === undefined ? {} : { allowed: state.allowed }),
    open,
    // calls may run one after another: the next call's time starts when this call ends
    due: next?.snapshot.state === "pending_call" ? timed(due, next, Math.max(next.snapshot.at, snapshot.at)) : due,
    counts: count > 0 ? HashMap.set(state.counts, turnId ?? "", count) : HashMap.remove(state.counts, turnId ?? ""),
    results:
      state.results.length < MAX_TOLD
        ? [...state.results, { call_id: callId, tool: tool ?? "", status }]
        : state.results,
    ended: [
      ...state.ended.slice(1 - MAX_ENDED),
      [callId, `${tool} ${event._tag === "approval_timeout" ? EXPIRED : `ended: ${status}`}`]
    ],
    grants: isGranted
      ? HashMap.set(state.grants, key, { by: event.grant, answers: snapshot.data.answers })
      : state.grants
  }
}

/** The oldest open call of the turn. An agent that runs its calls one after another is running this call. */
const first = (open: ToolsState["open"], turnId: string | null): Call | undefined =>
  HashMap.reduce(open, undefined as Call | undefined, (oldest, call) =>
    call.snapshot.data.turnId === turnId && (oldest === undefined || (call.made ?? 0) < (oldest.made ?? 0))
      ? call
      : oldest
  )

/** Inserts the deadline of the call's current state into the sorted list of deadlines. */
const timed = (all: ReadonlyArray<Due>, call: Call, since = call.snapshot.at): ReadonlyArray<Due> => {
  const { callId, snapshot } = call
  const others = all.filter((due) => due.callId !== callId)
  const at = deadlineOf(call, since)
  if (at === Number.POSITIVE_INFINITY) return others
  const due = { callId, entered: snapshot.entered, since, at }
  const before = others.findLastIndex((other) => other.at <= at)
  return [...others.slice(0, before + 1), due, ...others.slice(before + 1)]
}

const readTool = reader(toolKinds)

export const moved = (
  state: ToolsState,
  callId: string,
  event: ToolMachine.Event,
  snapshot: CallSnapshot,
  rune: Said
): ToolsState => {
  const before = get(state.open, callId)
  const isNew = event._tag === "call_requested"
  const key = isNew
    ? (event.digest ?? Approval.keyOf(event.toolName, event.arguments))
    : (before?.key ?? Approval.keyOf(snapshot.data.toolName ?? "", undefined))
  const call: Call = {
    callId,
    snapshot,
    made: isNew ? snapshot.entered : (before?.made ?? 0),
    asked:
      (before?.asked === true && event._tag !== "withdrawn") ||
      event._tag === "requires_approval" ||
      event._tag === "auto_approved",
    arguments: isNew ? (JSON.stringify(event.arguments) ?? "null") : (before?.arguments ?? "null"),
    key,
    reason: event._tag === "requires_approval" ? event.policyReason : (before?.reason ?? null),
    questions: (event._tag === "requires_approval" ? event.questions : before?.questions) ?? [],
    hash: event._tag === "requires_approval" ? event.hash : before?.hash
  }
  const asked = before !== undefined && waits(before) && !waits(call) ? { answeredAt: snapshot.at } : {}
  const grants = event._tag === "auto_approved" ? HashMap.remove(state.grants, key) : state.grants
  const taken = { ...state, ...asked, ...allowing(state, event), grants }
  const said = readTool(rune)
  if (said?.kind === "tool.result") return ends(taken, call, event, said.payload.status)
  const turnId = snapshot.data.turnId ?? ""
  const isBehind = isNew && get(taken.counts, turnId) !== undefined
  return {
    ...taken,
    open: HashMap.set(taken.open, callId, call),
    due: isBehind || before?.snapshot.entered === snapshot.entered ? taken.due : timed(taken.due, call),
    counts: isNew ? HashMap.set(taken.counts, turnId, (get(taken.counts, turnId) ?? 0) + 1) : taken.counts,
    // a call that replaces another under a new id is not counted twice
    ...(isNew && !HashMap.some(taken.open, (one) => lateName(one.callId) === callId)
      ? { made: making(taken.made, turnId, key, snapshot.data.toolName ?? "") }
      : {}),
    // the first call of a new answer: the results of earlier calls are no longer needed
    results: isNew && get(taken.counts, turnId) === undefined ? [] : taken.results
  }
}

export const apply = (state: ToolsState, rune: Rune): ToolsState => {
  const callId = callIdOf(rune.actor)
  const event = readTool(rune)?.payload.event
  const snapshot = evolve(ToolMachine.Tool, get(state.open, callId)?.snapshot ?? unborn, rune)
  return event === undefined ? state : moved(state, callId, event, snapshot, rune)
}

/** Open calls, oldest first. */
export const openCalls = ({ open }: ToolsState): ReadonlyArray<Call> =>
  [...HashMap.values(open)].toSorted((a, b) => a.snapshot.entered - b.snapshot.entered)

/** Whether the call is open or ended recently. */
export const knows = ({ ended, open }: ToolsState, callId: string): boolean =>
  HashMap.has(open, callId) || ended.some(([id]) => id === callId)

/** Whether the call waits for the user's answer. */
export const waits = ({ snapshot }: Call): boolean => snapshot.state === "awaiting_approval"

/** True if the turn has open calls and all of them wait for the user, so that none is running. */
export const isStalled = ({ counts, open }: ToolsState, turnId: string | null): boolean =>
  get(counts, turnId ?? "") !== undefined &&
  !HashMap.some(open, (call) => call.snapshot.data.turnId === turnId && !waits(call))

/** How often one call must be repeated in a turn before the user is notified. */
const MANY = 20
/** Maximum number of different calls that are counted in one turn. */
const MAX_MADE = 10_000

const making = (made: Made | undefined, turnId: string, key: string, tool: string): Made => {
  const before = made?.turnId === turnId ? made : { turnId, times: HashMap.empty<string, number>(), most: undefined }
  const times = (get(before.times, key) ?? 0) + 1
  if (times === 1 && HashMap.size(before.times) >= MAX_MADE) return before
  const most = times >= MANY && times > (before.most?.times ?? 0) ? { tool, times } : before.most
  return { turnId, times: HashMap.set(before.times, key, times), most }
}

/**
 * Describes a repeated call, for example "the same call 20 times: shell"; undefined if no call was repeated that often.
 */
export const repeated = ({ made }: ToolsState, turnId: string | null): string | undefined =>
  made?.turnId !== turnId || made?.most === undefined
    ? undefined
    : `the same call ${made.most.times} times: ${made.most.tool}`

/** When the time limit of the call's current state ends, ms since the epoch; infinite if there is no limit. */
const deadlineOf = ({ snapshot: { data, state } }: Call, since: number): number => {
  const name = ToolMachine.Tool.states[state].timeout
  return name === undefined ? Number.POSITIVE_INFINITY : since + ToolMachine.Tool.timers[name].after(data, since)
}
