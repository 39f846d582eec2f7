/**
 * Scheduler: decides from a plan and its agents what happens next: an assignment, what the plan waits for, or why it
 * cannot continue. Pure: it changes neither the plan nor the agents.
 *
 * Guarantees, if it is called again after each assignment until it returns no further one: it never assigns a task that
 * is not ready or that an agent has. It never picks an agent that is offline, busy, unable or over budget. No agent
 * stays idle if a ready task exists that it can do. The same plan and agents give the same decision. Tasks are ordered
 * by priority, then age, so a ready task waits only for those before it. As a plan is finite, no task starves.
 */
import type { Task } from "../domain/GoalMessages.ts"
import { goesFirst, isReady, type Node, type Plan } from "./Plan.ts"

export interface Worker {
  readonly name: string
  readonly can: ReadonlyArray<string>
  readonly online: boolean
  readonly busy: boolean
  readonly spent: boolean
  /** Number of tasks that were assigned to the agent so far. */
  readonly load: number
}

export type Decision =
  | { readonly _tag: "Assign"; readonly task: Node; readonly agent: string }
  /** A task is in progress, or can be assigned at `until`, ms since the epoch. */
  | { readonly _tag: "Wait"; readonly reason: string; readonly until: number | undefined }
  /** Every task is terminal. */
  | { readonly _tag: "Done" }
  /** No task can run until something outside the plan changes. */
  | {
      readonly _tag: "Blocked"
      readonly reason: string
      /** True if the plan waits only for agents that are offline and may soon be back. */
      readonly passing: boolean
    }
  /** Every agent that could continue has exceeded its budget. */
  | { readonly _tag: "Exhausted"; readonly reason: string }

export const isAble = (task: Pick<Task, "needs" | "owner">, worker: Pick<Worker, "can" | "name">): boolean =>
  task.owner === null ? task.needs.every((need) => worker.can.includes(need)) : task.owner === worker.name

export const isFree = ({ busy, online, spent }: Worker): boolean => online && !busy && !spent

/** Order of agents: least loaded first, then fewest abilities, then by name. */
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

/** Why no agent can do the task now, and what the user can do about it. */
const lack = ({ task: { id, needs, owner } }: Node, workers: ReadonlyArray<Worker>): string => {
  const able = workers.filter((worker) => isAble({ needs, owner }, worker))
  const task = `task ${id}`
  const names = able.map(({ name }) => name).join(" or ")
  const [first] = able
  if (first !== undefined) {
    const what = able.every(({ spent }) => spent) ? `the budget of ${names}` : `${names} to be online`
    return `${task} waits for ${what}: agentd start ${first.name}`
  }
  if (owner !== null) return `${task} belongs to ${owner}, which is not an agent of this project`
  return needs.length === 0
    ? `${task} has no agent that may work on it`
    : `${task} needs ${needs.join(", ")}, which no agent can do: see "can" in agentd.jsonc`
}

/** Maximum number of failed tasks that are named in a reason. */
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

/** The decision if no task is in progress and none can be assigned. */
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
  if (until !== undefined) return { _tag: "Wait", reason: "a failed task is waiting for its next attempt", until }
  return standstill(plan, workers)
}
