/**
 * ToolsState: the tool calls of one agent that have no result yet, those that ended
 * lately, and the answers that came too late and hold. A pure fold.
 */
import { HashMap, Option } from "effect"
import type { Question } from "../../runs/Question.ts"
import { reader, type Said } from "../../core/event-log/EventKinds.ts"
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
  /** The rune that it begins with; of an older daemon not known. */
  readonly made?: number
  /** True once its run has asked for leave, and has not taken the question back. */
  readonly asked?: boolean
  /** JSON. */
  readonly arguments: string
  /** The same for calls that are the same. */
  readonly key: string
  /** Why a person is asked; null while nobody is. */
  readonly reason: string | null
  /** Questions of the call; none: it asks for leave. */
  readonly questions: ReadonlyArray<Question>
  /** The hash that an approval names; undefined where nobody is asked, or an older daemon was. */
  readonly hash: string | undefined
}

/** An answer that holds for the same call when it is made again. */
export interface Grant {
  readonly by: string
  readonly answers: ReadonlyArray<string> | null
}

/** A call's result, as `turn.tools_finished` tells it. */
export interface Summary {
  readonly call_id: string
  readonly tool: string
  readonly status: ToolMachine.Status
}

/** A limit on a call's time, by the state that it is in. */
interface Due {
  readonly callId: string
  readonly entered: number
  /** ms since the epoch */
  readonly since: number
  readonly at: number
}

/** The calls of the newest turn, by their keys: how often each was made. */
interface Made {
  readonly turnId: string
  readonly times: HashMap.HashMap<string, number>
  /** The one that was made most often, where that is often. */
  readonly most: { readonly tool: string; readonly times: number } | undefined
}

export interface ToolsState {
  readonly made?: Made
  /** When the newest question to a person was over, ms since the epoch. */
  readonly answeredAt?: number
  readonly open: HashMap.HashMap<string, Call>
  /** When the time of each runs out, the soonest first. */
  readonly due: ReadonlyArray<Due>
  /** How many of them each turn has. */
  readonly counts: HashMap.HashMap<string, number>
  /** Of the newest turn's calls that have ended since it went to its tools. */
  readonly results: ReadonlyArray<Summary>
  /** Calls that ended lately, with what became of them: for answers that come too late. */
  readonly ended: ReadonlyArray<readonly [callId: string, became: string]>
  /** Answers that came when their run was over, by the call's key. */
  readonly grants: HashMap.HashMap<string, Grant>
}

/** Results that are told with the end of a turn's calls; the log has them all. */
const MAX_TOLD = 1_000
const EXPIRED = "expired: nobody answered in time"
/** Calls whose end is remembered, for those who answer too late. */
const MAX_ENDED = 200

export const fresh: ToolsState = {
  open: HashMap.empty(),
  due: [],
  counts: HashMap.empty(),
  results: [],
  ended: [],
  grants: HashMap.empty()
}

/** The name of a call that asks although it was taken to run: each asks at most once. */
export const lateName = (callId: string): string => `${callId}a`

export const unborn: CallSnapshot = { state: "[*]", data: ToolMachine.initial(), entered: 0, seq: 0, at: 0 }

export const get = <V>(map: HashMap.HashMap<string, V>, key: string): V | undefined =>
  Option.getOrUndefined(HashMap.get(map, key))

const callIdOf = (actorName: string): string => actorName.split("/").slice(2).join("/")

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
    open,
    // it may have waited for this one
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

/** The oldest open call of the turn. Agents that run one call after the other run that one. */
const first = (open: ToolsState["open"], turnId: string | null): Call | undefined =>
  HashMap.reduce(open, undefined as Call | undefined, (oldest, call) =>
    call.snapshot.data.turnId === turnId && (oldest === undefined || (call.made ?? 0) < (oldest.made ?? 0))
      ? call
      : oldest
  )

/** The limit of the state that a call is in now, among those of the others. */
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
  const taken = { ...state, ...asked, grants }
  const said = readTool(rune)
  if (said?.kind === "tool.result") return ends(taken, call, event, said.payload.status)
  const turnId = snapshot.data.turnId ?? ""
  const isBehind = isNew && get(taken.counts, turnId) !== undefined
  return {
    ...taken,
    open: HashMap.set(taken.open, callId, call),
    due: isBehind || before?.snapshot.entered === snapshot.entered ? taken.due : timed(taken.due, call),
    counts: isNew ? HashMap.set(taken.counts, turnId, (get(taken.counts, turnId) ?? 0) + 1) : taken.counts,
    // one that is begun anew, under its late name, is no further one
    ...(isNew && !HashMap.some(taken.open, (one) => lateName(one.callId) === callId)
      ? { made: making(taken.made, turnId, key, snapshot.data.toolName ?? "") }
      : {}),
    // the calls of another answer
    results: isNew && get(taken.counts, turnId) === undefined ? [] : taken.results
  }
}

export const apply = (state: ToolsState, rune: Rune): ToolsState => {
  const callId = callIdOf(rune.actor)
  const event = readTool(rune)?.payload.event
  const snapshot = evolve(ToolMachine.Tool, get(state.open, callId)?.snapshot ?? unborn, rune)
  return event === undefined ? state : moved(state, callId, event, snapshot, rune)
}

/** Oldest first. */
export const openCalls = ({ open }: ToolsState): ReadonlyArray<Call> =>
  [...HashMap.values(open)].toSorted((a, b) => a.snapshot.entered - b.snapshot.entered)

/** Whether the call is open or has ended lately. */
export const knows = ({ ended, open }: ToolsState, callId: string): boolean =>
  HashMap.has(open, callId) || ended.some(([id]) => id === callId)

/** A person is asked, and its run waits for the answer. */
export const waits = ({ snapshot }: Call): boolean => snapshot.state === "awaiting_approval"

/** Every open call of the turn waits for a person, and there is one: nothing executes. */
export const isStalled = ({ counts, open }: ToolsState, turnId: string | null): boolean =>
  get(counts, turnId ?? "") !== undefined &&
  !HashMap.some(open, (call) => call.snapshot.data.turnId === turnId && !waits(call))

/** The same calls of a turn that a person is told of. */
const MANY = 20
/** Different calls of a turn that are counted. */
const MAX_MADE = 10_000

const making = (made: Made | undefined, turnId: string, key: string, tool: string): Made => {
  const before = made?.turnId === turnId ? made : { turnId, times: HashMap.empty<string, number>(), most: undefined }
  const times = (get(before.times, key) ?? 0) + 1
  if (times === 1 && HashMap.size(before.times) >= MAX_MADE) return before
  const most = times >= MANY && times > (before.most?.times ?? 0) ? { tool, times } : before.most
  return { turnId, times: HashMap.set(before.times, key, times), most }
}

/** "the same call 20 times: shell"; undefined where the turn repeats none so often. */
export const repeated = ({ made }: ToolsState, turnId: string | null): string | undefined =>
  made?.turnId !== turnId || made?.most === undefined
    ? undefined
    : `the same call ${made.most.times} times: ${made.most.tool}`

/** The end of the call's time in its state; infinite where it is not limited. */
const deadlineOf = ({ snapshot: { data, state } }: Call, since: number): number => {
  const name = ToolMachine.Tool.states[state].timeout
  return name === undefined ? Number.POSITIVE_INFINITY : since + ToolMachine.Tool.timers[name].after(data, since)
}
