/**
 * GoalState: all that is known of one goal: a fold over its runes, beside the machine's
 * own small state.
 *
 * Guarantees: `apply` over a goal's runes, in order, gives the same book whether
 * they are read from the log or told one by one; a move costs what it touches.
 */
import type { Finding, GoalOptions, Task } from "../domain/GoalMessages.ts"
import * as GoalMachine from "./GoalMachine.ts"
import { evolve, type Snapshot } from "../event-actor/StateMachine.ts"
import { Plan } from "./Plan.ts"

export type Stand = Snapshot<GoalMachine.State, GoalMachine.Data>

/** What is read of a rune. */
export interface Told {
  readonly eventId: number
  readonly seq: number
  readonly at: number
  readonly event: GoalMachine.Event
}

export const actorOf = (goalId: string): string => `plan/${goalId}`

export const startOf = (): Stand => ({
  state: GoalMachine.Autonomy.initial,
  data: GoalMachine.initial(),
  entered: 0,
  seq: 0,
  at: 0
})

/** Where a rune of the goal leads; a rune that does not step throws. */
export const onward = (stand: Stand, told: Told): Stand =>
  evolve(GoalMachine.Autonomy, stand, {
    eventId: told.eventId,
    seq: told.seq,
    at: told.at,
    payload: { event: told.event }
  })

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && name in value ? (value as { [key: string]: unknown })[name] : undefined

const textOf = (value: unknown, name: string): string | null => {
  const found = field(value, name)
  return typeof found === "string" ? found : null
}

/** Those of which a task comes. */
export const mendable = (findings: ReadonlyArray<Finding>): ReadonlyArray<Finding> =>
  findings.filter(({ forPerson, severity }) => severity === "error" && forPerson !== true)

export class GoalState {
  goal = ""
  by = ""
  submittedAt = 0
  options: GoalOptions | undefined = undefined
  plan: Plan = new Plan()
  /** So many tasks the plan has once all of its pieces are there. */
  total = 0
  /** Tasks of plans that were replaced which somebody has worked on: their ids are used up. */
  private readonly former = new Set<string>()
  /** Why the newest plan was sent back; null where none was. */
  rejected: string | null = null
  /** Of the newest review. */
  findings: ReadonlyArray<Finding> = []
  /** Tasks that have a follow-up, which stands for them. */
  readonly followed = new Set<string>()
  /** Why a plan is to be revised; null where it is not. */
  revise: string | null = null
  /** The rune that holds them. */
  reviewed = 0
  /** When tasks began to be worked on, ms since the epoch. */
  executingSince = 0
  /** Tasks that each agent was given. */
  readonly loads = new Map<string, number>()

  apply({ at, event, eventId }: Told): void {
    const { plan } = this
    switch (event._tag) {
      case "goal_submitted":
        this.goal = event.goal
        this.by = event.by
        this.submittedAt = at
        this.options = event.options
        return
      case "decompose_goal":
        for (const node of plan.nodes) if (node.attempts > 0) this.former.add(node.task.id)
        this.plan = new Plan()
        this.total = event.total ?? event.tasks.length
        this.plan.add(event.tasks as ReadonlyArray<Task>, at)
        return
      case "plan_updated":
        this.total = event.total ?? this.total + event.added.length
        plan.add(event.added as ReadonlyArray<Task>, at)
        for (const id of event.cancelled) plan.cancel(id, at)
        if (plan.size >= this.total) this.revise = null
        return
      case "plan_approved":
      case "auto_start":
        this.executingSince = at
        this.revise = null
        this.rejected = null
        return
      case "plan_rejected":
        this.rejected = event.reason
        this.revise = null
        return
      case "critique":
        this.findings = event.findings as ReadonlyArray<Finding>
        this.reviewed = eventId
        return
      case "critique_found_issues":
        this.total += event.tasks.length
        this.follow(event.tasks.length)
        plan.add(event.tasks as ReadonlyArray<Task>, at)
        return
      case "needs_replan":
        this.revise = event.reason
        return
      case "dependency_resolved":
        for (const id of event.tasks ?? []) plan.reopen(id, at)
        return
      default:
        this.applyToTask(event, eventId, at)
    }
  }

  /** Its follow-ups are in the order of the errors that they came of. */
  private follow(count: number): void {
    for (const { task } of mendable(this.findings).slice(0, count)) if (task !== undefined) this.followed.add(task)
  }

  private applyToTask(event: GoalMachine.Event, eventId: number, at: number): void {
    const { plan } = this
    switch (event._tag) {
      case "task_assigned":
        this.loads.set(event.agentId, (this.loads.get(event.agentId) ?? 0) + 1)
        return plan.assign(
          event.taskId,
          { agent: event.agentId, messageId: event.messageId ?? "", base: event.base ?? null, eventId },
          at
        )
      case "task_started":
        return plan.start(event.taskId, event.base ?? null, at)
      case "task_completed":
        return plan.complete(
          event.taskId,
          {
            eventId,
            branch: textOf(event.evidence, "branch"),
            cwd: textOf(event.evidence, "cwd"),
            head: textOf(event.evidence, "head")
          },
          at
        )
      case "task_failed":
        return plan.fail(event.taskId, event.error, at)
      case "task_retried":
        return plan.release(event.taskId, { error: event.error, counts: event.counts, until: event.until }, at)
      case "user_cancel":
      case "budget_exhausted":
      case "unresolvable":
        // what was in flight is no more
        for (const id of plan.inFlight.keys()) plan.cancel(id, at)
    }
  }

  /** Ids that a plan in the place of this one may not use again, nor build on. */
  get used(): Map<string, boolean> {
    const used = new Map([...this.former].map((id) => [id, false]))
    for (const { attempts, task } of this.plan.nodes) if (attempts > 0) used.set(task.id, false)
    return used
  }

  /** Ids that a revision of this plan may not use again: true for those that it may build on. */
  get known(): Map<string, boolean> {
    const known = new Map([...this.former].map((id) => [id, false]))
    for (const { state, task } of this.plan.nodes) known.set(task.id, state !== "failed" && state !== "cancelled")
    return known
  }
}
