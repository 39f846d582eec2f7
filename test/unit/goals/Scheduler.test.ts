import { assert, describe, it } from "@effect/vitest"
import type { Task } from "../../../src/domain/GoalMessages.ts"
import { Plan } from "../../../src/goals/Plan.ts"
import { decide, type Worker } from "../../../src/goals/Scheduler.ts"
import { task } from "../../world/goals/Tasks.ts"

const planOf = (...tasks: ReadonlyArray<Task>): Plan => Plan.empty.add(tasks, 0)
const worker = (name: string, more: Partial<Worker> = {}): Worker => ({
  name,
  can: [],
  online: true,
  busy: false,
  spent: false,
  load: 0,
  ...more
})
const assigned = (plan: Plan, workers: ReadonlyArray<Worker>): string => {
  const decision = decide(plan, workers)
  return decision._tag === "Assign" ? `${decision.task.task.id}→${decision.agent}` : decision._tag
}
const give = (plan: Plan, id: string, agent = "a") => plan.assign(id, { agent, messageId: "m", base: null }, 1)
const done = { eventId: 1, branch: null, cwd: null, head: null }

describe("Scheduler", () => {
  it("priority goes first, then age", () => {
    let plan = planOf(task("old"), task("young"), task("urgent", { priority: 5 }))
    assert.strictEqual(assigned(plan, [worker("a")]), "urgent→a")
    plan = give(plan, "urgent")
    assert.strictEqual(assigned(plan, [worker("a")]), "old→a")
  })

  it("work is spread; one who can do less is taken before one who can do more", () => {
    const plan = planOf(task("t"))
    assert.strictEqual(assigned(plan, [worker("a", { load: 2 }), worker("b", { load: 1 })]), "t→b")
    assert.strictEqual(assigned(plan, [worker("a", { can: ["rust"] }), worker("b")]), "t→b")
  })

  it("an owner named in the plan wins, whoever else is free", () => {
    const plan = planOf(task("t", { owner: "b", needs: ["rust"] }))
    assert.strictEqual(assigned(plan, [worker("a", { can: ["rust"] }), worker("b", { busy: true })]), "Wait")
    assert.strictEqual(assigned(plan, [worker("a", { can: ["rust"] }), worker("b")]), "t→b")
  })

  it("what cannot go on says why: offline, unable, unknown, failed before it", () => {
    const reason = (plan: Plan, ...workers: ReadonlyArray<Worker>) => {
      const decision = decide(plan, workers)
      return decision._tag === "Blocked" ? decision.reason : decision._tag
    }
    assert.match(reason(planOf(task("t")), worker("a", { online: false })), /waits for a to be online: agentd start a$/)
    assert.match(reason(planOf(task("t", { needs: ["rust"] })), worker("a")), /needs rust, which no agent can/)
    assert.match(reason(planOf(task("t", { owner: "x" })), worker("a")), /belongs to x, which is not an agent/)
    let plan = planOf(task("first"), task("second", { dependsOn: ["first"] }))
    plan = give(plan, "first")
    plan = plan.fail("first", "it broke", 2)
    assert.match(reason(plan, worker("a")), /1 task depends on first \(it broke\), which failed/)
    plan = plan.reopen("first", 3)
    assert.strictEqual(assigned(plan, [worker("a")]), "first→a")
    assert.strictEqual(plan.find("second")!.state, "pending")
  })

  it("the budget is exhausted when every able agent is spent, and not before", () => {
    const plan = planOf(task("t"))
    const spent = worker("a", { spent: true })
    assert.strictEqual(assigned(plan, [spent, worker("b", { busy: true })]), "Wait")
    assert.strictEqual(assigned(plan, [spent, worker("b", { online: false })]), "Blocked")
    assert.strictEqual(assigned(plan, [spent]), "Exhausted")
  })

  it("a task that waits to be tried again is given out when its wait is over", () => {
    let plan = planOf(task("t"))
    plan = give(plan, "t")
    plan = plan.release("t", { error: "no", counts: true, until: 5_000 }, 3_000)
    const decision = decide(plan, [worker("a")])
    assert.deepInclude(decision, { _tag: "Wait", until: 5_000 })
    plan = plan.advance(5_000)
    assert.strictEqual(assigned(plan, [worker("a")]), "t→a")
  })

  it("it is done when every task is terminal", () => {
    let plan = planOf(task("a"), task("b"))
    plan = give(plan, "a")
    plan = plan.complete("a", done, 2)
    assert.strictEqual(assigned(plan, [worker("x")]), "b→x")
    plan = plan.cancel("b", 3)
    assert.strictEqual(assigned(plan, [worker("x")]), "Done")
  })

  it("a chain of 10,000 that breaks at its root is blocked to its end, and mended from there", () => {
    let plan = Plan.empty.add(
      Array.from({ length: 10_000 }, (_, index) =>
        task(`t${index}`, index === 0 ? {} : { dependsOn: [`t${index - 1}`] })
      ),
      0
    )
    plan = give(plan, "t0")
    plan = plan.fail("t0", "no", 1)
    assert.strictEqual(plan.counts.blocked, 9_999)
    plan = plan.reopen("t0", 2)
    assert.strictEqual(plan.counts.blocked, 0)
    plan = give(plan, "t0")
    plan = plan.complete("t0", done, 3)
    assert.strictEqual(assigned(plan, [worker("x")]), "t1→x")
  })
})
