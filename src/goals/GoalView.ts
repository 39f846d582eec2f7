/**
 * GoalView: builds the rows that show a goal and its tasks to the user. Pure.
 */
import type { GoalInfo, GoalOptions, TaskCounts, TaskInfo } from "../domain/GoalMessages.ts"
import type { Member } from "../domain/AgentPort.ts"
import * as StatusWords from "../domain/StatusWords.ts"
import type { GoalState, Stand } from "./GoalState.ts"
import { cut } from "./Ellipsis.ts"
import type { Node } from "./Plan.ts"

/** The part of a row that does not change any more once the goal has ended. */
export interface Figures {
  readonly goal: string
  readonly by: string
  readonly submittedAt: number
  readonly options: GoalOptions | undefined
  readonly total: number
  readonly tasks: TaskCounts
  readonly executingSince: number
}

export const figuresOf = (goal: GoalState): Figures => ({
  goal: goal.goal,
  by: goal.by,
  submittedAt: goal.submittedAt,
  options: goal.options,
  total: Math.max(goal.total, goal.plan.size),
  tasks: goal.plan.counts,
  executingSince: goal.executingSince
})

/** Estimated remaining time in ms, from the time of the finished tasks. Null until the first task has finished. */
export const estimate = ({ executingSince, tasks }: Figures, now: number): number | null => {
  const done = tasks.completed + tasks.failed
  const left = tasks.pending + tasks.assigned + tasks.running
  return done === 0 || executingSince === 0 ? null : Math.round((Math.max(0, now - executingSince) / done) * left)
}

const plainDetail = (state: string, reason: string | null): string => {
  if (state === "goal_met") return "the goal is met"
  if (state === "stopped") return reason ?? "it is stopped"
  return reason ?? state.replaceAll("_", " ")
}

const wordOf = ({ data, state }: Stand, asks: boolean, held: boolean, behind: boolean): StatusWords.Word =>
  state === "[*]"
    ? "working"
    : StatusWords.wordOf(StatusWords.autonomy, state, {
        asks,
        behind,
        held,
        wasCancelled: data.cancelledBy !== undefined
      })

export const infoOf = (
  of: {
    readonly goalId: string
    readonly conversation: string
    readonly project: string
    readonly stand: Stand
    readonly figures: Figures
    readonly detail: string | undefined
    readonly options: GoalOptions
    /** True if the plan waits for the user's approval. */
    readonly asks: boolean
    /** Why an agent of the goal cannot continue without the user. Undefined if no agent waits for the user. */
    readonly needs?: Member["needs"]
    /** True if the goal waits for the user; `detail` says for what. */
    readonly stuck: boolean
    /** True if the project accepts no work. */
    readonly held: boolean
  },
  now: number
): GoalInfo => {
  const { asks, conversation, figures, goalId, held, needs, options, project, stand, stuck } = of
  const detail = needs?.text ?? of.detail
  const { data, state } = stand
  return {
    goalId,
    conversation,
    project,
    goal: figures.goal,
    by: figures.by,
    submittedAt: figures.submittedAt,
    word: wordOf(stand, asks, held, stuck || needs !== undefined),
    state,
    since: needs?.since ?? stand.at,
    restsOn: stand.entered,
    detail: detail === undefined || detail === "" ? plainDetail(state, data.reason) : detail,
    ...(needs === undefined ? {} : { behind: needs.text }),
    reason: data.reason,
    total: figures.total,
    tasks: figures.tasks,
    rounds: data.rounds,
    maxRounds: data.maxRounds,
    estimate: state === "executing" ? estimate(figures, now) : null,
    options
  }
}

export const taskOf = ({ agent, error, errors, result, since, state, task }: Node): TaskInfo => ({
  id: task.id,
  title: task.title,
  state,
  dependsOn: task.dependsOn.slice(0, 100),
  priority: task.priority,
  owner: agent ?? task.owner,
  needs: task.needs,
  errors,
  since,
  error: error === null ? null : cut(error, 500),
  restsOn: result?.eventId ?? null,
  head: result?.head ?? null,
  branch: result?.branch ?? null,
  ...(result?.noCommit === true && state === "completed" ? { noCommit: true } : {})
})
