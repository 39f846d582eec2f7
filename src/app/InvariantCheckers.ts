/**
 * InvariantCheckers: checks invariants by reading the runes of one stream in order. Each checker has a small immutable
 * state, which contains only items that are currently open.
 */
import { HashMap, Option } from "effect"
import { workerKinds, toolKinds } from "../agents/machines/AgentKinds.ts"
import { turnKinds } from "../agents/machines/TurnKinds.ts"
import { seatKinds } from "../channels/ChannelKinds.ts"
import * as WorkerMachine from "../agents/machines/WorkerMachine.ts"
import type { InvariantId } from "../domain/Invariants.ts"
import { reader, type RuneOf } from "../core/event-log/EventKinds.ts"
import type { AnyChecker, Checker, Seen, Violation } from "../core/event-log/InvariantGuard.ts"
import { moveKinds } from "../goals/GoalKinds.ts"
import type * as GoalMachine from "../goals/GoalMachine.ts"

const violation = (rule: InvariantId, message: string): Violation => ({ rule, message })

const lookup = <V>(map: HashMap.HashMap<string, V>, key: string): V | undefined =>
  Option.getOrUndefined(HashMap.get(map, key))

interface Turns {
  /** For each TurnActor: the newest turn, and whether that turn is still active. */
  readonly newest: HashMap.HashMap<
    string,
    { readonly turnId: string; readonly agent: string; readonly active: boolean }
  >
}

/**
 * All runes of a turn except `turn.assistant_delta`, which is written lazily and can appear in the log after the turn's
 * end.
 */
const { "turn.assistant_delta": _, ...turnRunes } = turnKinds
const readTurn = reader(turnRunes)

const TURN_ENDS: ReadonlyArray<string> = ["turn.completed", "turn.interrupted", "turn.error"]

/** At most one turn per agent is active. After a later turn has begun, no rune of an earlier turn may follow. */
export const turns: Checker<Turns> = {
  kinds: Object.keys(turnRunes),
  initial: { newest: HashMap.empty() },
  check: ({ newest }, seen) => {
    const rune = readTurn(seen)
    if (rune === undefined) return undefined
    const { turn_id: turnId } = rune.payload
    const last = lookup(newest, rune.actor)
    if (rune.kind !== "turn.started") {
      return last?.turnId === turnId
        ? undefined
        : violation(
            "INV-TURN-ORDER",
            `turn ${turnId} is not the newest one of ${rune.actor} (${last?.turnId ?? "none"})`
          )
    }
    const { agent_id: agent } = rune.payload
    for (const other of HashMap.values(newest)) {
      if (other.turnId === turnId) return violation("INV-TURN-ORDER", `turn ${turnId} was started before`)
      if (other.active && other.agent === agent) {
        return violation("INV-TURN-SEQUENTIAL", `agent ${agent} is still in turn ${other.turnId}`)
      }
    }
    return undefined
  },
  apply: ({ newest }, seen) => {
    const rune = readTurn(seen)
    if (rune?.kind === "turn.started") {
      const { agent_id: agent, turn_id: turnId } = rune.payload
      return { newest: HashMap.set(newest, rune.actor, { turnId, agent, active: true }) }
    }
    return TURN_ENDS.includes(seen.kind)
      ? { newest: HashMap.modify(newest, seen.actor, (last) => ({ ...last, active: false })) }
      : { newest }
  }
}

interface Tools {
  readonly open: HashMap.HashMap<string, "called" | "asked" | "approved" | "denied">
  /** The most recent calls that ended with a result, newest last. */
  readonly ended: ReadonlyArray<string>
}

/** Number of ended calls that are kept, so that they can be distinguished from calls that never existed. */
const MAX_ENDED = 64

/**
 * All runes of a tool call except `tool.progress`, which is written lazily and can appear in the log after the result.
 */
const { "tool.progress": _progress, ...toolRunes } = toolKinds
const readTool = reader(toolRunes)

/**
 * A call has one result, which comes after the call. A call that requires approval does not run before it is approved.
 */
export const tools: Checker<Tools> = {
  kinds: Object.keys(toolRunes),
  initial: { open: HashMap.empty(), ended: [] },
  check: ({ open, ended }, seen) => {
    const rune = readTool(seen)
    if (rune === undefined) return undefined
    const { call_id: callId } = rune.payload
    const call = lookup(open, callId)
    if (rune.kind === "tool.call") {
      return call === undefined && !ended.includes(callId)
        ? undefined
        : violation("INV-TOOL-TERMINAL", `call ${callId} was made before; each call gets one result`)
    }
    if (call === undefined) {
      return ended.includes(callId)
        ? violation("INV-TOOL-TERMINAL", `call ${callId} has its result already`)
        : violation("INV-TOOL-CALL-BEFORE-RESULT", `call ${callId} was never made, or ended long ago`)
    }
    const ran = rune.kind === "tool.started" || (rune.kind === "tool.result" && rune.payload.status === "success")
    return ran && (call === "asked" || call === "denied")
      ? violation("INV-TOOL-APPROVAL-BEFORE-EXEC", `call ${callId} was ${call}, and ran without an approval`)
      : undefined
  },
  apply: ({ open, ended }, seen) => {
    const rune = readTool(seen)
    if (rune === undefined) return { open, ended }
    const { call_id: callId } = rune.payload
    switch (rune.kind) {
      case "tool.call":
      case "tool.approval_withdrawn":
        return { open: HashMap.set(open, callId, "called"), ended }
      case "tool.approval_requested":
        return { open: HashMap.set(open, callId, "asked"), ended }
      case "tool.approved":
        return { open: HashMap.set(open, callId, "approved"), ended }
      case "tool.denied":
        return { open: HashMap.set(open, callId, "denied"), ended }
      case "tool.result":
        return { open: HashMap.remove(open, callId), ended: [...ended, callId].slice(-MAX_ENDED) }
      case "tool.started":
        return { open, ended }
    }
  }
}

/** For each worker: the current run, if it is starting or alive. */
type Runs = HashMap.HashMap<string, string>

const readRun = reader(workerKinds)

/** The worker that a rune concerns: the rune's author, or the worker whose state the rune of a turn changes. */
const workerOf = ({ actor, moves }: Seen): string | undefined =>
  [actor, ...moves].find((name) => name.startsWith("worker/"))

const eventOf = (rune: Seen): WorkerMachine.Event | undefined => {
  const own = readRun(rune)
  return own?.kind === "worker.moved" ? own.payload.event : WorkerMachine.joins(rune)
}

/** The run that caused a worker's event; undefined if no run did. */
const sourceOf = (event: WorkerMachine.Event | undefined): string | undefined => {
  switch (event?._tag) {
    case "SessionStarted":
    case "SessionExited":
    case "GraceExceeded":
    // older runes of this event contain no run
    case "UrgentMessage":
      return event.runId
    default:
      return undefined
  }
}

/** Only a worker's current run may change the worker's state. */
export const runs: Checker<Runs> = {
  kinds: [...Object.keys(workerKinds), "turn.started", "turn.completed"],
  initial: HashMap.empty(),
  check: (state, rune) => {
    const worker = workerOf(rune)
    const event = eventOf(rune)
    const source = sourceOf(event)
    if (worker === undefined || source === undefined) return undefined
    const current = lookup(state, worker)
    return source === current
      ? undefined
      : violation("INV-RUN-FENCED", `${event?._tag} comes from run ${source}; the current one is ${current ?? "none"}`)
  },
  apply: (state, rune) => {
    const worker = workerOf(rune)
    if (worker === undefined) return state
    const event = eventOf(rune)
    if (event?._tag === "PromptReady") return HashMap.set(state, worker, event.runId)
    const isOver = event?._tag === "SessionExited" || event?._tag === "GraceExceeded"
    return isOver || rune.kind === "worker.started" ? HashMap.remove(state, worker) : state
  }
}

/** For each channel: the seat that has the floor. */
type Floors = HashMap.HashMap<string, string>

const readSeat = reader(seatKinds)

export const floors: Checker<Floors> = {
  kinds: Object.keys(seatKinds),
  initial: HashMap.empty(),
  check: (state, seen) => {
    const channel = readSeat(seen)?.payload.channel
    const holder = channel === undefined ? undefined : lookup(state, channel)
    return seen.to === "ACTIVE" && holder !== undefined && holder !== seen.actor
      ? violation("INV-FLOOR-SINGLE", `${holder} has the floor of ${channel}`)
      : undefined
  },
  apply: (state, seen) => {
    const channel = readSeat(seen)?.payload.channel
    if (channel === undefined) return state
    if (seen.to === "ACTIVE") return HashMap.set(state, channel, seen.actor)
    return lookup(state, channel) === seen.actor ? HashMap.remove(state, channel) : state
  }
}

interface Owned {
  readonly owner: string
  readonly ended: "completed" | "failed" | null
}

/** For each plan and task: the task's owner, and how the task ended. */
type Tasks = HashMap.HashMap<string, HashMap.HashMap<string, Owned>>

const taskRunes = {
  "plan.task_assigned": moveKinds["plan.task_assigned"],
  "plan.task_started": moveKinds["plan.task_started"],
  "plan.task_retried": moveKinds["plan.task_retried"],
  "plan.task_completed": moveKinds["plan.task_completed"],
  "plan.task_failed": moveKinds["plan.task_failed"],
  "plan.unblocked": moveKinds["plan.unblocked"],
  "plan.goal_met": moveKinds["plan.goal_met"],
  "plan.stopped": moveKinds["plan.stopped"]
}
const readTask = reader(taskRunes)
type TaskRune = RuneOf<typeof taskRunes, Seen>

const owned = (plan: HashMap.HashMap<string, Owned>, rune: TaskRune): HashMap.HashMap<string, Owned> => {
  const ended = (taskId: string, how: "completed" | "failed") =>
    HashMap.modify(plan, taskId, (task) => ({ ...task, ended: how }))
  switch (rune.kind) {
    case "plan.task_assigned":
      return HashMap.set(plan, rune.payload.task_id, { owner: rune.payload.agent_id, ended: null })
    case "plan.task_completed":
      return ended(rune.payload.task_id, "completed")
    case "plan.task_failed":
      return ended(rune.payload.task_id, "failed")
    case "plan.task_retried":
      return HashMap.remove(plan, rune.payload.task_id)
    case "plan.unblocked":
      return reopened(rune.payload.event).reduce((rest, id) => HashMap.remove(rest, id), plan)
    default:
      return plan
  }
}

/** Failed tasks for which a user has allowed a retry. */
const reopened = (event: GoalMachine.Event): ReadonlyArray<string> =>
  event._tag === "dependency_resolved" ? (event.tasks ?? []) : []

/**
 * A task has one owner at a time, and one end. After a restart, the same owner may resume the task; after a finished
 * attempt, another agent may. A failed task may be retried when its plan is unblocked.
 */
export const tasks: Checker<Tasks> = {
  kinds: Object.keys(taskRunes),
  initial: HashMap.empty(),
  check: (state, seen) => {
    const rune = readTask(seen)
    if (rune === undefined || rune.kind === "plan.goal_met" || rune.kind === "plan.stopped") return undefined
    const plan = lookup(state, rune.actor)
    if (rune.kind === "plan.unblocked") {
      const done = reopened(rune.payload.event).find(
        (id) => plan !== undefined && lookup(plan, id)?.ended === "completed"
      )
      return done === undefined ? undefined : violation("INV-TASK-SINGLE", `task ${done} is completed already`)
    }
    const { task_id: taskId } = rune.payload
    const task = plan === undefined ? undefined : lookup(plan, taskId)
    if (task !== undefined && task.ended !== null) {
      return violation("INV-TASK-SINGLE", `task ${taskId} has ended already`)
    }
    if (rune.kind !== "plan.task_assigned") {
      return task === undefined ? violation("INV-TASK-SINGLE", `task ${taskId} has no owner`) : undefined
    }
    return task === undefined || task.owner === rune.payload.agent_id
      ? undefined
      : violation("INV-TASK-SINGLE", `task ${taskId} belongs to ${task.owner}`)
  },
  apply: (state, seen) => {
    const rune = readTask(seen)
    if (rune === undefined) return state
    if (rune.kind === "plan.goal_met" || rune.kind === "plan.stopped") return HashMap.remove(state, rune.actor)
    const plan = lookup(state, rune.actor) ?? HashMap.empty<string, Owned>()
    return HashMap.set(state, rune.actor, owned(plan, rune))
  }
}

/** All checkers, in the order in which they are applied to a rune. */
export const checkers: ReadonlyArray<AnyChecker> = [turns, tools, runs, floors, tasks]
