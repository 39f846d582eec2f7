/** StateMachineActor, in any order of tells, asks, refusals, crashes and stops, under a real supervisor. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Exit, Fiber, Schema } from "effect"
import type { Committed } from "../../../src/core/event-actor/ActorHandle.ts"
import { RuneRefused } from "../../../src/core/event-log/EventLog.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import { type Event, type Lit, make, settled, until } from "../../world/event-actor/Lantern.ts"

/** Commands from outside to a lamp, in any order. */
const Command = Schema.Literals([
  "tell",
  "tell",
  "tell",
  "ask",
  "ask",
  "tell that the log refuses",
  "ask that the log refuses",
  "toggle",
  "toggle",
  "relight",
  "crash by tell",
  "crash by ask",
  "crash in an action",
  "stop",
  "breathe",
  "breathe long"
])
type Command = typeof Command.Type

const REFUSED = 1_000_000
const SHOUT_BREAKS = 2_000_000

interface Asked {
  readonly n: number
  readonly fiber: Fiber.Fiber<Committed<Lit>, unknown>
}

/** Does it all, lets everything come to rest with the lamp on, and says what came of it. */
const play = Effect.fnUntraced(function* (commands: ReadonlyArray<Command>) {
  const { actor, folded, letters, log, scope } = yield* make({
    capacity: 100_000,
    perform: (action) => (action._tag === "Shout" && action.n >= SHOUT_BREAKS ? Effect.die("no voice") : Effect.void)
  })
  log.guard = ({ runes }) =>
    runes.some(({ payload }) => ((payload["event"] as Event & { n?: number }).n ?? 0) % (2 * REFUSED) >= REFUSED)
      ? new RuneRefused({ kind: "lamp.moved", rule: "schema", message: "no" })
      : undefined
  const top = yield* Supervisor.make({ name: "top", backoff: "none", intensity: 100_000, children: [scope] })
  const told: Array<number> = []
  const asked: Array<Asked> = []
  let next = 0
  const tell = (n: number) => {
    told.push(n)
    actor.tellNow({ _tag: "Poke", n })
  }
  const ask = (n: number) =>
    Effect.map(Effect.forkChild(actor.ask({ _tag: "Poke", n }), { startImmediately: true }), (fiber) => {
      asked.push({ n, fiber })
    })
  for (const command of commands) {
    next += 1
    if (command === "tell") tell(next)
    else if (command === "ask") yield* ask(next)
    else if (command === "tell that the log refuses") tell(REFUSED + next)
    else if (command === "ask that the log refuses") yield* ask(REFUSED + next)
    else if (command === "toggle") actor.tellNow({ _tag: "Toggle" })
    else if (command === "relight") actor.tellNow({ _tag: "Relight" })
    else if (command === "crash by tell") actor.tellNow({ _tag: "Bang" })
    else if (command === "crash by ask") {
      yield* Effect.forkChild(actor.ask({ _tag: "Bang" }), { startImmediately: true })
    } else if (command === "crash in an action") tell(SHOUT_BREAKS + next)
    else if (command === "stop") {
      yield* top.terminateChild(scope.id)
      yield* top.restartChild(scope.id)
    } else for (let n = 0; n < (command === "breathe" ? 1 : 10); n++) yield* Effect.yieldNow
  }
  // To rest: an ask behind all mail is dealt with (not cut off by a crash), and finds the lamp on, where nothing is postponed.
  let atRest = false
  while (!atRest) {
    const refused = yield* Effect.flip(actor.ask({ _tag: "Late" }))
    atRest = refused._tag === "Refused" && actor.state.state === "On"
    if (!atRest && refused._tag === "Refused") yield* Effect.ignore(actor.ask({ _tag: "Toggle" }))
    yield* settled
  }
  yield* until(() => asked.every(({ fiber }) => fiber.pollUnsafe() !== undefined))
  const buried = letters.flatMap(({ message }) =>
    (message as Event)._tag === "Poke" ? [(message as { n: number }).n] : []
  )
  return { actor, folded, log, told, asked, buried, pokes: actor.state.data.pokes }
})

describe("StateMachineActor, in any order of tells, asks, crashes and stops", () => {
  it.effect.prop(
    "loses no told message, duplicates none, keeps their order, and answers exactly what it did",
    [Arbitrary.array(Arbitrary.schema(Command), { maxLength: 80 })],
    ([commands]) =>
      Effect.gen(function* () {
        const { actor, asked, buried, folded, log, pokes, told } = yield* play(commands)
        assert.strictEqual(new Set(pokes).size, pokes.length, "nothing twice")
        for (const n of told) {
          const times = pokes.filter((poke) => poke === n).length + buried.filter((letter) => letter === n).length
          assert.strictEqual(times, 1, `told ${n} is done or dead-lettered, once`)
        }
        for (const { fiber, n } of asked) {
          const exit = fiber.pollUnsafe()!
          assert.strictEqual(pokes.includes(n), Exit.isSuccess(exit), `asked ${n}: ${exit._tag}`)
          if (Exit.isSuccess(exit)) assert.include(exit.value.state.data.pokes, n)
        }
        const plain = pokes.map((n) => n % REFUSED)
        assert.deepStrictEqual(
          plain,
          plain.toSorted((a, b) => a - b),
          "in order"
        )
        assert.deepStrictEqual(folded(), actor.state, "the fold is the live state")
        assert.deepStrictEqual(
          log.kept.flatMap((rune) => (rune.trigger === "Poke" ? [(rune.payload["event"] as { n: number }).n] : [])),
          pokes
        )
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 200 } }
  )
})
