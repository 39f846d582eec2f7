/** A daemon that ends in the middle of a turn, and what the next one makes of it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Log, Unit } from "../../../src/core/event-log/Log.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { apply, empty, fold } from "../../../src/channels/Recovery.ts"
import * as Double from "./CrewDouble.ts"
import { ada, breathe, CONVERSATION, type Logs, logs, run, start, T0, until, type World } from "./World.ts"

const reviews = { reviews: { agents: ["pm", "dev", "qa"] } }

const begun = Effect.fnUntraced(function* (world: World) {
  yield* world.configure(reviews)
  yield* world.come("pm", "dev", "qa")
  yield* world.post("Look at #42")
  yield* world.speaking("pm")
})

describe("after a restart in the middle of a turn", () => {
  it.effect("a turn that goes on keeps the floor, with a fresh time limit; its answer is posted once", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* begun(world)
        yield* world.stop
        yield* TestClock.adjust("10 minutes")
        const next = yield* start(world, world.crew)
        yield* until("it is settled", next.channels.ready, Boolean)
        yield* next.after(59)
        yield* next.floor("pm")
        yield* next.turn("pm", "Looked.\nTURN_COMPLETE")
        yield* next.floor("dev")
        assert.deepStrictEqual(yield* next.texts(), ["ada: Look at #42", "pm: Looked."])
        assert.lengthOf(world.crew.of("pm").heard, 1)
      })
    )
  )

  it.effect("an answer that nobody heard is posted, once, however often it starts again", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* begun(world)
        yield* world.stop
        yield* world.crew.answer("pm", "Looked.\nTURN_COMPLETE")
        let next = yield* start(world, world.crew)
        for (const _ of [1, 2]) {
          yield* next.speaking("dev")
          assert.deepStrictEqual(yield* next.texts(), ["ada: Look at #42", "pm: Looked."])
          next = yield* next.restart
        }
        yield* next.speaking("dev")
        assert.lengthOf(world.crew.of("dev").heard, 1)
      })
    )
  )

  it.effect("an answer without a signal, posted already, is not posted again", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* begun(world)
        yield* world.crew.answer("pm", "Looked.")
        yield* world.quiet
        const next = yield* world.restart
        yield* until("it is settled", next.channels.ready, Boolean)
        yield* next.quiet
        assert.deepStrictEqual(yield* next.texts(), ["ada: Look at #42", "pm: Looked."])
        yield* next.floor("pm")
        assert.lengthOf(yield* next.runes("channel.unsignalled"), 1)
      })
    )
  )

  it.effect("who died meanwhile is OFFLINE before the floor is given; until that is settled nobody has it", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* begun(world)
        yield* world.stop
        yield* world.crew.leave("pm", "crashed")
        yield* world.crew.leave("dev", "crashed")
        const settle = yield* Double.slowRecovery(world.crew)
        const next = yield* start(world, world.crew)
        yield* next.post("Hello?")
        yield* next.quiet
        assert.isFalse(yield* next.channels.ready)
        assert.lengthOf(world.crew.of("qa").heard, 0)
        yield* settle
        yield* next.speaking("qa")
        assert.deepInclude(yield* next.states(), { pm: "OFFLINE", dev: "OFFLINE" })
        const moves = (yield* next.runes("seat.moved")).map(({ actor, to }) => `${actor} ${to}`)
        assert.isBelow(moves.lastIndexOf("seat/reviews/pm OFFLINE"), moves.lastIndexOf("seat/reviews/qa ACTIVE"))
      })
    )
  )

  it.effect("what a person said to the turn is sent once more, and reaches it once", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* begun(world)
        yield* world.post("And at #43")
        yield* world.quiet
        const next = yield* world.restart
        yield* until("it is settled", next.channels.ready, Boolean)
        yield* next.turn("pm", "Both.\nTURN_COMPLETE")
        yield* next.turn("dev", "TURN_COMPLETE")
        yield* next.turn("qa", "TURN_COMPLETE")
        yield* next.quiet
        yield* next.floor(null)
        assert.lengthOf(world.crew.of("pm").heard, 2)
      })
    )
  )

  it.effect("a wait goes on for the rest of its time", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] } })
        yield* world.come("pm")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "WAIT: for dev")
        yield* world.stop
        yield* TestClock.adjust("200 seconds")
        const next = yield* start(world, world.crew)
        yield* until("it is settled", next.channels.ready, Boolean)
        yield* next.quiet
        yield* next.after(99)
        assert.deepStrictEqual(yield* next.states(), { pm: "WAITING" })
        yield* next.after(1)
        assert.deepStrictEqual(yield* next.states(), { pm: "QUEUED" })
      })
    )
  )

  it.effect("the fold of the log is the live channel", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* begun(world)
        yield* world.turn("pm", "One.\nWAIT: for dev")
        yield* world.channels.order("reviews", "priority", ["qa"], ada)
        yield* world.turn("dev", "Two.")
        const shown = yield* world.show()
        const folded = (yield* world.runes()).reduce(apply, empty).channels["reviews"]!
        const { channel, posts } = shown
        assert.deepStrictEqual(
          folded.posts.map(({ text }) => text),
          posts.map(({ text }) => text)
        )
        assert.deepStrictEqual(
          [folded.queue.current, folded.restsOn, folded.head],
          [channel.floor, channel.restsOn, channel.posts]
        )
      })
    )
  )

  it.effect("a channel whose runes do not fold is set aside, and touches no other", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] }, plans: { agents: ["dev"] } })
        const event = { _tag: "TurnGranted", turnId: "x", at: 1 }
        yield* world.log.append([
          {
            stream: CONVERSATION,
            kind: "seat.moved",
            actor: "seat/plans/dev",
            payload: { agentId: "dev", channel: "plans", event }
          }
        ])
        const next = yield* world.restart
        yield* until("it is settled", next.channels.ready, Boolean)
        assert.deepStrictEqual(
          (yield* next.channels.list).map(({ name }) => name),
          ["reviews"]
        )
      })
    )
  )
})

/**
 * The log of a daemon that dies at an append: before the append, or when it is durable and
 * no actor has heard of it. What comes later is taken and never durable.
 */
class DyingLog implements Log {
  readonly flight = undefined
  head: number
  /** Appends so far. */
  count = 0
  at: number
  private readonly seqs = new Map<string, number>()
  private readonly log: Log
  private readonly when: "before" | "after"

  constructor(log: Log, at: number, when: "before" | "after") {
    this.log = log
    this.at = at
    this.when = when
    this.head = log.head
  }

  get durable(): number {
    return this.log.durable
  }

  seqOf(stream: string): number {
    return this.seqs.get(stream) ?? this.log.seqOf(stream)
  }

  prepare(draft: RuneDraft) {
    return this.log.prepare(draft)
  }

  refuses(unit: Unit) {
    return this.count < this.at - 1 ? this.log.refuses(unit) : undefined
  }

  share(ready: number): number {
    return this.log.share(ready)
  }

  append(unit: Unit): boolean {
    this.count += 1
    for (const { eventId, seq, stream } of unit.runes) {
      this.head = eventId
      this.seqs.set(stream, seq)
    }
    if (this.count < this.at) return this.log.append(unit)
    unit.owner.ahead += 1
    if (this.count === this.at && this.when === "after") this.log.append({ ...unit, owner: silent })
    return false
  }
}

const silent: Unit["owner"] = { ahead: 0, durable: () => {}, failed: () => {}, refold: () => {}, rest: () => {} }

/** Ends a world whose appends never land: what waits for them is left behind after its grace. */
const abandon = Effect.fnUntraced(function* (world: World) {
  const stopping = yield* Effect.forkScoped(world.stop)
  while (stopping.pollUnsafe() === undefined) yield* Effect.andThen(TestClock.adjust("1 second"), breathe)
})

/** Answers each question once, as an agent does. */
const answers = (agent: string, { text }: { readonly text: string }): string => {
  const asked = [...text.matchAll(/^> (Q\d)$/gm)].map(([, question]) => `${agent} on ${question}`)
  return asked.length === 0 ? "TURN_COMPLETE" : `${asked.join(", ")}\nTURN_COMPLETE`
}

const conversation = Effect.fnUntraced(function* ({ log, writes }: Logs, at: number, when: "before" | "after") {
  const crew = yield* Double.make(CONVERSATION)
  crew.auto = answers
  const scope = yield* Scope.fork(yield* Effect.scope)
  const first = yield* start({ log, writes: new DyingLog(writes, at, when) }, crew).pipe(Scope.provide(scope))
  const config = { reviews: { agents: ["pm", "dev"] } }
  const talk = Effect.fnUntraced(function* (world: World) {
    yield* world.configure(config)
    const said = yield* world.texts()
    for (const question of ["Q1", "Q2"]) if (!said.includes(`ada: ${question}`)) yield* world.post(question)
  })
  yield* first.come("pm", "dev")
  yield* Effect.forkScoped(Effect.ignore(talk(first)))
  yield* first.quiet
  const reached = yield* log.head
  yield* abandon(first)
  const second = yield* start({ log, writes }, crew)
  yield* until("it is settled", second.channels.ready, Boolean)
  yield* second.quiet
  yield* talk(second)
  yield* second.quiet
  const texts = yield* second.texts()
  const { channel } = yield* second.show()
  yield* second.stop
  return { texts, floor: channel.floor, reached }
})

describe("a daemon that dies at any append", () => {
  for (const when of ["before", "after"] as const) {
    it.effect(`${when} it is durable: nothing is lost, nothing is posted twice, nobody speaks out of turn`, () =>
      Effect.gen(function* () {
        let at = 1
        for (let last = -1; ; at++) {
          yield* TestClock.setTime(T0)
          const { floor, reached, texts } = yield* Effect.gen(function* () {
            return yield* conversation(yield* logs, at, when)
          }).pipe(Effect.scoped, Effect.provide(DaemonLog.layerMemory))
          const label = `${when} append ${at}: ${texts.join(" | ")}`
          const answered = texts
            .filter((text) => !text.startsWith("ada"))
            .flatMap((text) => text.split(": ")[1]!.split(", "))
          assert.sameMembers(answered, ["pm on Q1", "dev on Q1", "pm on Q2", "dev on Q2"], label)
          assert.sameMembers(
            texts.filter((text) => text.startsWith("ada")),
            ["ada: Q1", "ada: Q2"],
            label
          )
          assert.isNull(floor, label)
          // Beyond the last append there is nothing to die at.
          if (reached === last) break
          last = reached
        }
        assert.isAbove(at, 8)
      })
    )
  }
})

describe("what crosses to agents", () => {
  it.effect("a turn that was taken away as the daemon died is interrupted by the next one", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.stop
        const dying = new DyingLog(world.writes, Number.POSITIVE_INFINITY, "after")
        const first = yield* start({ log: world.log, writes: dying }, world.crew)
        yield* begun(first)
        yield* first.quiet
        // It times out, which is durable; its agent is not told.
        dying.at = dying.count + 1
        yield* first.after(61)
        assert.isDefined(world.crew.of("pm").turn)
        yield* abandon(first)
        const next = yield* start(world, world.crew)
        yield* next.speaking("dev")
        assert.isUndefined(world.crew.of("pm").turn)
      })
    )
  )
})

describe("the recovery of a long conversation", () => {
  it.effect("goes on from a snapshot", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] } })
        for (let n = 0; n < 1_000; n++) yield* world.post(`Word ${n}`)
        const of = Effect.map(world.log.recover(CONVERSATION, { channels: fold }), ({ channels }) => channels)
        const before = yield* of
        assert.isAtLeast(before.read, 1_000)
        world.log.keep(CONVERSATION, fold, before.state, before.eventId)
        const after = yield* of
        assert.strictEqual(after.read, 0)
        assert.deepStrictEqual(after.state, before.state)
      })
    )
  )
})
