/**
 * Plans of growing size, from their file to the last task: checked, scheduled one
 * assignment after the other, and folded again from their runes. The figure is per
 * task. An assignment looks at all tasks of the plan, so its figure grows with the plan.
 */
import { Effect } from "effect"
import { atOnce } from "../../src/domain/TimeSlices.ts"
import type { Task } from "../../src/domain/GoalMessages.ts"
import { pieces } from "../../src/goals/GoalActor.ts"
import type * as GoalMachine from "../../src/goals/GoalMachine.ts"
import { apply, initial } from "../../src/goals/GoalState.ts"
import { Plan } from "../../src/goals/Plan.ts"
import type { Rune } from "../../src/core/event-log/Rune.ts"
import * as PlanFile from "../../src/goals/PlanFile.ts"
import { decide, type Worker } from "../../src/goals/Scheduler.ts"
import { type Bench, heap, interleave, type Subject } from "./Bench.ts"

const AGENTS = 8
const DEPENDENCIES = 3

/** Layers of a hundred; each task depends on three of the layer before. */
export const raw = (size: number) =>
  Array.from({ length: size }, (_, index) => ({
    id: `task-${index}`,
    title: `Do what is to be done as number ${index}`,
    dependsOn:
      index < 100
        ? []
        : Array.from(
            { length: DEPENDENCIES },
            (_, n) => `task-${(Math.floor(index / 100) - 1) * 100 + ((index * 7 + n * 31) % 100)}`
          ),
    priority: index % 5
  }))

const workers = (busy: ReadonlySet<string>): ReadonlyArray<Worker> =>
  Array.from({ length: AGENTS }, (_, index) => ({
    name: `agent-${index}`,
    can: [],
    online: true,
    busy: busy.has(`agent-${index}`),
    spent: false,
    load: 0
  }))

/** Gives out all that it can, ends the oldest, and so on to the end. */
const workOff = (whole: Plan): number => {
  let plan = whole
  const busy = new Map<string, string>()
  let assigned = 0
  for (;;) {
    const decision = decide(plan, workers(new Set(busy.keys())))
    if (decision._tag === "Assign") {
      plan = plan.assign(decision.task.task.id, { agent: decision.agent, messageId: "m", base: null }, assigned)
      busy.set(decision.agent, decision.task.task.id)
      assigned++
      continue
    }
    const [oldest] = busy
    if (oldest === undefined) return assigned
    busy.delete(oldest[0])
    plan = plan.complete(oldest[1], { eventId: assigned, branch: null, cwd: null, head: null }, assigned)
  }
}

/** Kinds of runes by their events. */
const kindOf: { readonly [event: string]: string } = {
  goal_submitted: "plan.goal_received",
  decompose_goal: "plan.created",
  plan_updated: "plan.updated",
  auto_start: "plan.approved"
}

/** The runes of a goal in which every task is done. */
const runesOf = (tasks: ReadonlyArray<Task>): ReadonlyArray<Rune> => {
  const runes: Array<Rune> = []
  const say = (event: GoalMachine.Event) => {
    const eventId = runes.length + 1
    runes.push({
      format: 2,
      eventId,
      seq: eventId,
      stream: "bench",
      at: eventId,
      kind: kindOf[event._tag] ?? `plan.${event._tag}`,
      actor: "plan/g1",
      from: null,
      to: null,
      trigger: event._tag,
      cause: null,
      moves: [],
      visibility: "internal",
      payload: { event }
    })
  }
  say({ _tag: "goal_submitted", planId: "g1", goal: "all of it", by: "bench" })
  for (const [index, piece] of atOnce(pieces(tasks)).entries()) {
    say(
      index === 0
        ? { _tag: "decompose_goal", tasks: piece, total: tasks.length }
        : { _tag: "plan_updated", added: piece, cancelled: [], total: tasks.length }
    )
  }
  say({ _tag: "auto_start" })
  for (const { id } of tasks) {
    say({ _tag: "task_assigned", taskId: id, agentId: "agent-0", messageId: id })
    say({ _tag: "task_started", taskId: id })
    say({ _tag: "task_completed", taskId: id, result: "done", evidence: null })
  }
  return runes
}

const time = async (size: number, run: () => unknown): Promise<number> => {
  const began = performance.now()
  await run()
  return ((performance.now() - began) * 1000) / size
}

const subject = (size: number): Subject => ({
  subject: `${size.toLocaleString("en")} tasks`,
  round: async () => {
    const value = { tasks: raw(size) }
    let tasks: ReadonlyArray<Task> = []
    const check = await time(size, async () => {
      tasks = await Effect.runPromise(PlanFile.check(value, { workers: [] }))
    })
    const before = heap()
    const plan = Plan.empty.add(tasks, 0)
    const bytes = (heap() - before) / size
    const schedule = await time(size, () => {
      if (workOff(plan) !== size) throw new Error("not every task was given out")
    })
    const runes = runesOf(tasks)
    const fold = await time(size, () => {
      const state = runes.reduce((before, rune) => apply(before, rune), initial)
      if (state.plan.counts.completed !== size) throw new Error("the fold lost a task")
    })
    return { check, schedule, fold, memory: bytes }
  }
})

export const bench: Bench = {
  name: "plans",
  run: () =>
    interleave(
      [
        { what: "check", unit: "µs/task", better: "less" },
        { what: "schedule", unit: "µs/task", better: "less" },
        { what: "fold", unit: "µs/task", better: "less" },
        { what: "memory", unit: "bytes/task", better: "less" }
      ],
      [subject(20), subject(200), subject(2_000)],
      3
    )
}
