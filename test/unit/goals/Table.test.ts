/** The goal's table, walked: each legal cell is reached by a run of the real goals, none is there for show. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { edges } from "../../../src/core/event-actor/StateMachine.ts"
import { Autonomy } from "../../../src/goals/GoalMachine.ts"
import { unreached } from "../../support/Unreached.ts"
import { type Script, says } from "../../world/goals/CrewDouble.ts"
import { caller, run, type Setting, type World } from "../../world/goals/World.ts"

const done = says("done")
const never: Script = () => Effect.never
const ONE = { id: "a", title: "x" }
const PLAN = JSON.stringify({ tasks: [ONE] })
const FINE = '{"findings":[]}'
const WRONG = '{"findings":[{"severity":"error","message":"no tests"}]}'
const ASTRAY = '{"findings":[{"severity":"error","message":"wrong track","needsReplan":true}]}'

/** A run of goals, and how it ends; the world's runes tell which cells it came by. */
interface Life {
  readonly name: string
  readonly setting?: Setting["goals"]
  readonly lives: (world: World) => Effect.Effect<unknown, { readonly message: string }>
}

/** Answers one after the other, the last one again and again. */
const answers =
  (...all: ReadonlyArray<string>): Script =>
  (_, n) =>
    Effect.succeed({ output: all[Math.min(n, all.length) - 1]! })

const lives: ReadonlyArray<Life> = [
  {
    name: "a long plan from a file, approved by a person, then cancelled",
    setting: { autoStart: false },
    lives: Effect.fnUntraced(function* (world) {
      world.crew.add("bob", never)
      const tasks = Array.from({ length: 1_001 }, (_, n) => ({ id: `t${n}`, title: "x" }))
      yield* world.submit({ plan: world.file(...tasks) })
      yield* world.approve("g1", caller)
      yield* world.until("g1", "it runs", (goal) => goal.tasks.running === 1)
      yield* world.goals.cancel("g1", "", caller)
      yield* world.until("g1", "CancelTasks: bob is free", () => !world.crew.agents.get("bob")!.member.busy)
    })
  },
  {
    name: "a planner whose plan is sent back and cancelled, and a goal that is cancelled without a plan",
    setting: { autoStart: false, planner: "pm" },
    lives: Effect.fnUntraced(function* (world) {
      world.crew.add("pm", (_, n) => (n === 1 ? Effect.succeed({ output: PLAN }) : Effect.never))
      yield* world.submit({})
      yield* world.state("g1", "planning")
      yield* world.goals.reject("g1", "too short", caller)
      yield* world.goals.cancel("g1", "", caller)
      yield* world.submit({ plan: world.file(ONE) })
      yield* world.goals.cancel("g2", "", caller)
    })
  },
  {
    name: "a task that is tried again, fails, blocks the rest, and is let go on; its review is cancelled",
    setting: { maxTaskErrors: 2, critic: "judge" },
    lives: Effect.fnUntraced(function* (world) {
      let broken = true
      world.crew.add("bob", () => Effect.succeed(broken ? { outcome: "error" as const } : { output: "done" }))
      world.crew.add("judge", never)
      yield* world.submit({ plan: world.file(ONE, { id: "b", title: "y", dependsOn: ["a"] }) })
      yield* world.state("g1", "blocked")
      broken = false
      yield* world.goals.retry("g1", null, caller)
      yield* world.state("g1", "reviewing")
      yield* world.goals.cancel("g1", "", caller)
    })
  },
  {
    name: "a critic who finds a fault, then another plan, then none",
    setting: { planner: "pm", critic: "judge", rounds: 5 },
    lives: Effect.fnUntraced(function* (world) {
      world.crew.add("pm", answers(PLAN, PLAN.replace('"a"', '"b"')))
      world.crew.add("judge", answers(WRONG, ASTRAY, FINE))
      world.crew.add("bob", done)
      yield* world.submit({})
      yield* world.state("g1", "goal_met")
    })
  },
  {
    name: "the rounds are spent by a fault, and by a plan that must change; a person cancels the one",
    setting: { planner: "pm", rounds: 1 },
    lives: Effect.fnUntraced(function* (world) {
      world.crew.add("bob", done)
      world.crew.add("pm", never)
      world.crew.add("judge", answers(WRONG, ASTRAY))
      for (const goalId of ["g1", "g2"]) {
        yield* world.submit({ plan: world.file(ONE), critic: "judge" })
        yield* world.state(goalId, "blocked")
      }
      yield* world.goals.cancel("g1", "", caller)
    })
  },
  {
    name: "a planner that cannot plan, and one that cannot revise",
    setting: { planner: "pm", critic: "judge", planTries: 1 },
    lives: Effect.fnUntraced(function* (world) {
      world.crew.add("pm", answers("no idea"))
      world.crew.add("bob", done)
      world.crew.add("judge", answers(ASTRAY))
      yield* world.submit({})
      yield* world.state("g1", "stopped")
      yield* world.submit({ plan: world.file(ONE) })
      const goal = yield* world.state("g2", "stopped")
      assert.match(goal.reason!, /^pm: its answer could not be used: it contains no JSON object/)
    })
  },
  {
    name: "a planner that has spent its budget, before the plan and before its revision",
    setting: { planner: "pm", critic: "judge" },
    lives: Effect.fnUntraced(function* (world) {
      world.crew.add("pm", never, { spent: true, online: false })
      world.crew.add("bob", done)
      world.crew.add("judge", answers(ASTRAY))
      yield* world.submit({})
      const goal = yield* world.state("g1", "stopped")
      assert.strictEqual(goal.reason, "the budget of pm is spent")
      yield* world.submit({ plan: world.file(ONE) })
      yield* world.state("g2", "stopped")
    })
  },
  {
    name: "workers that have spent their budgets, and a critic",
    setting: { workers: ["bob", "eve"] },
    lives: Effect.fnUntraced(function* (world) {
      world.crew.add("bob", done, { spent: true })
      world.crew.add("eve", done)
      world.crew.add("judge", never, { spent: true })
      yield* world.submit({ plan: world.file({ ...ONE, owner: "bob" }) })
      yield* world.state("g1", "stopped")
      yield* world.submit({ plan: world.file({ ...ONE, owner: "eve" }), critic: "judge" })
      yield* world.state("g2", "stopped")
    })
  },
  {
    name: "an agent that has spent its budget while the plan is blocked",
    lives: Effect.fnUntraced(function* (world) {
      world.crew.add("bob", done)
      yield* world.submit({ plan: world.file({ ...ONE, needs: ["rust"] }) })
      yield* world.state("g1", "blocked")
      world.crew.add("eve", done, { can: ["rust"], spent: true })
      world.crew.set("eve", { online: true })
      yield* world.state("g1", "stopped")
    })
  },
  {
    name: "blocked for too long",
    setting: { blockedTimeout: 20 },
    lives: Effect.fnUntraced(function* (world) {
      world.crew.add("bob", done)
      yield* world.submit({ plan: world.file({ ...ONE, needs: ["rust"] }) })
      yield* world.state("g1", "stopped")
    })
  }
]

describe("the goal's table", () => {
  it.live("each legal cell is reached by a run of the real goals", () =>
    Effect.gen(function* () {
      const reached = new Set<string>()
      for (const life of lives) {
        yield* run(
          Effect.fnUntraced(function* (world: World) {
            yield* Effect.catch(life.lives(world), ({ message }) =>
              Effect.sync(() => assert.fail(`${life.name}: ${message}`))
            )
            for (const { from, to, trigger } of yield* world.runes) reached.add(`${from} × ${trigger} → ${to}`)
          }),
          { goals: life.setting ?? {} }
        )
      }
      const legal = new Set(edges(Autonomy).map(({ event, from, to }) => `${from} × ${event} → ${to}`))
      assert.deepStrictEqual([...legal].filter((cell) => !reached.has(cell)).toSorted(), Object.keys(unreached.goal))
      assert.deepStrictEqual([...reached].filter((cell) => !legal.has(cell)).toSorted(), [])
    })
  )

  it("nothing is postponed: whatever may come has its answer in every state", () => {
    const cells = Object.entries(Autonomy.table).flatMap(([state, row]) =>
      Object.entries(row).flatMap(([event, cell]) => ((cell as unknown) === "postpone" ? [`${state} × ${event}`] : []))
    )
    assert.deepStrictEqual(cells, [])
  })
})
