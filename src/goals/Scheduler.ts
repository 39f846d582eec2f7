/**
 * Scheduler: plan and agents in, the next assignment out; or what the plan waits
 * for, or why it cannot go on. Pure: it changes neither.
 *
 * Guarantees, called again after each assignment until it gives none: never a task
 * that is not ready, never one that somebody has, never an agent that is offline,
 * busy, unable or over budget; no idle agent is left beside a ready task that it is
 * able to do; the same plan and agents give the same answer. Tasks go by priority,
 * then age, so a ready one waits for those before it and no others: a plan is
 * finite, and none starves.
 */
import type { Task } from "../domain/GoalMessages.ts"
import { goesFirst, isReady, type Node, type Plan } from "./Plan.ts"

/** An agent that may be given tasks. */
export interface Worker {
  readonly name: string
  readonly can: ReadonlyArray<string>
  readonly online: boolean
  readonly busy: boolean
  readonly spent: boolean
  /** Tasks that the agent was given so far. */
  readonly load: number
}

export type Decision =
  | { readonly _tag: "Assign"; readonly task: Node; readonly agent: string }
  /** A task is under way, or can be given out at `until`. */
  | { readonly _tag: "Wait"; readonly reason: string; readonly until: number | undefined }
  /** Every task is terminal. */
  | { readonly _tag: "Done" }
  /** No task can run until something changes outside the plan. */
  | {
      readonly _tag: "Blocked"
      readonly reason: string
      /** True where only offline agents are missing, which may be back in a moment. */
      readonly passing: boolean
    }
  /** Every agent that could go on has spent its budget. */
  | { readonly _tag: "Exhausted"; readonly reason: string }

export const isAble = (task: Pick<Task, "needs" | "owner">, worker: Pick<Worker, "can" | "name">): boolean =>
  task.owner === null ? task.needs.every((need) => worker.can.includes(need)) : task.owner === worker.name

export const isFree = ({ busy, online, spent }: Worker): boolean => online && !busy && !spent

/** Agents in order: the least loaded, then the one with the fewest abilities, then by name. */
const before = (a: Worker, b: Worker): boolean =>
  a.load !== b.load ? a.load < b.load : a.can.length !== b.can.length ? a.can.length < b.can.length : a.name < b.name

const least = (workers: ReadonlyArray<Worker>): Worker | undefined => {
  let found: Worker | undefined
  for (const worker of workers) if (found === undefined || before(worker, found)) found = worker
  return found
}

const assignment = (ready: ReadonlyArray<Node>, workers: ReadonlyArray<Worker>): Decision | undefined => {
  const free = workers.filter(isFree)
  if (free.length === 0) return undefined
  let best: { readonly node: Node; readonly agent: Worker } | undefined
  for (const node of ready) {
    if (best !== undefined && !goesFirst(node, best.node)) continue
    const agent = least(free.filter((worker) => isAble(node.task, worker)))
    if (agent !== undefined) best = { node, agent }
  }
  return best === undefined ? undefined : { _tag: "Assign", task: best.node, agent: best.agent.name }
}

/** The first ready task of each combination of owner and needs. */
const headsOf = (plan: Plan): ReadonlyArray<Node> => {
  const heads = new Map<string, Node | undefined>()
  for (const node of plan.nodes) {
    const key = JSON.stringify([node.task.owner, node.task.needs.toSorted()])
    const head = heads.get(key)
    heads.set(key, isReady(node) && (head === undefined || goesFirst(node, head)) ? node : head)
  }
  return [...heads.values()].filter((head) => head !== undefined)
}

/** Why no agent does the task, with the remedy. */
const lack = ({ task: { id, needs, owner } }: Node, workers: ReadonlyArray<Worker>): string => {
  const able = workers.filter((worker) => isAble({ needs, owner }, worker))
  const task = `task ${id}`
  const names = able.map(({ name }) => name).join(" or ")
  const [first] = able
  if (first !== undefined) {
    const what = able.every(({ spent }) => spent) ? `the budget of ${names}` : `${names} to be online`
    return `${task} waits for ${what}: agentd start ${first.name}`
  }
  if (owner !== null) return `${task} belongs to ${owner}, which is no agent of this project`
  return needs.length === 0
    ? `${task} finds no agent that may work on it`
    : `${task} needs ${needs.join(", ")}, which no agent can: see can in agentd.jsonc`
}

/** How many failed tasks a reason names. */
const NAMED = 3

const tasks = (count: number, one: string, several: string): string =>
  count === 1 ? `1 task ${one}` : `${count} tasks ${several}`

const failures = (plan: Plan): string => {
  const failed = plan.nodes.filter(({ state }) => state === "failed")
  const named = failed.slice(0, NAMED).map(({ error, task }) => `${task.id} (${error ?? "no reason"})`)
  const more = failed.length > NAMED ? ` and ${failed.length - NAMED} more` : ""
  return failed.length === 0
    ? `${tasks(plan.counts.blocked, "depends", "depend")} on cancelled ones`
    : `${tasks(plan.counts.blocked, "depends", "depend")} on ${named.join(", ")}${more}, which failed`
}

/** The decision where nothing is in flight and nothing can be given out. */
const standstill = (plan: Plan, workers: ReadonlyArray<Worker>): Decision => {
  const heads = headsOf(plan)
  if (heads.length === 0) return { _tag: "Blocked", reason: failures(plan), passing: false }
  const ables = heads.map(({ task }) => workers.filter((worker) => isAble(task, worker)))
  const hoped = ables.flat().find(({ online, spent }) => online && !spent)
  if (hoped !== undefined) return { _tag: "Wait", reason: `${hoped.name} is busy`, until: undefined }
  if (ables.every((able) => able.length > 0 && able.every(({ spent }) => spent))) {
    const names = [...new Set(ables.flat().map(({ name }) => name))].toSorted()
    return { _tag: "Exhausted", reason: `the budget of ${names.join(", ")} is spent` }
  }
  return {
    _tag: "Blocked",
    reason: heads
      .slice(0, NAMED)
      .map((head) => lack(head, workers))
      .join("; "),
    passing: ables.flat().some(({ spent }) => !spent)
  }
}

export const decide = (plan: Plan, workers: ReadonlyArray<Worker>): Decision => {
  if (plan.terminal === plan.size) return { _tag: "Done" }
  const assign = assignment(plan.ready, workers)
  if (assign !== undefined) return assign
  const until = plan.nextAt
  const { assigned, running } = plan.counts
  if (assigned + running > 0) {
    return { _tag: "Wait", reason: `${tasks(assigned + running, "is", "are")} being worked on`, until }
  }
  if (until !== undefined) return { _tag: "Wait", reason: "a task that failed waits to be tried again", until }
  return standstill(plan, workers)
}
