import { assert, describe, it } from "@effect/vitest"
import type { GoalInfo, TaskInfo } from "../../../src/domain/GoalMessages.ts"
import * as GoalView from "../../../src/cli/goals/GoalView.ts"
import { frame } from "../../../src/cli/goals/GoalWatch.ts"
import { options } from "../../world/goals/Tasks.ts"

const NOW = 1_000_000

const goal = (more: Partial<GoalInfo> = {}): GoalInfo => ({
  goalId: "g1",
  conversation: "c",
  project: "web",
  goal: "ship it",
  by: "ada",
  submittedAt: 0,
  word: "working",
  state: "executing",
  since: NOW - 60_000,
  restsOn: 3,
  detail: "",
  reason: null,
  total: 4,
  tasks: { pending: 1, assigned: 0, running: 1, completed: 1, failed: 1, blocked: 0, cancelled: 0 },
  rounds: 0,
  maxRounds: 3,
  estimate: 240_000,
  options: options(),
  ...more
})

const task = (id: string, more: Partial<TaskInfo> = {}): TaskInfo => ({
  id,
  title: `do ${id}`,
  state: "pending",
  dependsOn: [],
  priority: 0,
  owner: null,
  needs: [],
  errors: 0,
  since: NOW - 5_000,
  error: null,
  restsOn: null,
  head: null,
  branch: null,
  ...more
})

const drawn = (tasks: ReadonlyArray<TaskInfo>, more: Partial<GoalInfo> = {}) =>
  GoalView.show({ goal: goal({ total: tasks.length, ...more }), tasks, named: [], findings: [] }, NOW, false)

describe("GoalView", () => {
  it("each task stands below the last one that it waits for; the others are named", () => {
    assert.deepStrictEqual(
      drawn([
        task("a", { state: "completed", owner: "bob" }),
        task("b", { state: "running", owner: "eve", dependsOn: ["a"] }),
        task("c", { state: "failed", owner: "bob", dependsOn: ["a"], errors: 3, error: "it broke" }),
        task("d", { dependsOn: ["b", "c"], needs: ["rust"] })
      ]).slice(3),
      [
        "✓ a do a  (bob)",
        "├ ▸ b do b  (eve; for 5s)",
        "└ ✗ c do c  (bob; 3 errors)  it broke",
        "  └ · d do d  (needs rust; also after b)"
      ]
    )
  })

  it("progress and what is left are in one line", () => {
    assert.strictEqual(drawn([])[0], "web/g1 is working for 1m: 1 of 0 done, 1 failed, about 4m left")
  })

  it("a chain of 500 is indented no further than a limit", () => {
    const chain = Array.from({ length: 500 }, (_, n) => task(`t${n}`, n === 0 ? {} : { dependsOn: [`t${n - 1}`] }))
    assert.isBelow(Math.max(...drawn(chain).map((line) => line.length)), 70)
  })

  it("nothing that an agent wrote reaches the terminal as a control sequence", () => {
    const wild = "\u001b[2Jgone"
    const lines = [
      ...drawn([task("a", { title: wild, error: wild, state: "failed", owner: wild })], { goal: wild, detail: wild }),
      ...GoalView.show(
        { goal: goal(), tasks: [], named: [], findings: [{ severity: "error", message: wild }] },
        NOW,
        false
      )
    ]
    assert.notInclude(lines.join(""), "\u001b")
  })

  it("a plan that does not fit the screen is told in short: how many are where, who is at work, what failed", () => {
    const tasks = Array.from({ length: 50 }, (_, n) => task(`t${n}`))
    tasks.splice(40, 2, task("t40", { state: "running", owner: "bob" }), task("t41", { state: "failed", error: "no" }))
    const page = { goal: goal({ total: 50 }), tasks, named: [], findings: [], next: null }
    assert.deepStrictEqual(frame(page, NOW, 10, false).slice(2), [
      "",
      "50 tasks: 1 pending, 1 running, 1 completed, 1 failed",
      "▸ t40 do t40  (bob; for 5s)",
      "✗ t41 do t41  no"
    ])
    const all = { ...page, tasks: tasks.map((one) => ({ ...one, state: "running" as const })) }
    const lines = frame(all, NOW, 10, false)
    assert.strictEqual(lines.length, 9)
    assert.match(lines.at(-1)!, /… \d+ more lines/)
  })

  it("a plan that is longer than a page is told in short, from wherever in it", () => {
    const page = {
      goal: goal({ total: 9_000 }),
      tasks: [task("t0")],
      named: [task("z", { state: "running" })],
      findings: []
    }
    assert.deepStrictEqual(GoalView.show(page, NOW, false).slice(4), [
      "▸ z do z  (for 5s)",
      "To print all tasks: agentd goal show g1 --json"
    ])
  })
})
