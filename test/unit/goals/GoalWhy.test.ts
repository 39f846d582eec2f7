/** Why a goal is where it is: its steps in words, who works and what stands still, and what a person can do. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { show } from "../../../src/cli/goals/GoalView.ts"
import { why } from "../../../src/cli/agents/Why.ts"
import * as GoalWhy from "../../../src/goals/GoalWhy.ts"
import { says } from "../../world/goals/CrewDouble.ts"
import { caller, run, type World } from "../../world/goals/World.ts"

const told = (world: World, name: string) =>
  Effect.gen(function* () {
    const page = yield* world.goals.page(name, 0, caller)
    const { advice, lines } = GoalWhy.whyOf(page, yield* GoalWhy.stepsOf(world.log, page.goal))
    const shown = why.view({ goal: page.goal, advice, lines }, { now: page.goal.since, colour: false } as never)
    return { advice, shown, texts: lines.map(({ text }) => text) }
  })

describe("why of a goal", () => {
  it.live("a plan that waits says so, and how it is let go on", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", says("done"))
          yield* world.submit({ plan: world.file({ id: "a", title: "x" }, { id: "b", title: "y" }) })
          yield* world.state("g1", "planning")
          const { advice, shown, texts } = yield* told(world, "g1")
          assert.deepStrictEqual(texts.slice(0, 2), ["ada submitted this goal: ship it", "it has a plan of 2 tasks"])
          assert.match(advice!, /agentd goal approve web\/g1 .*agentd goal reject web\/g1/)
          assert.match(shown[0]!, /^web\/g1 needs you for 0s \(rune \d+\)\.$/)
        }),
      { goals: { autoStart: false } }
    )
  )

  for (const [whose, planner] of [
    ["a worker", null],
    ["the planner", "pm"]
  ] as const)
    it.live(`${whose} that waits for a person: the goal needs one, and names agent, call and command`, () =>
      run((world) =>
        Effect.gen(function* () {
          const agent = planner ?? "bob"
          const needs = { text: `${agent} asks for shell: agentd approve c1`, since: 7 }
          world.crew.add(agent, () => Effect.never)
          if (planner === null) yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
          else yield* world.submit({ planner })
          yield* world.until("g1", "it works", ({ word }) => word === "working" && world.crew.carried.length === 1)
          world.crew.set(agent, { needs })
          const goal = yield* world.until("g1", "it needs a person", ({ word }) => word === "needs you")
          assert.deepInclude(goal, { behind: needs.text, detail: needs.text, since: 7 })
          const { advice, texts } = yield* told(world, "g1")
          assert.include(texts, `now: ${needs.text}`)
          assert.isNull(advice)
          const page = yield* world.goals.page("g1", 0, caller)
          assert.include(
            show(page, 8, false).join("\n"),
            `needs you for 0s: 0 of ${page.goal.total} done\nship it\n${needs.text}`
          )
          world.crew.set(agent, { needs: undefined })
          yield* world.until("g1", "it works again", ({ word }) => word === "working")
        })
      )
    )

  it.live("a blocked goal: what failed and why, and how it is tried again; then that it is met", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          let broken = true
          world.crew.add("bob", () =>
            Effect.succeed(broken ? { outcome: "error" as const, output: "no key" } : { output: "ok" })
          )
          yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
          yield* world.state("g1", "blocked")
          const blocked = yield* told(world, "g1")
          const error = "its turn ended with an error; it had said: no key"
          assert.include(blocked.texts, `a failed: ${error}`)
          assert.include(blocked.texts, `a does not continue: ${error}`)
          assert.match(blocked.advice!, /agentd goal retry web\/g1/)
          broken = false
          yield* world.goals.retry("g1", null, caller)
          yield* world.state("g1", "goal_met")
          const met = yield* told(world, "g1")
          assert.include(met.texts, "a is done")
          assert.include(met.texts.at(-1), "the review passed")
          assert.isNull(met.advice)
        }),
      { goals: { maxTaskErrors: 1 } }
    )
  )

  it("a long life is told by its first step and its newest, and says how many are left out", () => {
    const line = (n: number) => ({ eventId: n, at: n, text: `step ${n}` })
    const goal = { goalId: "g1", project: "web", state: "stopped", submittedAt: 0, options: {} } as never
    const steps = { first: [line(1)], newest: [line(90), line(91)], left: 88 }
    const { lines } = GoalWhy.whyOf({ goal, named: [], tasks: [] }, steps)
    assert.deepStrictEqual(
      lines.map(({ text }) => text),
      ["step 1", "… 88 earlier steps: agentd goal show g1", "step 90", "step 91"]
    )
  })

  it("names of goals are told from those of agents", () => {
    assert.deepStrictEqual(["g3", "shop/g3", "builder", "shop/g3x", "g"].map(GoalWhy.isName), [
      true,
      true,
      false,
      false,
      false
    ])
  })
})
