/** Tests that an attention state that is over is left in time, whatever becomes of hooks. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Effect, FileSystem, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { MAX_RECOVERY } from "../../../src/plates/PlateMachine.ts"
import type { EventRefused } from "../../../src/plates/JsonReader.ts"
import { type Happening, Session, SESSION } from "./Session.ts"
import { type Board, breathe, restart, run, T0, until, type World } from "./World.ts"
import { sample } from "../../support/Long.ts"

const ROUND = 10_000

const attention = new Set(["AwaitingInput", "AwaitingApproval", "Error"])

/** The knowledge of a person at the terminal. */
class Truth {
  private readonly asks = new Set<string>()
  /** Since when nothing has asked for attention, as far as the transcript tells. */
  quietSince = T0

  take(happening: Happening): void {
    if (happening._tag === "Asks") this.asks.add(happening.what)
    if (happening._tag === "Answered") this.told.delete(happening.what)
    if (happening._tag === "Hook" && happening.asks !== undefined && this.asks.has(happening.asks)) {
      this.told.add(happening.asks)
    }
    if (happening._tag === "Over" && this.asks.delete(happening.what) && this.asks.size === 0)
      this.quietSince = happening.at
  }

  /** Questions to the person of which the board has heard. */
  readonly told = new Set<string>()

  get isQuiet(): boolean {
    return this.asks.size === 0
  }
}

/** Says it, and waits until it is written down; what changes nothing is not waited for long. */
const say = Effect.fnUntraced(function* ({ log }: World, said: Effect.Effect<void, EventRefused>) {
  const before = yield* log.head
  yield* Effect.orDie(said)
  for (let beat = 0; beat < 50 && (yield* log.head) === before; beat++) yield* breathe
  yield* breathe
})

const happen = Effect.fnUntraced(function* (world: World, board: Board, happening: Happening) {
  if (happening._tag === "Hook") {
    yield* say(world, board.hook(happening.name, SESSION, happening.more))
  } else if (happening._tag === "Write") {
    const records = happening.records.map(({ made, ...record }) => ({
      ...record,
      timestamp: new Date(T0 + Number(made)).toISOString()
    }))
    yield* board.write(happening.file, ...records)
  }
})

/**
 * Plays a session; answers the longest time, ms, for which the board asked for
 * attention that nobody had to give, and when it first hid what it had heard of.
 */
const play = Effect.fnUntraced(function* (world: World, session: Session, restartAt: number) {
  const truth = new Truth()
  const longest = { millis: 0, story: "", hidden: "" }
  let board = world.board
  let restarted = restartAt < 0

  const look = Effect.gen(function* () {
    const rows = yield* board.rows
    const row = rows.find(({ sessionId }) => sessionId === SESSION)
    const now = yield* Clock.currentTimeMillis
    if (truth.told.size > 0 && longest.hidden === "" && (row === undefined || !attention.has(row.status))) {
      longest.hidden = `${[...truth.told].join()} at ${now - T0}: ${row?.status} (${row?.restsOn?.signal})`
    }
    if (row === undefined || !attention.has(row.status) || !truth.isQuiet) return
    const millis = now - truth.quietSince
    if (millis > longest.millis)
      Object.assign(longest, { millis, story: `${row.status} at ${now - T0}: ${row.detail}` })
  })

  const goTo = Effect.fnUntraced(function* (at: number) {
    for (let now = yield* Clock.currentTimeMillis; now < at; now = yield* Clock.currentTimeMillis) {
      // The first round is under way as soon as there is a plate: time must not overtake it.
      const { checkedAt } = yield* until(
        "the first round",
        board.plates.health,
        ({ checkedAt, open }) => open === 0 || checkedAt !== null
      )
      const stop = Math.min(at, (checkedAt ?? now) + ROUND)
      yield* TestClock.setTime(Math.max(stop, now + 1))
      if (stop === (checkedAt ?? 0) + ROUND) {
        yield* until("a round", board.plates.health, (health) => (health.checkedAt ?? 0) > (checkedAt ?? 0))
        yield* breathe
      }
      yield* look
    }
  })

  for (const happening of session.happenings) {
    yield* goTo(T0 + happening.at)
    if (!restarted && happening.at > restartAt) {
      restarted = true
      board = yield* restart({ ...world, board })
      yield* until("its first round", board.plates.health, ({ checkedAt, open }) => open === 0 || checkedAt !== null)
      yield* breathe
      truth.quietSince = Math.max(truth.quietSince, yield* Clock.currentTimeMillis)
    }
    // An answer comes before its hooks, and a dialog before what tells of it.
    if (happening._tag === "Answered") truth.take(happening)
    yield* happen(world, board, happening)
    truth.take({ ...happening, at: T0 + happening.at })
    yield* look
  }
  yield* goTo((yield* Clock.currentTimeMillis) + 30_000)
  return longest
})

const choices = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))).check(
  Schema.isMinLength(20),
  Schema.isMaxLength(120)
)

/** Below 0: never. */
const restartAt = Schema.Int.check(Schema.isBetween({ minimum: -60_000, maximum: 60_000 }))
const options = { arbitrary: { runs: sample(5_000, 60) }, timeout: sample(3_600_000, 120_000) }

describe("recovery", () => {
  it.effect.prop(
    "INV-RECOVERY-BOUNDED: an attention state that is over is left within 12 s, however many hooks are lost, late or doubled, restarts included",
    { choices, restartAt },
    ({ choices, restartAt }) =>
      run((world) =>
        Effect.gen(function* () {
          const { millis, story } = yield* play(world, new Session(choices, "any"), restartAt)
          assert.isAtMost(millis, MAX_RECOVERY, story)
        })
      ),
    options
  )
})

describe("recovery", () => {
  /** Every transcript is out of sight. */
  const blind = Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) => ({
      ...fs,
      stat: (path: string) => fs.stat(path.endsWith(".jsonl") ? `${path}/none` : path)
    }))
  ).pipe(Layer.provide(NodeServices.layer))

  it.effect("INV-RECOVERY-BOUNDED: is broken where no transcript can be read, so that the property can fail", () =>
    Effect.gen(function* () {
      const session = (seed: number) =>
        new Session(
          Array.from({ length: 60 }, (_, i) => (seed * 7919 + i * i * 104_729) % 99_991),
          "any"
        )
      const overs = yield* Effect.forEach([1, 2, 3, 4, 5], (seed) =>
        run((world) => Effect.map(play(world, session(seed), -1), ({ millis }) => millis), { fileSystem: blind })
      )
      assert.isAbove(Math.max(...overs), MAX_RECOVERY)
    })
  )
})

describe("waiting hidden", () => {
  it.effect.prop(
    "what has been told to wait is shown until it is answered, whatever goes on beside it",
    { choices, restartAt },
    ({ choices, restartAt }) =>
      run((world) =>
        Effect.gen(function* () {
          const { hidden } = yield* play(world, new Session(choices, "kept"), restartAt)
          assert.strictEqual(hidden, "")
        })
      ),
    options
  )
})
