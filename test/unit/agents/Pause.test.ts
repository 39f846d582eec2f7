/** A pause that comes while a run is being started: what is said of it, and what comes of it. */
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as Puppet from "../../world/agents/Puppet.ts"
import * as World from "../../world/agents/World.ts"

for (const inFlight of ["interrupt", "complete"] as const) {
  it.live(`says that the turn of a run that is being started waits (${inFlight}), and so it does`, () =>
    Effect.gen(function* () {
      const puppet = Puppet.make({ up: false })
      const w = yield* World.make(puppet)
      w.configure({ agents: { a: World.command({ interruptGrace: "100ms", backoff: { base: "1ms" } }) } })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      yield* fleet.send("a", { text: "the errand", how: "queue" }, w.caller)
      const run = yield* puppet.run()
      yield* World.untilAgent(fleet, "a", ({ state }) => state === "Spawning")
      const { message } = yield* fleet.pause("", { inFlight, reason: "" }, w.caller)
      assert.match(message, /is paused; 1 run is being started: its turn waits\. Let it go on/)
      yield* run.say({ _tag: "Started" }, { _tag: "TurnStarted", turnId: run.spec.turnId })
      const ended = Effect.map(
        Stream.runCollect(w.log.read({ kinds: ["turn.completed", "turn.interrupted"] })),
        (runes) => [...runes]
      )
      yield* World.until(
        Effect.sync(() => run.interrupts + run.ends),
        (count) => count > 0
      )
      yield* run.say({ _tag: "TurnInterrupted", turnId: run.spec.turnId, output: "" })
      const [turn] = yield* World.until(ended, (runes) => runes.length === 1)
      assert.match(String(turn!.payload["reason"]), /the conversation is paused by ada/)
      yield* fleet.resume("", w.caller)
      // the same run goes on, told why; where the grace was over before the agent said so, the next one carries it
      yield* World.until(
        Effect.sync(() => [
          run.sent.some(({ text }) => /ended early: the conversation is paused by ada.*the errand/s.test(text)),
          puppet.runs.slice(1).some(({ spec }) => spec.prompt.includes("the errand"))
        ]),
        (isHeard) => isHeard.includes(true)
      )
    })
  )
}
