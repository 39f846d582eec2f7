import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { story } from "../../../src/goals/GoalHistory.ts"
import { says } from "./CrewDouble.ts"
import { caller, commit, run } from "./World.ts"

describe("Story", () => {
  it.live("what went wrong, how much is done, and where that work lies; up to the rune that is asked about", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          const place = world.worktree("ann")
          world.crew.add(
            "ann",
            ({ messageId }) =>
              Effect.sync(() => {
                commit(place.cwd, "work", { [`${messageId.split("/")[2]}.txt`]: "x" })
                return { output: "done" }
              }),
            place
          )
          let broken = true
          world.crew.add("bob", () =>
            Effect.succeed(broken ? { outcome: "error" as const, output: "no key" } : { output: "ok" })
          )
          const plan = world.file(
            { id: "a", title: "x", owner: "ann" },
            { id: "b", title: "y", owner: "bob" },
            { id: "c", title: "z", owner: "ann", dependsOn: ["b"] }
          )
          yield* world.submit({ goal: "ship it\nsoon", plan })
          yield* world.state("g1", "blocked")
          broken = false
          yield* world.goals.retry("g1", null, caller)
          yield* world.state("g1", "goal_met")
          const blocked = (yield* world.runes).find(({ kind }) => kind === "plan.blocked")!
          const lines = yield* story(world.log, { stream: "c", actor: "plan/g1", upTo: blocked.eventId })
          const error = "its turn ended with an error; it had said: no key"
          assert.deepStrictEqual(
            lines.map(({ text }) => text.replace(/at [0-9a-f]{12}/, "at HEAD")),
            [
              "ada submitted this goal: ship it soon",
              `b failed and will be retried: ${error}`,
              `b failed: ${error}`,
              "1 of 3 tasks done, 1 failed, 1 blocked, 2 errors",
              "done, on agentd/ann at HEAD: a"
            ]
          )
          assert.deepStrictEqual(yield* story(world.log, { stream: "c", actor: "worker/ann", upTo: 9 }), [])
        }),
      { goals: { maxTaskErrors: 2 } }
    )
  )

  it.live("what the reviews found is told, the rounds being spent", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", says("done"))
          const found = {
            findings: [
              { severity: "error", task: "a", message: "too short" },
              { severity: "error", message: "x" }
            ]
          }
          world.crew.add("judge", says(JSON.stringify(found)))
          yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
          const goal = yield* world.state("g1", "blocked")
          const lines = yield* story(world.log, { stream: "c", actor: "plan/g1", upTo: goal.restsOn })
          assert.deepStrictEqual(
            lines.slice(1).map(({ text }) => text),
            ["the review found: a: too short (and 1 more)", "1 of 3 tasks done, 2 pending, 0 errors"]
          )
        }),
      { goals: { critic: "judge", rounds: 1 } }
    )
  )

  it.live("a long one is told from its newest steps", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", () => Effect.succeed({ outcome: "error" as const, output: "no" }))
          world.crew.add("eve", says("done"))
          const tasks = Array.from({ length: 20 }, (_, index) => ({ id: `t${index}`, title: "x", owner: "bob" }))
          yield* world.submit({ plan: world.file(...tasks, { id: "z", title: "x", dependsOn: ["t1"] }) })
          const goal = yield* world.state("g1", "blocked")
          const lines = yield* story(world.log, { stream: "c", actor: "plan/g1", upTo: goal.restsOn })
          assert.strictEqual(lines[1]!.text, "… after 8 earlier steps")
          assert.lengthOf(lines, 15)
          assert.strictEqual(lines.at(-1)!.text, "0 of 21 tasks done, 20 failed, 1 blocked, 20 errors")
        }),
      { goals: { maxTaskErrors: 1 } }
    )
  )
})
