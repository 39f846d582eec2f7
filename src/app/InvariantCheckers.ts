/**
 * InvariantCheckers: the invariants that can be seen broken by reading one stream's runes
 * in order. Each keeps a small immutable state: what is open now, not what was.
 */
import { HashMap, Option } from "effect"
import * as WorkerMachine from "../agents/WorkerMachine.ts"
import type { InvariantId } from "../domain/Invariants.ts"
import type { AnyChecker, Checker, Seen, Violation } from "../event-log/InvariantGuard.ts"
import type { Payload } from "../event-log/Rune.ts"

const violation = (rule: InvariantId, message: string): Violation => ({ rule, message })

const text = (payload: Payload, field: string): string => {
  const value = payload[field]
  return typeof value === "string" ? value : ""
}

const lookup = <V>(map: HashMap.HashMap<string, V>, key: string): V | undefined =>
  Option.getOrUndefined(HashMap.get(map, key))

interface Turns {
  /** The newest turn of each TurnActor, and whether it has not ended yet. */
  readonly newest: HashMap.HashMap<
    string,
    { readonly turnId: string; readonly agent: string; readonly active: boolean }
  >
}

const TURN_ENDS = ["turn.completed", "turn.interrupted", "turn.error"]

/** At most one active turn per agent; a turn that a later one has followed says nothing more. */
export const turns: Checker<Turns> = {
  kinds: ["turn.started", "turn.tool_calls_received", "turn.tools_finished", ...TURN_ENDS, "turn.finalized"],
  initial: { newest: HashMap.empty() },
  check: ({ newest }, rune) => {
    const turnId = text(rune.payload, "turn_id")
    const last = lookup(newest, rune.actor)
    if (rune.kind !== "turn.started") {
      return last?.turnId === turnId
        ? undefined
        : violation(
            "INV-TURN-ORDER",
            `turn ${turnId} is not the newest one of ${rune.actor} (${last?.turnId ?? "none"})`
          )
    }
    const agent = text(rune.payload, "agent_id")
    for (const other of HashMap.values(newest)) {
      if (other.turnId === turnId) return violation("INV-TURN-ORDER", `turn ${turnId} was started before`)
      if (other.active && other.agent === agent) {
        return violation("INV-TURN-SEQUENTIAL", `agent ${agent} is still in turn ${other.turnId}`)
      }
    }
    return undefined
  },
  apply: ({ newest }, rune) => {
    const turnId = text(rune.payload, "turn_id")
    if (rune.kind === "turn.started") {
      return {
        newest: HashMap.set(newest, rune.actor, { turnId, agent: text(rune.payload, "agent_id"), active: true })
      }
    }
    return TURN_ENDS.includes(rune.kind)
      ? { newest: HashMap.modify(newest, rune.actor, (last) => ({ ...last, active: false })) }
      : { newest }
  }
}

interface Tools {
  readonly open: HashMap.HashMap<string, "called" | "asked" | "approved" | "denied">
  /** The last calls that got their result, newest last. */
  readonly ended: ReadonlyArray<string>
}

/** So many ended calls are told from calls that never were. */
const MAX_ENDED = 64

/** One result per call, after the call; nothing runs between the question and its answer. */
export const tools: Checker<Tools> = {
  // Not tool.progress: it is lazy, and may be written after the result.
  kinds: ["tool.call", "tool.approval_requested", "tool.approved", "tool.denied", "tool.started", "tool.result"],
  initial: { open: HashMap.empty(), ended: [] },
  check: ({ open, ended }, rune) => {
    const callId = text(rune.payload, "call_id")
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
    const ran =
      rune.kind === "tool.started" || (rune.kind === "tool.result" && text(rune.payload, "status") === "success")
    return ran && (call === "asked" || call === "denied")
      ? violation("INV-TOOL-APPROVAL-BEFORE-EXEC", `call ${callId} was ${call}, and ran without an approval`)
      : undefined
  },
  apply: ({ open, ended }, rune) => {
    const callId = text(rune.payload, "call_id")
    switch (rune.kind) {
      case "tool.call":
        return { open: HashMap.set(open, callId, "called"), ended }
      case "tool.approval_requested":
        return { open: HashMap.set(open, callId, "asked"), ended }
      case "tool.approved":
        return { open: HashMap.set(open, callId, "approved"), ended }
      case "tool.denied":
        return { open: HashMap.set(open, callId, "denied"), ended }
      case "tool.result":
        return { open: HashMap.remove(open, callId), ended: [...ended, callId].slice(-MAX_ENDED) }
      default:
        return { open, ended }
    }
  }
}

/** The run of each worker that is spawning or alive. */
type Runs = HashMap.HashMap<string, string>

const OF_A_RUN = ["SessionStarted", "SessionExited", "GraceExceeded"]

/** Whose run a rune tells of: the worker that wrote it, or that a turn's rune moves. */
const workerOf = ({ actor, moves }: Seen): string | undefined =>
  [actor, ...moves].find((name) => name.startsWith("worker/"))

const eventOf = (rune: Seen): { readonly tag: string; readonly runId: string } => {
  const event = WorkerMachine.joins(rune) ?? rune.payload["event"]
  if (typeof event !== "object" || event === null) return { tag: "", runId: "" }
  return {
    tag: "_tag" in event ? String(event._tag) : "",
    runId: "runId" in event && typeof event.runId === "string" ? event.runId : ""
  }
}

/** A worker is moved by its current run alone. */
export const runs: Checker<Runs> = {
  kinds: ["worker.started", "worker.moved", "turn.started", "turn.completed"],
  initial: HashMap.empty(),
  check: (state, rune) => {
    const worker = workerOf(rune)
    if (worker === undefined || rune.kind === "worker.started") return undefined
    const { tag, runId } = eventOf(rune)
    const current = lookup(state, worker)
    // in runes of before it named no run
    const isNamed = OF_A_RUN.includes(tag) || (tag === "UrgentMessage" && runId !== "")
    return isNamed && runId !== current
      ? violation("INV-RUN-FENCED", `${tag} comes from run ${runId}; the current one is ${current ?? "none"}`)
      : undefined
  },
  apply: (state, rune) => {
    const worker = workerOf(rune)
    if (worker === undefined) return state
    const { tag, runId } = eventOf(rune)
    if (rune.kind === "worker.started" || tag === "SessionExited" || tag === "GraceExceeded") {
      return HashMap.remove(state, worker)
    }
    return tag === "PromptReady" ? HashMap.set(state, worker, runId) : state
  }
}

/** Who has the floor of each channel. */
type Floors = HashMap.HashMap<string, string>

export const floors: Checker<Floors> = {
  kinds: ["seat.moved"],
  initial: HashMap.empty(),
  check: (state, rune) => {
    const channel = text(rune.payload, "channel")
    const holder = lookup(state, channel)
    return rune.to === "ACTIVE" && holder !== undefined && holder !== rune.actor
      ? violation("INV-FLOOR-SINGLE", `the floor of ${channel} is with ${holder}`)
      : undefined
  },
  apply: (state, rune) => {
    const channel = text(rune.payload, "channel")
    if (rune.to === "ACTIVE") return HashMap.set(state, channel, rune.actor)
    return lookup(state, channel) === rune.actor ? HashMap.remove(state, channel) : state
  }
}

interface Owned {
  readonly owner: string
  readonly ended: "completed" | "failed" | null
}

/** By plan, then by task: its owner, and how it has ended. */
type Tasks = HashMap.HashMap<string, HashMap.HashMap<string, Owned>>

const PLAN_ENDS = ["plan.goal_met", "plan.stopped"]
const TASK_ENDS = ["plan.task_completed", "plan.task_failed"]

const owned = (
  plan: HashMap.HashMap<string, Owned>,
  taskId: string,
  { kind, payload }: Seen
): HashMap.HashMap<string, Owned> => {
  switch (kind) {
    case "plan.task_assigned":
      return HashMap.set(plan, taskId, { owner: text(payload, "agent_id"), ended: null })
    case "plan.task_completed":
      return HashMap.modify(plan, taskId, (task) => ({ ...task, ended: "completed" as const }))
    case "plan.task_failed":
      return HashMap.modify(plan, taskId, (task) => ({ ...task, ended: "failed" as const }))
    case "plan.task_retried":
      return HashMap.remove(plan, taskId)
    case "plan.unblocked":
      return reopened(payload).reduce((rest, id) => HashMap.remove(rest, id), plan)
    default:
      return plan
  }
}

/** Failed tasks that a person lets be tried again. */
const reopened = (payload: Payload): ReadonlyArray<string> => {
  const event = payload["event"]
  const list = typeof event === "object" && event !== null && "tasks" in event ? event.tasks : undefined
  return Array.isArray(list) ? list.filter((id): id is string => typeof id === "string") : []
}

/**
 * One owner at a time, one end. The same owner may take a task up again after a restart,
 * another one when a try is over; one that failed may be tried again when its plan is unblocked.
 */
export const tasks: Checker<Tasks> = {
  kinds: ["plan.task_assigned", "plan.task_started", "plan.task_retried", "plan.unblocked", ...TASK_ENDS, ...PLAN_ENDS],
  initial: HashMap.empty(),
  check: (state, rune) => {
    if (PLAN_ENDS.includes(rune.kind)) return undefined
    const plan = lookup(state, rune.actor)
    if (rune.kind === "plan.unblocked") {
      const done = reopened(rune.payload).find((id) => plan !== undefined && lookup(plan, id)?.ended === "completed")
      return done === undefined ? undefined : violation("INV-TASK-SINGLE", `task ${done} is completed already`)
    }
    const taskId = text(rune.payload, "task_id")
    const task = plan === undefined ? undefined : lookup(plan, taskId)
    if (task !== undefined && task.ended !== null) {
      return violation("INV-TASK-SINGLE", `task ${taskId} has ended already`)
    }
    if (rune.kind !== "plan.task_assigned") {
      return task === undefined ? violation("INV-TASK-SINGLE", `task ${taskId} has no owner`) : undefined
    }
    return task === undefined || task.owner === text(rune.payload, "agent_id")
      ? undefined
      : violation("INV-TASK-SINGLE", `task ${taskId} belongs to ${task.owner}`)
  },
  apply: (state, rune) => {
    if (PLAN_ENDS.includes(rune.kind)) return HashMap.remove(state, rune.actor)
    const taskId = text(rune.payload, "task_id")
    const plan = lookup(state, rune.actor) ?? HashMap.empty<string, Owned>()
    return HashMap.set(state, rune.actor, owned(plan, taskId, rune))
  }
}

/** All of them, in the order in which a rune is held against them. */
export const checkers: ReadonlyArray<AnyChecker> = [turns, tools, runs, floors, tasks].map(
  (checker) => checker as unknown as AnyChecker
)
