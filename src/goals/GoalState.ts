/**
 * GoalState: the state of one goal: its machine's state and its plan. A fold over the goal's runes.
 *
 * Guarantees: a state is immutable; `apply` returns a new one that shares unchanged parts. The same runes in the same
 * order give the same state, whether they are read from the log or applied one by one. The cost of a state change
 * depends only on what it changes.
 */
import { type Finding, type GoalOptions, lacksCommit } from "../domain/GoalMessages.ts"
import type { Said } from "../core/event-log/EventKinds.ts"
import { readMove } from "./GoalKinds.ts"
import * as GoalMachine from "./GoalMachine.ts"
import { stateMachineActor } from "../core/event-actor/StateMachineActor.ts"
import type { Snapshot } from "../core/event-actor/StateMachine.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { Plan, type Row } from "./Plan.ts"

export type Stand = Snapshot<GoalMachine.State, GoalMachine.Data>

export const table = stateMachineActor({ machine: GoalMachine.Autonomy, data: GoalMachine.initial() })

export const isFinal = ({ state }: Stand): boolean => GoalMachine.Autonomy.final.includes(state)

export const eventOf = (rune: Said): GoalMachine.Event | undefined => readMove(rune)?.payload.event

export const actorOf = (goalId: string): string => `plan/${goalId}`

/** The findings that become follow-up tasks: errors that an agent can fix. */
export const mendable = (findings: ReadonlyArray<Finding>): ReadonlyArray<Finding> =>
  findings.filter(({ forPerson, severity }) => severity === "error" && forPerson !== true)

export interface GoalState {
  readonly stand: Stand
  /** `eventId` of the newest rune that the state includes. */
  readonly upTo: number
  readonly goal: string
  readonly by: string
  readonly submittedAt: number
  readonly options: GoalOptions | undefined
  readonly plan: Plan
  /** Number of tasks that the plan has once all its pieces have been added. */
  readonly total: number
  /** Ids of tasks in replaced plans that agents worked on. These ids must not be used again. */
  readonly former: ReadonlySet<string>
  /** Why the newest plan was rejected; null if it was not. */
  readonly rejected: string | null
  /** The findings of the newest review. */
  readonly findings: ReadonlyArray<Finding>
  /** Ids of failed tasks that have a follow-up task. */
  readonly followed: ReadonlySet<string>
  /** Why the plan must be revised; null if it need not be. */
  readonly revise: string | null
  /** `eventId` of the rune with the newest review's findings; 0 before the first review. */
  readonly reviewed: number
  /** When work on the tasks began, ms since the epoch. */
  readonly executingSince: number
  /** Number of tasks that were assigned to each agent. */
  readonly loads: ReadonlyMap<string, number>
}

export const initial: GoalState = {
  stand: table.initial,
  upTo: 0,
  goal: "",
  by: "",
  submittedAt: 0,
  options: undefined,
  plan: Plan.empty,
  total: 0,
  former: new Set(),
  rejected: null,
  findings: [],
  followed: new Set(),
  revise: null,
  reviewed: 0,
  executingSince: 0,
  loads: new Map()
}

/** Throws if the state machine's table does not allow the rune. */
export const apply = (before: GoalState, rune: Rune): GoalState => {
  const stand = table.apply(before.stand, rune, false)
  const event = eventOf(rune)
  return { ...before, stand, upTo: rune.eventId, ...(event === undefined ? {} : changes(before, event, rune)) }
}

const changes = (before: GoalState, event: GoalMachine.Event, { at, eventId }: Rune): Partial<GoalState> => {
  const { plan } = before
  switch (event._tag) {
    case "goal_submitted":
      return { goal: event.goal, by: event.by, submittedAt: at, options: event.options }
    case "decompose_goal":
      return {
        former: new Set([...before.former, ...workedOn(plan)]),
        plan: Plan.empty.add(event.tasks, at),
        total: event.total ?? event.tasks.length
      }
    case "plan_updated": {
      const total = event.total ?? before.total + event.added.length
      const next = event.cancelled.reduce((all, id) => all.cancel(id, at), plan.add(event.added, at))
      return { total, plan: next, revise: next.size >= total ? null : before.revise }
    }
    case "plan_approved":
    case "auto_start":
      return { executingSince: at, revise: null, rejected: null }
    case "plan_rejected":
      return { rejected: event.reason, revise: null }
    case "critique":
      return { findings: event.findings, reviewed: eventId }
    case "critique_found_issues":
      return {
        total: before.total + event.tasks.length,
        followed: new Set([...before.followed, ...followedUp(before.findings, event.tasks.length)]),
        plan: plan.add(event.tasks, at)
      }
    case "needs_replan":
      return { revise: event.reason }
    case "dependency_resolved":
      return { plan: (event.tasks ?? []).reduce((all, id) => all.reopen(id, at), plan) }
    case "task_assigned": {
      const loads = new Map(before.loads)
      loads.set(event.agentId, (loads.get(event.agentId) ?? 0) + 1)
      return { loads, plan: planAfter(plan, event, eventId, at) }
    }
    default:
      return { plan: planAfter(plan, event, eventId, at) }
  }
}

/** Ids of the tasks in which the first `count` fixable errors were found. Follow-up tasks have the same order. */
const followedUp = (findings: ReadonlyArray<Finding>, count: number): ReadonlyArray<string> =>
  mendable(findings)
    .slice(0, count)
    .flatMap(({ task }) => task ?? [])

const workedOn = (plan: Plan): ReadonlyArray<string> =>
  plan.nodes.filter(({ attempts }) => attempts > 0).map(({ task }) => task.id)

const planAfter = (plan: Plan, event: GoalMachine.Event, eventId: number, at: number): Plan => {
  switch (event._tag) {
    case "task_assigned":
      return plan.assign(
        event.taskId,
        { agent: event.agentId, messageId: event.messageId ?? "", base: event.base ?? null, eventId },
        at
      )
    case "task_started":
      return plan.start(event.taskId, event.base ?? null, at)
    case "task_completed": {
      const { evidence } = event
      const { branch = null, cwd = null, head = null } = evidence ?? {}
      const noCommit = evidence !== null && lacksCommit(evidence) ? { noCommit: true } : {}
      return plan.complete(event.taskId, { eventId, branch, cwd, head, ...noCommit }, at)
    }
    case "task_failed":
      return plan.fail(event.taskId, event.error, at)
    case "task_retried":
      return plan.release(event.taskId, { error: event.error, counts: event.counts, until: event.until }, at)
    case "user_cancel":
    case "budget_exhausted":
    case "unresolvable":
      // tasks in progress end with the goal
      return plan.inFlight.reduce((all, { task }) => all.cancel(task.id, at), plan)
    default:
      return plan
  }
}

/** Task ids that a plan replacing this one must not reuse or depend on. Maps every id to false. */
export const usedBy = ({ former, plan }: GoalState): ReadonlyMap<string, boolean> =>
  new Map([...former, ...workedOn(plan)].map((id) => [id, false]))

/** Task ids that a revision of this plan must not reuse. Maps each id to true if new tasks may depend on the task. */
export const knownTo = ({ former, plan }: GoalState): ReadonlyMap<string, boolean> => {
  const known = new Map([...former].map((id) => [id, false]))
  for (const { state, task } of plan.nodes) known.set(task.id, state !== "failed" && state !== "cancelled")
  return known
}

/** The state as plain data, for a snapshot. */
export interface PlainGoal extends Omit<GoalState, "followed" | "former" | "loads" | "options" | "plan"> {
  readonly options: GoalOptions | null
  readonly plan: ReadonlyArray<Row>
  readonly former: ReadonlyArray<string>
  readonly followed: ReadonlyArray<string>
  readonly loads: ReadonlyArray<readonly [agent: string, tasks: number]>
}

export const toPlain = (goal: GoalState): PlainGoal => ({
  ...goal,
  options: goal.options ?? null,
  plan: goal.plan.rows(),
  former: [...goal.former],
  followed: [...goal.followed],
  loads: [...goal.loads]
})

export const fromPlain = (plain: PlainGoal): GoalState => ({
  ...plain,
  options: plain.options ?? undefined,
  plan: Plan.of(plain.plan),
  former: new Set(plain.former),
  followed: new Set(plain.followed),
  loads: new Map(plain.loads)
})
