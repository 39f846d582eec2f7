/**
 * GoalHistory: summarizes how a goal reached its current state: the request, the errors, the progress, and the branches
 * with completed work.
 *
 * Pure, except for reading the log. The summary covers no rune after the given one, and its length is bounded.
 */
import { Effect } from "effect"
import type { EventLog } from "../core/event-log/EventLog.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { readGoal } from "./GoalActor.ts"
import { actorOf, eventOf, type GoalState } from "./GoalState.ts"
import { cut } from "./Ellipsis.ts"
import * as ReviewGate from "./ReviewGate.ts"

export interface Line {
  /** When the step happened, ms since the epoch. */
  readonly at: number
  readonly text: string
}

/** Maximum number of steps and of branches that are listed; the newest are kept. */
const MAX_STEPS = 12
const MAX_BRANCHES = 10
const MAX_TEXT = 300

const lineOf = (text: string): string => cut(text.replaceAll(/\s+/g, " ").trim(), MAX_TEXT)

/** Describes one step. Undefined for a step that the summary omits, such as a successful one. */
const stepOf = (rune: Rune): string | undefined => {
  const event = eventOf(rune)
  switch (event?._tag) {
    case "plan_rejected":
      return `${event.by} rejected the plan: ${event.reason || "no reason"}`
    case "task_retried":
      return event.counts ? `${event.taskId} failed and will be retried: ${event.error}` : undefined
    case "task_failed":
      return `${event.taskId} failed: ${event.error}`
    case "critique": {
      const [first, ...more] = event.findings.filter(({ severity }) => severity === "error")
      if (first === undefined) return undefined
      const about = first.task === undefined ? "" : `${first.task}: `
      return `the review found: ${about}${first.message}${more.length === 0 ? "" : ` (and ${more.length} more)`}`
    }
    case "needs_replan":
      return `the review requires another plan: ${event.reason}`
    case "all_runnable_blocked":
      return `it was blocked: ${event.reason}`
    case "dependency_resolved":
      return `it continued: ${event.reason}`
    default:
      return undefined
  }
}

const standing = ({ plan, total }: GoalState): string => {
  const { completed, ...others } = plan.counts
  const rest = Object.entries(others).flatMap(([state, count]) => (count === 0 ? [] : [`${count} ${state}`]))
  return [
    `${completed} of ${Math.max(total, plan.size)} tasks done`,
    ...rest,
    plan.errors === 1 ? "1 error" : `${plan.errors} errors`
  ].join(", ")
}

const works = (goal: GoalState): ReadonlyArray<string> => {
  const all = ReviewGate.worksOf(goal.plan)
  const more = all.length > MAX_BRANCHES ? [`done, on ${all.length - MAX_BRANCHES} more branches`] : []
  return [
    ...all
      .slice(-MAX_BRANCHES)
      .map(({ branch, head, tasks }) => `done, on ${branch} at ${head.slice(0, 12)}: ${tasks.join(", ")}`),
    ...more
  ]
}

/** The summary of a goal; empty if the actor is not a goal. */
export const story = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  of: { readonly stream: string; readonly actor: string; readonly upTo: number }
) {
  const goalId = of.actor.slice(actorOf("").length)
  if (of.actor !== actorOf(goalId)) return []
  const steps: Array<Line> = []
  let left = 0
  const goal = yield* readGoal(log, of.stream, goalId, (rune) => {
    if (rune.eventId > of.upTo) return false
    const text = rune.eventId === of.upTo ? undefined : stepOf(rune)
    if (text !== undefined && steps.push({ at: rune.at, text: lineOf(text) }) > MAX_STEPS) {
      steps.shift()
      left++
    }
    return true
  })
  const now = (text: string): Line => ({ at: goal.stand.at, text: lineOf(text) })
  return [
    { at: goal.submittedAt, text: lineOf(`${goal.by} submitted this goal: ${goal.goal}`) },
    ...(left === 0 ? [] : [{ at: steps[0]!.at, text: `… after ${left} earlier steps` }]),
    ...steps,
    now(standing(goal)),
    ...works(goal).map(now)
  ]
})
