/**
 * GoalWhy: explains why a goal is in its state, in plain sentences, newest last, and what the user can do next.
 *
 * Pure, except for reading the goal's runes. Guarantees: the explanation is bounded for any history. It has the first
 * step and the newest ones, and says how many are left out.
 */
import { Effect } from "effect"
import { type Finding, type GoalInfo, type GoalPage, lacksCommit, type TaskInfo } from "../domain/GoalMessages.ts"
import type { WhyLine } from "../domain/Messages.ts"
import { keyIn, said } from "../domain/ScheduleKey.ts"
import type { EventLog } from "../core/event-log/EventLog.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { cut } from "./Ellipsis.ts"
import { readGoal } from "./GoalActor.ts"
import type * as GoalMachine from "./GoalMachine.ts"
import { eventOf } from "./GoalState.ts"

/** Maximum number of steps in an explanation, and of lines about the current state. */
const MAX_STEPS = 20
const MAX_NOW = 8
const MAX_TEXT = 300

export interface GoalStory {
  readonly lines: ReadonlyArray<WhyLine>
  /** The next step for the user; null if there is nothing to do. */
  readonly advice: string | null
}

const tasks = (count: number): string => `${count} ${count === 1 ? "task" : "tasks"}`

const found = (findings: ReadonlyArray<Finding>): string => {
  const errors = findings.filter(({ severity }) => severity === "error")
  const [first = findings[0]] = errors
  if (first === undefined) return "the review found nothing"
  const about = first.task === undefined ? "" : `${first.task}: `
  const more = findings.length === 1 ? "" : ` (and ${findings.length - 1} more)`
  return `the review found${errors.length === 0 ? ", but accepts," : ""} ${about}${first.message}${more}`
}

/** The goal's submitter: a user, or a schedule with its due time. */
const giverOf = ({ by, key = "" }: Extract<GoalMachine.Event, { _tag: "goal_submitted" }>): string => {
  const schedule = keyIn(key)
  return schedule === undefined ? by : `${said(schedule)},`
}

/** Describes one step. Undefined if the description would add nothing to the steps before and after it. */
export const stepOf = (event: GoalMachine.Event | undefined): string | undefined => {
  switch (event?._tag) {
    case "goal_submitted":
      return `${giverOf(event)} submitted this goal: ${event.goal}`
    case "decompose_goal":
      return `it has a plan of ${tasks(event.total ?? event.tasks.length)}`
    case "plan_approved":
      return `${event.by} approved the plan`
    case "auto_start":
      return "the plan runs without approval, as the project's settings say"
    case "plan_rejected":
      return `${event.by} rejected the plan: ${event.reason || "no reason"}`
    case "task_retried":
      return event.counts ? `${event.taskId} failed and will be retried: ${event.error}` : undefined
    case "task_completed":
      return `${event.taskId} is done${event.evidence !== null && lacksCommit(event.evidence) ? ": no commit" : ""}`
    case "task_failed":
      return `${event.taskId} failed: ${event.error}`
    case "all_tasks_terminal":
      return "all tasks have ended: the review began"
    case "critique":
      return event.findings.length === 0 ? undefined : found(event.findings)
    case "critique_passed":
      return `the review passed${event.summary === "" ? "" : `: ${event.summary}`}`
    case "critique_found_issues":
      return `the review added ${tasks(event.tasks.length)}`
    case "needs_replan":
      return `the review requires another plan: ${event.reason}`
    case "all_runnable_blocked":
      return `it was blocked: ${event.reason}`
    case "dependency_resolved":
      return `it continued: ${event.reason}`
    case "unresolvable":
    case "budget_exhausted":
      return `it stopped: ${event.reason}`
    case "user_cancel":
      return `${event.by} cancelled it${event.reason === "" ? "" : `: ${event.reason}`}`
    default:
      return undefined
  }
}

const lineOf = (text: string): string => cut(text.replaceAll(/\s+/g, " ").trim(), MAX_TEXT)

const now = (at: number, text: string): WhyLine => ({ eventId: 0, at, text: lineOf(text) })

const isEnded = ({ state }: GoalInfo): boolean => state === "goal_met" || state === "stopped"

/** Lines about the current state: agents at work, and failed tasks that block others. */
const present = (goal: GoalInfo, all: ReadonlyArray<TaskInfo>): ReadonlyArray<WhyLine> => {
  if (isEnded(goal)) return []
  const at = (state: TaskInfo["state"]) => all.filter((task) => task.state === state)
  const works = [...at("running"), ...at("assigned")].map(({ id, owner, since, state, title }) =>
    now(since, `now: ${owner ?? "an agent"} ${state === "running" ? "works on" : "is given"} ${id}, ${title}`)
  )
  const failed = at("failed").map(({ error, id, since }) =>
    now(since, `${id} does not continue: ${error ?? "it failed"}`)
  )
  const isSaid = goal.detail !== "" && (works.length === 0 || goal.behind !== undefined)
  const said = isSaid ? [now(goal.since, `now: ${goal.detail}`)] : []
  const lines = goal.behind === undefined ? [...failed, ...works, ...said] : [...said, ...failed, ...works]
  const left = lines.length - MAX_NOW
  return left <= 0
    ? lines
    : [...lines.slice(0, MAX_NOW), now(goal.since, `… and ${tasks(left)} more: agentd goal show ${goal.goalId}`)]
}

const adviceOf = (goal: GoalInfo, all: ReadonlyArray<TaskInfo>): string | null => {
  const name = `${goal.project}/${goal.goalId}`
  const hasWork = all.some(({ head }) => head !== null)
  switch (goal.state) {
    case "goal_received":
      return goal.options.planner === null ? `Give it a plan: agentd goal plan ${name} FILE` : null
    case "planning":
      return goal.word === "needs you" && goal.behind === undefined
        ? `Review its plan, then approve it: agentd goal approve ${name}   or reject it: agentd goal reject ${name} "…"`
        : null
    case "blocked":
      return `When the cause is fixed, retry: agentd goal retry ${name}   or cancel it: agentd goal cancel ${name}`
    case "goal_met":
      return hasWork ? `Merge its work: agentd goal merge ${name}` : null
    case "stopped":
      return hasWork ? `Completed work can still be merged: agentd goal merge ${name} --unreviewed` : null
    default:
      return null
  }
}

export const whyOf = (
  { goal, named, tasks: shown }: Pick<GoalPage, "goal" | "named" | "tasks">,
  { first, left, newest }: Steps
): GoalStory => {
  const all = [...new Map([...shown, ...named].map((task) => [task.id, task])).values()]
  const at = newest[0]?.at ?? goal.submittedAt
  const gap: ReadonlyArray<WhyLine> =
    left === 0 ? [] : [{ eventId: 0, at, text: `… ${left} earlier steps: agentd goal show ${goal.goalId}` }]
  return { lines: [...first, ...gap, ...newest, ...present(goal, all)], advice: adviceOf(goal, all) }
}

export interface Steps {
  readonly first: ReadonlyArray<WhyLine>
  readonly newest: ReadonlyArray<WhyLine>
  /** Number of steps that are omitted between `first` and `newest`. */
  readonly left: number
}

export const stepsOf = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  of: Pick<GoalInfo, "conversation" | "goalId">
) {
  const first: Array<WhyLine> = []
  const newest: Array<WhyLine> = []
  let left = 0
  yield* readGoal(log, of.conversation, of.goalId, (rune: Rune) => {
    const text = stepOf(eventOf(rune))
    if (text === undefined) return true
    const line = { eventId: rune.eventId, at: rune.at, text: lineOf(text) }
    if (first.length === 0) first.push(line)
    else if (newest.push(line) > MAX_STEPS) {
      newest.shift()
      left += 1
    }
    return true
  })
  const steps: Steps = { first, newest, left }
  return steps
})

/** Whether the text has the form of a goal name: `g3`, `shop/g3`. */
export const isName = (name: string): boolean => /(^|\/)g\d{1,9}$/.test(name)
