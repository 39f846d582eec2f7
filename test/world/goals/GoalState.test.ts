import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readGoal } from "../../../src/goals/GoalActor.ts"
import { apply, fromPlain, initial, type PlainGoal, toPlain } from "../../../src/goals/GoalState.ts"
import { caller, run } from "./World.ts"

describe("GoalState", () => {
  it.live("INV-REPLAY-IDEMPOTENT: at every rune it becomes plain data and comes back, and goes on as before", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          let n = 0
          world.crew.add("pm", (_, asked) =>
            Effect.succeed({ output: `{"tasks":[{"id":"t${asked}","title":"go","needs":["rust"]}]}` })
          )
          world.crew.add("judge", (_, asked) =>
            Effect.succeed({
              output: [
                '{"findings":[{"severity":"error","task":"t1","message":"too short"}]}',
                '{"findings":[{"severity":"error","message":"wrong track","needsReplan":true}]}',
                '{"findings":[]}'
              ][Math.min(asked, 3) - 1]!
            })
          )
          world.crew.add("bob", () => Effect.succeed(++n === 2 ? { outcome: "error" as const } : { output: "done" }), {
            can: ["rust"]
          })
          yield* world.submit({})
          yield* world.state("g1", "planning")
          yield* world.goals.reject("g1", "again", caller)
          yield* world.until("g1", "another plan", ({ tasks }) => tasks.pending === 1)
          yield* world.state("g1", "planning")
          while ((yield* world.goals.page("g1", 0, caller)).goal.state !== "goal_met") {
            yield* Effect.ignore(world.approve("g1", caller))
            yield* Effect.sleep("3 millis")
          }
          let live = initial
          let kept = initial
          for (const rune of yield* world.runes) {
            live = apply(live, rune)
            kept = fromPlain(JSON.parse(JSON.stringify(toPlain(apply(kept, rune)))) as PlainGoal)
            assert.deepStrictEqual(toPlain(kept), toPlain(live))
          }
          assert.deepStrictEqual(toPlain(live), toPlain(yield* readGoal(world.log, "c", "g1")))
          assert.isAbove(live.stand.seq, 10)
        }),
      { goals: { planner: "pm", critic: "judge", autoStart: false } }
    )
  )
})
