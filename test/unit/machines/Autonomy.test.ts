import { assert, describe, it } from "@effect/vitest"
import { type Action, Autonomy, type Data, type Event, initial, type State } from "../../../src/goals/GoalMachine.ts"
import type { Task } from "../../../src/domain/GoalMessages.ts"
import { begin, drive, type Driven } from "../../world/machines/drive.ts"

const fresh = begin<State, Data, Action>(Autonomy, initial())
const after = (events: ReadonlyArray<Event>, from: Driven<State, Data, Action> = fresh) => drive(Autonomy, from, events)

const goal: Event = { _tag: "goal_submitted", planId: "p", goal: "ship it", by: "me" }
const task = (id: string): Task => ({
  id,
  title: id,
  description: "",
  dependsOn: [],
  priority: 0,
  owner: null,
  needs: [],
  timeout: null
})
const plan = (...ids: ReadonlyArray<string>): Event => ({ _tag: "decompose_goal", tasks: ids.map(task) })
const assigned = (taskId: string): Event => ({ _tag: "task_assigned", taskId, agentId: "pm" })
const startedTask = (taskId: string): Event => ({ _tag: "task_started", taskId })
const completed = (taskId: string): Event => ({ _tag: "task_completed", taskId, result: "ok", evidence: null })
const failed = (taskId: string): Event => ({ _tag: "task_failed", taskId, error: "it broke" })
const done = (taskId: string) => [assigned(taskId), startedTask(taskId), completed(taskId)]
const terminal: Event = { _tag: "all_tasks_terminal" }
const blocked: Event = { _tag: "all_runnable_blocked", reason: "waits for a person" }
const issues = (...ids: ReadonlyArray<string>): Event => ({ _tag: "critique_found_issues", tasks: ids.map(task) })
const cancel: Event = { _tag: "user_cancel", by: "me", reason: "changed my mind" }
const spent: Event = { _tag: "budget_exhausted", reason: "tokens" }

const planned = after([goal, plan("a", "b")])
const executing = after([{ _tag: "auto_start" }], planned)
const reviewing = after([...done("a"), assigned("b"), failed("b"), terminal], executing)

describe("Autonomy", () => {
  it("plans, executes, reviews, and meets its goal", () => {
    const met = after(
      [
        { _tag: "critique", findings: [] },
        { _tag: "critique_passed", summary: "shipped" }
      ],
      reviewing
    )
    assert.strictEqual(met.state, "goal_met")
    assert.deepStrictEqual(met.kinds, [
      "plan.goal_received",
      "plan.created",
      "plan.approved",
      "plan.task_assigned",
      "plan.task_started",
      "plan.task_completed",
      "plan.task_assigned",
      "plan.task_failed",
      "plan.reviewing",
      "plan.critique",
      "plan.goal_met"
    ])
    assert.deepInclude(met.payloads[0], { goal_description: "ship it" })
    assert.deepInclude(met.payloads[1], { plan_id: "p", tasks: [task("a"), task("b")] })
    assert.deepInclude(met.payloads[3], { task_id: "a", agent_id: "pm" })
    assert.deepInclude(met.payloads[5], { task_id: "a", result: "ok", evidence: null })
    assert.deepInclude(met.payloads.at(-1), { plan_id: "p", summary: "shipped" })
  })

  it("review begins only when every task is terminal: parallel ends never end the plan early", () => {
    const both = after([assigned("a"), assigned("b"), completed("a"), terminal], executing)
    assert.strictEqual(both.refused, "stale")
    assert.strictEqual(after([completed("b"), terminal], both).state, "reviewing")
  })

  it("counts the tasks that come later, and those that are cancelled", () => {
    const more = after([{ _tag: "plan_updated", added: [task("c"), task("d")], cancelled: ["d"] }], planned)
    const ran = after([{ _tag: "plan_approved", by: "me" }, ...done("a"), ...done("b"), terminal], more)
    assert.strictEqual(ran.refused, "stale")
    assert.strictEqual(after([...done("c"), terminal], ran).state, "reviewing")
  })

  it("INV-TASK-SINGLE: a task in flight is not assigned again, and ends once", () => {
    const flying = after([assigned("a")], executing)
    assert.strictEqual(after([assigned("a")], flying).refused, "stale")
    const ended = after([completed("a")], flying)
    assert.strictEqual(after([completed("a")], ended).refused, "stale")
    assert.strictEqual(after([failed("a")], ended).refused, "stale")
    assert.strictEqual(ended.data.terminal, 1)
  })

  it("a try that failed is not the task's end: it is given out again, to anybody", () => {
    const retried: Event = { _tag: "task_retried", taskId: "a", error: "it broke", counts: true, until: 7 }
    const again = after([assigned("a"), startedTask("a"), retried], executing)
    assert.deepInclude(again.payloads.at(-1), { task_id: "a", error: "it broke" })
    assert.strictEqual(again.data.terminal, 0)
    assert.strictEqual(after([retried], again).refused, "stale")
    assert.strictEqual(after([assigned("a"), completed("a")], again).data.terminal, 1)
  })

  it("a failed task that is tried again is not terminal any more", () => {
    const stuck = after([assigned("a"), failed("a"), blocked], executing)
    const open = after([{ _tag: "dependency_resolved", reason: "go on", tasks: ["a"] }], stuck)
    assert.deepInclude(open.data, { tasks: 2, terminal: 0, reason: null })
  })

  it("a task may have the name of what every object has", () => {
    const flying = after([assigned("constructor")], executing)
    assert.strictEqual(flying.refused, null)
    assert.strictEqual(after([startedTask("toString")], flying).refused, "stale")
  })

  it("the rounds of a goal are its own", () => {
    const options = {
      planner: null,
      critic: null,
      workers: null,
      checks: [],
      checkTimeout: 1,
      autoStart: true,
      rounds: 7,
      target: null,
      planTries: 1,
      maxTaskErrors: 1,
      maxErrors: 1,
      backoff: { base: 1, cap: 1, jitter: 0 },
      taskTimeout: 1,
      blockedTimeout: 1
    }
    assert.strictEqual(after([{ ...goal, options } as Event]).data.maxRounds, 7)
  })

  it("errors become follow-up tasks, for three rounds; then it is blocked", () => {
    let stand = reviewing
    for (const task of ["x", "y"]) {
      stand = after([issues(task)], stand)
      assert.strictEqual(stand.state, "executing")
      assert.strictEqual(after([terminal], stand).refused, "stale")
      stand = after([...done(task), terminal], stand)
    }
    const third = after([issues("z")], stand)
    assert.strictEqual(third.state, "blocked")
    assert.deepInclude(third.payloads.at(-1), { reason: "3 reviews did not pass" })
    const unblocked = after([{ _tag: "dependency_resolved", reason: "go on" }], third)
    assert.strictEqual(unblocked.state, "executing")
    assert.strictEqual(unblocked.data.rounds, 0)
  })

  it("a plan that is revised goes back to planning, and counts as a round", () => {
    const replanned = after([{ _tag: "needs_replan", reason: "wrong track" }], reviewing)
    assert.strictEqual(replanned.state, "planning")
    assert.strictEqual(replanned.data.rounds, 1)
    assert.strictEqual(after([{ _tag: "plan_rejected", by: "me", reason: "no" }], planned).state, "goal_received")
  })

  it("blocks only when nothing is in flight", () => {
    assert.strictEqual(after([assigned("a"), blocked], executing).refused, "stale")
    const waits = after([blocked], executing)
    assert.strictEqual(waits.state, "blocked")
    assert.strictEqual(after([{ _tag: "unresolvable", reason: "no way" }], waits).state, "stopped")
  })

  it("a person can stop it in every state, and what is in flight is cancelled", () => {
    for (const stand of [after([goal]), planned, executing, reviewing, after([blocked], executing)]) {
      assert.strictEqual(after([cancel], stand).state, "stopped")
    }
    const stopped = after([assigned("a"), cancel], executing)
    assert.deepStrictEqual([...stopped.actions], [{ _tag: "CancelTasks", taskIds: ["a"] }])
    assert.deepInclude(stopped.payloads.at(-1), { reason: "changed my mind" })
  })

  it("a spent budget stops it in every state, a planner without a plan before the first task", () => {
    const stuck = after([blocked], executing)
    for (const stand of [after([goal]), planned, executing, reviewing, stuck]) {
      assert.strictEqual(after([spent], stand).state, "stopped")
    }
    const hopeless: Event = { _tag: "unresolvable", reason: "no plan" }
    for (const stand of [after([goal]), planned, stuck]) {
      assert.deepInclude(after([hopeless], stand).payloads.at(-1), { reason: "no plan" })
    }
    assert.strictEqual(after([hopeless], reviewing).refused, "illegal")
  })
})
