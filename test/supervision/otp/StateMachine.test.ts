/**
 * OTP's gen_statem cases, by their names, on an animated machine.
 *
 * Of no meaning here:
 * - next_events beyond the retry of postponed ones: a cell is data and inserts no
 *   events; what must follow at once is an action or the state's activity.
 * - generic_timers (named timers beside the state's): a machine has one timeout
 *   per state, so that a fold can restore it; a second one is a second actor.
 * - event timeouts (ended by any event): a deadline that an event moves is data,
 *   see timeout_cancel_and_update.
 * - hibernate, code_change, format_status, enter_loop: an idle actor holds no
 *   stack, code changes with the process, status is the snapshot.
 * - stop_and_reply with several replies: an ask has one answer.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { ActorStopped } from "../../../src/event-actor/ActorRef.ts"
import { dark, folded, layer, make, run, runes, type Services, settled, until } from "../../event-actor/lamp.ts"

const test = (name: string, body: () => Effect.Effect<void, unknown, Services | Scope.Scope>) =>
  it.effect(name, () => body().pipe(Effect.scoped, Effect.provide(layer)))

const toggle = { _tag: "Toggle" } as const
const dimmed = { _tag: "Dimmed" } as const
const poke = (n: number) => ({ _tag: "Poke", n }) as const
const extend = (ms: number) => ({ _tag: "Extend", ms }) as const
const triggers = Effect.map(runes, (all) => all.map((rune) => rune.trigger))

describe("gen_statem", () => {
  describe("state_enter", () => {
    test("the initial state is entered too", () =>
      Effect.gen(function* () {
        const { actor, seen } = yield* make({ snapshot: { state: "On", data: dark, entered: 0, seq: 0, at: 0 } })
        yield* run(actor)
        yield* settled
        assert.deepStrictEqual(seen.activities, ["+shine 0"])
      }))

    test("the actions of a move come before the entry of the state it leads to", () =>
      Effect.gen(function* () {
        const order: Array<string> = []
        const { actor } = yield* make({
          perform: () => Effect.sync(() => void order.push("action")),
          shine: () => Effect.sync(() => void order.push("enter"))
        })
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* settled
        assert.deepStrictEqual(order, ["action", "enter"])
      }))

    test("keep_state: a move to the same state enters nothing", () =>
      Effect.gen(function* () {
        const { actor, seen } = yield* make()
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* actor.ask(poke(1))
        yield* settled
        assert.deepStrictEqual(seen.activities, ["+shine 1"])
      }))

    test("repeat_state: enters again, and the state's timeout goes on", () =>
      Effect.gen(function* () {
        const { actor, seen } = yield* make()
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* TestClock.adjust(600)
        yield* actor.ask({ _tag: "Relight" })
        yield* settled
        assert.deepStrictEqual(seen.activities, ["+shine 1", "-shine 1", "+shine 2"])
        yield* TestClock.adjust(400)
        yield* until(() => actor.snapshot.state === "Off")
      }))
  })

  describe("event_order", () => {
    test("postponed events come back after a change of state, oldest first, before new mail", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        for (const event of [poke(1), poke(2), toggle, poke(3)]) actor.tellNow(event)
        yield* until(() => actor.snapshot.data.pokes.length === 3)
        assert.deepStrictEqual(actor.snapshot.data.pokes, [1, 2, 3])
        assert.deepStrictEqual(yield* triggers, ["Toggle", "Poke", "Poke", "Poke"])
      }))

    test("the same, however the mail falls into batches", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        for (const event of [poke(1), poke(2), toggle, poke(3)]) {
          actor.tellNow(event)
          yield* settled
        }
        assert.deepStrictEqual(actor.snapshot.data.pokes, [1, 2, 3])
      }))

    test("a move to the same state brings no postponed event back", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        actor.tellNow(poke(1))
        yield* actor.ask(extend(5))
        yield* settled
        assert.isEmpty(actor.snapshot.data.pokes)
        yield* actor.ask(toggle)
        yield* until(() => actor.snapshot.data.pokes.length === 1)
      }))

    test("an event that comes back may be postponed again, and keeps its place", () =>
      Effect.gen(function* () {
        const { actor } = yield* make({ snapshot: { state: "Dim", data: dark, entered: 0, seq: 0, at: 0 } })
        // In Dim: Toggle waits. Timeout 0 leads to On, where it is taken and leads to Off; there Poke waits.
        for (const event of [toggle, poke(1)]) actor.tellNow(event)
        yield* run(actor)
        yield* until(() => actor.snapshot.state === "Off")
        assert.deepStrictEqual(yield* triggers, ["Poke", "Timeout", "Toggle"])
      }))
  })

  test("next_events: what comes back is dealt with before what waits, also if it changes the state again", () =>
    Effect.gen(function* () {
      const { actor } = yield* make({ snapshot: { state: "Dim", data: dark, entered: 0, seq: 0, at: 0 } })
      for (const event of [toggle, toggle]) actor.tellNow(event)
      yield* run(actor)
      yield* until(() => actor.snapshot.entered === 3)
      assert.deepStrictEqual(
        (yield* runes).map((rune) => `${rune.from} ${rune.trigger} ${rune.to}`),
        ["Dim Timeout On", "On Toggle Off", "Off Toggle On"]
      )
    }))

  describe("state_timeout", () => {
    test("fires its event when the state has lasted that long", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* TestClock.adjust(999)
        yield* settled
        assert.strictEqual(actor.snapshot.state, "On")
        yield* TestClock.adjust(1)
        yield* until(() => actor.snapshot.state === "Off")
        const last = (yield* runes).at(-1)!
        assert.deepInclude(last, { trigger: "Timeout", cause: { stream: "p", seq: 1 } })
      }))

    test("is not started anew by a move to the same state", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* TestClock.adjust(700)
        yield* actor.ask(poke(1))
        yield* TestClock.adjust(300)
        yield* until(() => actor.snapshot.state === "Off")
      }))

    test("is cancelled by a change of state, and starts anew when the state is entered again", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* TestClock.adjust(700)
        yield* actor.ask(toggle)
        yield* actor.ask(toggle)
        yield* TestClock.adjust(999)
        yield* settled
        assert.strictEqual(actor.snapshot.state, "On")
        yield* TestClock.adjust(1)
        yield* until(() => actor.snapshot.state === "Off")
        assert.strictEqual(actor.snapshot.data.timeouts, 1)
      }))

    test("of 0 fires after what is already queued", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        for (const event of [dimmed, poke(1), poke(2)]) actor.tellNow(event)
        yield* until(() => actor.snapshot.state === "On")
        assert.deepStrictEqual(yield* triggers, ["Dimmed", "Poke", "Poke", "Timeout"])
      }))

    test("goes on over a crash, from when the state was entered", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        const { end } = yield* run(actor)
        yield* actor.ask(toggle)
        yield* TestClock.adjust(600)
        yield* Effect.exit(actor.ask({ _tag: "Bang" }))
        yield* end
        yield* run(actor)
        yield* TestClock.adjust(399)
        yield* settled
        assert.strictEqual(actor.snapshot.state, "On")
        yield* TestClock.adjust(1)
        yield* until(() => actor.snapshot.state === "Off")
      }))

    test("does not follow the wall clock while the process lives, also over a crash", () =>
      Effect.gen(function* () {
        const real = yield* Clock.Clock
        let jump = 0
        const jumping: Clock.Clock = {
          ...real,
          currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe() + jump,
          currentTimeMillis: Effect.sync(() => real.currentTimeMillisUnsafe() + jump)
        }
        const { actor } = yield* make().pipe(Effect.provideService(Clock.Clock, jumping))
        const { end } = yield* run(actor)
        yield* actor.ask(toggle)
        yield* TestClock.adjust(600)
        jump = 3_600_000
        yield* Effect.exit(actor.ask({ _tag: "Bang" }))
        yield* end
        yield* run(actor)
        yield* TestClock.adjust(399)
        yield* settled
        assert.strictEqual(actor.snapshot.state, "On")
        yield* TestClock.adjust(1)
        yield* until(() => actor.snapshot.data.timeouts === 1)
      }))
  })

  describe("timeout_cancel_and_update", () => {
    test("a move that takes the deadline further takes the timeout with it", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* TestClock.adjust(900)
        yield* actor.ask(extend(1_500))
        yield* TestClock.adjust(599)
        yield* settled
        assert.strictEqual(actor.snapshot.state, "On")
        yield* TestClock.adjust(1)
        yield* until(() => actor.snapshot.state === "Off")
      }))

    test("a move that takes the deadline into the past fires at once; one that takes it away fires never", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* TestClock.adjust(500)
        yield* actor.ask(extend(Number.POSITIVE_INFINITY))
        yield* TestClock.adjust(1_000_000)
        yield* settled
        assert.strictEqual(actor.snapshot.state, "On")
        yield* actor.ask(extend(1))
        yield* until(() => actor.snapshot.data.timeouts === 1)
      }))

    test("a timeout that has fired and waits in the mailbox is void once the state is left", () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { actor } = yield* make({
          perform: (action) => (action._tag === "Shout" ? Deferred.await(gate) : Effect.void)
        })
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* actor.ask(poke(1))
        actor.tellNow(toggle)
        actor.tellNow(toggle)
        yield* TestClock.adjust(1_000)
        yield* Deferred.succeed(gate, undefined)
        yield* until(() => actor.snapshot.entered === 4)
        yield* settled
        assert.deepInclude(actor.snapshot, { state: "On" })
        assert.strictEqual(actor.snapshot.data.timeouts, 0)
      }))

    test("the same if the deadline was moved meanwhile", () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { actor } = yield* make({
          perform: (action) => (action._tag === "Shout" ? Deferred.await(gate) : Effect.void)
        })
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* actor.ask(poke(1))
        actor.tellNow(extend(5_000))
        yield* TestClock.adjust(1_000)
        yield* Deferred.succeed(gate, undefined)
        yield* settled
        assert.strictEqual(actor.snapshot.state, "On")
        yield* TestClock.adjust(4_000)
        yield* until(() => actor.snapshot.data.timeouts === 1)
      }))
  })

  describe("stop_and_reply", () => {
    test("the ask that leads to the end is answered before it", () =>
      Effect.gen(function* () {
        const order: Array<string> = []
        const { actor } = yield* make({ endsWhenFinal: true, restart: "transient" })
        const { end } = yield* run(actor)
        yield* Effect.forkChild(Effect.tap(end, () => Effect.sync(() => order.push("end"))))
        yield* actor.ask({ _tag: "Smash" })
        order.push("answer")
        assert.deepStrictEqual(yield* end, Exit.void)
        yield* settled
        assert.deepStrictEqual(order, ["answer", "end"])
      }))
  })

  describe("abnormal ends, with late replies", () => {
    test("asks that wait when it crashes fail typed, and a late answer reaches nobody", () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { actor } = yield* make({
          log: (log) => ({ ...log, append: (drafts) => Effect.tap(log.append(drafts), () => Deferred.await(gate)) })
        })
        const { handle, end } = yield* run(actor)
        const asking = yield* Effect.forkChild(Effect.flip(actor.ask(toggle)), { startImmediately: true })
        yield* settled
        handle.stop("kill")
        assert.instanceOf(yield* Fiber.join(asking), ActorStopped)
        yield* end
        yield* Deferred.succeed(gate, undefined)
        yield* settled
        assert.deepStrictEqual(yield* folded, actor.snapshot)
      }))

    test("an ask that its asker gives up changes nothing if its turn has not come", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        const asking = yield* Effect.forkChild(actor.ask(poke(1)), { startImmediately: true })
        yield* settled
        yield* Fiber.interrupt(asking)
        yield* actor.ask(toggle)
        yield* settled
        assert.isEmpty(actor.snapshot.data.pokes)
      }))
  })
})
