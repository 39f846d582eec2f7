/** Conversations whose daemon is killed at any moment. */
import { assert, describe } from "@effect/vitest"
import { join } from "node:path"
import { Effect } from "effect"
import { dice } from "../../support/Dice.ts"
import * as Laws from "../../support/Laws.ts"
import { killedAtAnyMoment } from "../../support/Person.ts"
import * as Stage from "../../support/Stage.ts"
import { long, sample } from "../../support/Long.ts"

/** A failing one is printed; `SEED=n` plays it again. */
const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)

describe("killed", () => {
  long.live(
    `kill -9 at any moment of all that: nothing acknowledged is lost, and all of it is done once [SEED=${seed}]`,
    () =>
      Effect.gen(function* () {
        const stage = yield* Stage.make
        yield* killedAtAnyMoment(stage, {
          die: dice(seed),
          kills: sample(40, 2),
          longest: sample(1500, 600),
          then: stage.box.until("the reaper has ended every run", stage.box.processes, (pids) => pids.length === 0)
        })
      })
  )

  long.live("a question survives kill -9: answered late, the same call runs without asking", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shop = stage.home({ agents: stage.trio("a") })
      yield* stage.up
      yield* shop.register
      yield* Stage.onEach((on) =>
        shop.tell(`a-${on}`, { ask: `echo ${on} >> ${join(shop.root, "made")}` }, { say: "made" })
      )
      const asked = yield* Effect.forEach(Stage.BACKENDS, (on) => shop.asked(`a-${on}`))
      // so that nothing asks anew before it is answered
      yield* stage.rpc((client) => client.Pause({ name: "", inFlight: "complete", reason: "", caller: shop.caller }))
      yield* stage.box.kill9
      yield* stage.up
      for (const { callId } of asked) {
        const { message } = yield* shop.answer(callId, "allow")
        assert.match(message, /applies when the agent repeats the call/)
      }
      yield* stage.rpc((client) => client.Resume({ name: "", caller: shop.caller }))
      yield* Stage.onEach((on) => shop.answers(`a-${on}`, 1))
      assert.sameMembers([...shop.noted("made")], [...Stage.BACKENDS])
      assert.strictEqual((yield* shop.log("tool.approval_requested")).length, 3, "each asked once")
      assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
    })
  )
})
