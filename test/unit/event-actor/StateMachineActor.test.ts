/**
 * StateMachineActor: what an animated table promises, alone in its scope; with OTP's
 * gen_statem cases: state_enter, event_order, next_events, stop_and_reply, abnormal ends
 * (here), state_timeout, timeout_cancel_and_update (Timers.test.ts).
 *
 * Of no meaning here:
 * - next_events beyond the retry of postponed ones: a cell is data and inserts no events;
 *   what must follow at once is told in `follow`.
 * - generic_timers beside the state's: a table has one timeout a state; other actors name
 *   theirs by key.
 * - event timeouts (ended by any event): a deadline that an event moves is data.
 * - hibernate, code_change, format_status, enter_loop: an idle scope holds no stack, code
 *   changes with the process, status is the state.
 * - stop_and_reply with several replies: an ask has one answer.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { ActorStopped } from "../../../src/core/event-actor/ActorError.ts"
import { Refused } from "../../../src/core/event-actor/Refused.ts"
import { RuneRefused } from "../../../src/core/event-log/EventLog.ts"
import type { Unit } from "../../../src/core/event-log/Log.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import { dark, make, makeHeld, run, settled, until } from "../../world/event-actor/Lantern.ts"

const test = (name: string, body: () => Effect.Effect<void, unknown, import("effect").Scope.Scope>) =>
  it.effect(name, () => Effect.scoped(body()))

const toggle = { _tag: "Toggle" } as const
const poke = (n: number) => ({ _tag: "Poke", n }) as const
const extend = (ms: number) => ({ _tag: "Extend", ms }) as const
const refusal = (isOne: (n: number | undefined) => boolean) => (unit: Unit) =>
  unit.runes.some(({ payload }) => isOne((payload["event"] as { n?: number }).n))
    ? new RuneRefused({ kind: "lamp.moved", rule: "schema", message: "no" })
    : undefined

test("an ask is answered with the state that its rune led to, durable by then", () =>
  Effect.gen(function* () {
    const { actor, log, scope } = yield* make()
    yield* run(scope)
    const { cause, eventId, state } = yield* actor.ask(toggle)
    assert.deepStrictEqual(state, { state: "On", data: dark, entered: eventId, at: 0, seq: 1 })
    assert.strictEqual(actor.state, state)
    assert.deepStrictEqual([log.head, eventId, cause], [1, 1, { stream: "p", seq: 1 }])
  }))

test("every move appends one rune with its whole event, its cause, and where from and to", () =>
  Effect.gen(function* () {
    const { actor, log, scope } = yield* make()
    yield* run(scope)
    const { cause } = yield* actor.ask(toggle, { stream: "q", seq: 7 })
    yield* actor.ask(poke(7), cause)
    const [first, second] = log.kept
    assert.deepInclude(first, { from: "Off", to: "On", trigger: "Toggle", cause: { stream: "q", seq: 7 }, seq: 1 })
    assert.deepInclude(second, {
      actor: "lamp/a",
      stream: "p",
      from: "On",
      to: "On",
      trigger: "Poke",
      cause,
      moves: []
    })
    assert.deepStrictEqual(second!.payload, { event: poke(7) })
  }))

test("actions are performed in order, after their rune, with its state and cause", () =>
  Effect.gen(function* () {
    const given: Array<unknown> = []
    const { actor, log, scope, seen } = yield* make({
      perform: (_, { cause, state }) =>
        Effect.sync(() => void given.push([cause?.seq, state.data.pokes, log.kept.length >= cause!.seq]))
    })
    yield* run(scope)
    for (const event of [toggle, poke(1), poke(2)]) actor.tellNow(event)
    yield* until(() => given.length === 3)
    assert.deepStrictEqual(given, [
      [1, [], true],
      [2, [1], true],
      [3, [1, 2], true]
    ])
    assert.deepStrictEqual(seen.said, ["say 0", "shout 1", "shout 2"])
  }))

test("the mail goes on while an action is performed; the next action waits", () =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    const { actor, scope, seen } = yield* make({ perform: () => Deferred.await(gate) })
    yield* run(scope)
    yield* actor.ask(toggle)
    assert.deepStrictEqual((yield* actor.ask(poke(1))).state.data.pokes, [1])
    assert.deepStrictEqual(seen.said, ["say 0"])
    yield* Deferred.succeed(gate, undefined)
    yield* until(() => seen.said.length === 2)
  }))

describe("refusals", () => {
  test("a refused ask fails typed, says why and where the event is taken; nothing is changed", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* make()
      yield* run(scope)
      const before = actor.state
      const error = yield* Effect.flip(actor.ask({ _tag: "Relight" }))
      assert.instanceOf(error, Refused)
      assert.deepInclude(
        { ...(error as Refused) },
        { actor: "lamp/a", state: "Off", event: "Relight", why: "illegal", remedy: "the event is accepted in On" }
      )
      assert.strictEqual(((yield* Effect.flip(actor.ask({ _tag: "Late" }))) as Refused).why, "stale")
      assert.strictEqual(actor.state, before)
      assert.isEmpty(log.kept)
    }))

  test("a refused tell is dead-lettered with its refusal if illegal, and dropped if stale", () =>
    Effect.gen(function* () {
      const { actor, letters, scope, system } = yield* make()
      yield* run(scope)
      for (const event of [{ _tag: "Late" }, { _tag: "Relight" }] as const) actor.tellNow(event)
      yield* actor.ask(toggle)
      assert.deepStrictEqual(
        letters.map((letter) => [letter.reason, letter.message]),
        [["illegal", { _tag: "Relight" }]]
      )
      assert.instanceOf(letters[0]!.why, Refused)
      assert.deepInclude(system.metrics, { stale: 1, refused: 1, deadLetters: 1, macrosteps: 3, appends: 1 })
    }))

  test("a refusal names the state as stepped, and waits for what it speaks of", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* makeHeld()
      yield* run(scope)
      actor.tellNow({ _tag: "Dimmed" })
      const asking = yield* Effect.forkChild(Effect.flip(actor.ask({ _tag: "Relight" })), { startImmediately: true })
      yield* settled
      assert.isUndefined(asking.pollUnsafe())
      log.land()
      assert.strictEqual(((yield* Fiber.join(asking)) as Refused).state, "Dim")
    }))

  test("a postponed ask waits for the state to change", () =>
    Effect.gen(function* () {
      const { actor, scope } = yield* make()
      yield* run(scope)
      const asking = yield* Effect.forkChild(actor.ask(poke(1)), { startImmediately: true })
      yield* settled
      assert.isUndefined(asking.pollUnsafe())
      yield* actor.ask(toggle)
      assert.deepStrictEqual((yield* Fiber.join(asking)).state.data.pokes, [1])
    }))

  test("a postponed ask fails typed when the scope is stopped", () =>
    Effect.gen(function* () {
      const { actor, scope } = yield* make()
      const { handle } = yield* run(scope)
      const asking = yield* Effect.forkChild(Effect.flip(actor.ask(poke(1))), { startImmediately: true })
      yield* settled
      handle.stop("shutdown")
      assert.deepInclude(
        { ...((yield* Fiber.join(asking)) as ActorStopped) },
        { _tag: "ActorStopped", reason: "stopped" }
      )
    }))

  test("half the mailbox may be postponed, then asks are refused and tells dead-lettered", () =>
    Effect.gen(function* () {
      const { actor, letters, scope } = yield* make({ capacity: 4 })
      yield* run(scope)
      for (const n of [1, 2, 3]) actor.tellNow(poke(n))
      assert.strictEqual(((yield* Effect.flip(actor.ask(poke(4)))) as Refused).why, "postponed-limit")
      assert.deepInclude(letters[0], { reason: "postponed-limit", message: poke(3) })
      yield* actor.ask(toggle)
      yield* until(() => actor.state.data.pokes.length === 2)
    }))

  test("a rune that the log refuses fails its own message only", () =>
    Effect.gen(function* () {
      const { actor, folded, letters, log, scope, system } = yield* make()
      log.guard = refusal((n) => n === 2)
      yield* run(scope)
      for (const event of [toggle, poke(1), poke(2), poke(3)]) actor.tellNow(event)
      yield* until(() => actor.state.data.pokes.length === 2)
      assert.deepStrictEqual(actor.state.data.pokes, [1, 3])
      assert.deepInclude(letters[0], { reason: "refused", message: poke(2) })
      assert.instanceOf(yield* Effect.flip(actor.ask(poke(2))), RuneRefused)
      assert.deepStrictEqual([folded(), system.metrics.crashes], [actor.state, 0])
    }))
})

describe("crashes", () => {
  test("in a step: the messages before it are committed and acted on", () =>
    Effect.gen(function* () {
      const { actor, log, scope, seen } = yield* make()
      const { end } = yield* run(scope)
      for (const event of [toggle, poke(1), { _tag: "Bang" }, poke(2)] as const) actor.tellNow(event)
      assert.isTrue(Exit.hasDies(yield* end))
      assert.deepStrictEqual(actor.state.data.pokes, [1])
      assert.deepStrictEqual(seen.said, ["say 0", "shout 1"])
      assert.lengthOf(log.kept, 2)
    }))

  test("the supervisor restarts it where it stood, and its activity begins again", () =>
    Effect.gen(function* () {
      const { actor, letters, scope, seen } = yield* make()
      yield* Supervisor.make({ name: "top", backoff: "none", intensity: 10, period: "30 seconds", children: [scope] })
      for (const event of [toggle, poke(1), { _tag: "Bang" }, poke(2)] as const) actor.tellNow(event)
      yield* until(() => actor.state.data.pokes.length === 2)
      assert.deepStrictEqual(actor.state, { state: "On", data: { ...dark, pokes: [1, 2] }, entered: 1, at: 0, seq: 1 })
      assert.deepInclude(letters[0], { reason: "poison", message: { _tag: "Bang" } })
      assert.deepStrictEqual(
        seen.activities.filter((entry) => entry.startsWith("+")),
        Array.from({ length: 4 }, () => "+shine 1")
      )
    }))

  test("in an action: it is not repeated, and what stood behind it is performed by the next incarnation", () =>
    Effect.gen(function* () {
      const { actor, scope, seen } = yield* make({
        perform: (action) => (action._tag === "Shout" && action.n === 1 ? Effect.die("no voice") : Effect.void)
      })
      const { end } = yield* run(scope)
      for (const event of [toggle, poke(1), poke(2)]) actor.tellNow(event)
      assert.isTrue(Exit.hasDies(yield* end))
      yield* run(scope)
      yield* until(() => seen.said.length === 3)
      assert.deepStrictEqual(seen.said, ["say 0", "shout 1", "shout 2"])
      assert.deepStrictEqual(actor.state.data.pokes, [1, 2])
    }))

  test("in an activity: its failure is what the supervisor hears", () =>
    Effect.gen(function* () {
      const { actor, scope } = yield* make({ shine: () => Effect.fail("no current") })
      const { end } = yield* run(scope)
      yield* actor.ask(toggle)
      assert.deepStrictEqual(yield* end, Exit.fail("no current"))
    }))

  test("killed while it appends: the end is reported, the append becomes durable, is answered, and acted on by the next", () =>
    Effect.gen(function* () {
      const { actor, folded, log, scope, seen } = yield* makeHeld({ perform: () => Effect.void })
      const { end, handle } = yield* run(scope)
      const asking = yield* Effect.forkChild(actor.ask(toggle), { startImmediately: true })
      yield* settled
      handle.stop("shutdown")
      handle.stop("kill")
      assert.isTrue(Exit.hasInterrupts(yield* end))
      log.land()
      assert.strictEqual((yield* Fiber.join(asking)).state.state, "On")
      yield* run(scope)
      assert.deepStrictEqual(folded(), actor.state)
      yield* until(() => seen.said.length === 1)
    }))
})

describe("activities", () => {
  test("begin on entering the state, end on leaving it, and are keyed by the rune that entered it", () =>
    Effect.gen(function* () {
      const { actor, scope, seen } = yield* make()
      yield* run(scope)
      for (const event of [toggle, poke(1), toggle, toggle]) yield* actor.ask(event)
      yield* settled
      assert.deepStrictEqual(seen.activities, ["+shine 1", "-shine 1", "+shine 4"])
    }))

  test("keep_state: a move to the same state begins nothing", () =>
    Effect.gen(function* () {
      const { actor, scope, seen } = yield* make()
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* actor.ask(poke(1))
      yield* settled
      assert.deepStrictEqual(seen.activities, ["+shine 1"])
    }))

  test("repeat_state: begin again on reenter, and the state's timeout goes on", () =>
    Effect.gen(function* () {
      const { actor, scope, seen } = yield* make()
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* TestClock.adjust(600)
      yield* actor.ask({ _tag: "Relight" })
      yield* settled
      assert.deepStrictEqual(seen.activities, ["+shine 1", "-shine 1", "+shine 2"])
      yield* TestClock.adjust(400)
      yield* until(() => actor.state.state === "Off")
    }))

  test("wait for the finalizers of the one before", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { actor, scope, seen } = yield* make({
        shine: () =>
          Effect.andThen(
            Effect.addFinalizer(() => Deferred.await(gate)),
            Effect.never
          )
      })
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* actor.ask({ _tag: "Relight" })
      yield* settled
      assert.deepStrictEqual(
        seen.activities.filter((entry) => entry.startsWith("+")),
        ["+shine 1"]
      )
      yield* Deferred.succeed(gate, undefined)
      yield* settled
      assert.strictEqual(seen.activities.at(-1), "+shine 2")
    }))

  test("answer by telling their own actor, also with an ask", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* make({
        shine: ({ cause, self }) => Effect.andThen(self.tell(poke(1), cause), Effect.asVoid(self.ask(poke(2), cause)))
      })
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* until(() => actor.state.data.pokes.length === 2)
      assert.deepStrictEqual(
        log.kept.map(({ cause }) => cause?.seq),
        [undefined, 1, 1]
      )
    }))

  test("that end well leave the actor as it is, and do not begin again", () =>
    Effect.gen(function* () {
      const { actor, scope, seen } = yield* make({ shine: () => Effect.void })
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* actor.ask(poke(1))
      yield* settled
      assert.deepStrictEqual(seen.activities, ["+shine 1", "-shine 1"])
    }))

  test("are interrupted, and waited for, before the end is reported", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { actor, scope } = yield* make({
        shine: () =>
          Effect.andThen(
            Effect.addFinalizer(() => Deferred.await(gate)),
            Effect.never
          )
      })
      const { end, handle } = yield* run(scope)
      yield* actor.ask(toggle)
      yield* settled
      handle.stop("shutdown")
      const ended = yield* Effect.forkChild(end)
      yield* settled
      assert.isUndefined(ended.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.join(ended)))
    }))

  test("the actions of a move come before the entry of the state that it leads to", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const { actor, scope } = yield* make({
        perform: () => Effect.sync(() => void order.push("action")),
        shine: () => Effect.sync(() => void order.push("enter"))
      })
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* settled
      assert.deepStrictEqual(order, ["action", "enter"])
    }))

  test("the initial state is entered, too", () =>
    Effect.gen(function* () {
      const { scope, seen } = yield* make({ state: { state: "On", data: dark, entered: 0, at: 0, seq: 0 } })
      yield* run(scope)
      yield* settled
      assert.deepStrictEqual(seen.activities, ["+shine 0"])
    }))
})

describe("order", () => {
  const triggers = (log: { readonly kept: ReadonlyArray<{ readonly trigger: string | null }> }) =>
    log.kept.map(({ trigger }) => trigger)

  test("postponed events come back after a change of state, oldest first, before new mail", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* make()
      yield* run(scope)
      for (const event of [poke(1), poke(2), toggle, poke(3)]) actor.tellNow(event)
      yield* until(() => actor.state.data.pokes.length === 3)
      assert.deepStrictEqual(actor.state.data.pokes, [1, 2, 3])
      assert.deepStrictEqual(triggers(log), ["Toggle", "Poke", "Poke", "Poke"])
    }))

  test("the same, however the mail falls into batches", () =>
    Effect.gen(function* () {
      const { actor, scope } = yield* make()
      yield* run(scope)
      for (const event of [poke(1), poke(2), toggle, poke(3)]) {
        actor.tellNow(event)
        yield* settled
      }
      assert.deepStrictEqual(actor.state.data.pokes, [1, 2, 3])
    }))

  test("a move to the same state brings no postponed event back", () =>
    Effect.gen(function* () {
      const { actor, scope } = yield* make()
      yield* run(scope)
      actor.tellNow(poke(1))
      yield* actor.ask(extend(5))
      yield* settled
      assert.isEmpty(actor.state.data.pokes)
      yield* actor.ask(toggle)
      yield* until(() => actor.state.data.pokes.length === 1)
    }))

  test("an event that comes back may be postponed again, and keeps its place", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* make({ state: { state: "Dim", data: dark, entered: 0, at: 0, seq: 0 } })
      for (const event of [toggle, poke(1)]) actor.tellNow(event)
      yield* run(scope)
      yield* until(() => actor.state.state === "Off")
      assert.deepStrictEqual(triggers(log), ["Poke", "Timeout", "Toggle"])
    }))

  test("what comes back is dealt with before what waits, also if it changes the state again", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* make({ state: { state: "Dim", data: dark, entered: 0, at: 0, seq: 0 } })
      for (const event of [toggle, toggle]) actor.tellNow(event)
      yield* run(scope)
      yield* until(() => actor.state.entered === 3)
      assert.deepStrictEqual(
        log.kept.map((rune) => `${rune.from} ${rune.trigger} ${rune.to}`),
        ["Dim Timeout On", "On Toggle Off", "Off Toggle On"]
      )
    }))
})

describe("recovery", () => {
  test("from the fold: the state's activity begins again, its actions are not repeated", () =>
    Effect.gen(function* () {
      const before = yield* make()
      const { handle } = yield* run(before.scope)
      yield* before.actor.ask(toggle)
      handle.stop("shutdown")
      const { actor, log, scope, seen } = yield* make({ state: before.folded() })
      log.resume(before.log.kept)
      yield* run(scope)
      yield* settled
      assert.deepStrictEqual(seen, { said: [], activities: ["+shine 1"] })
      assert.deepStrictEqual((yield* actor.ask(poke(1))).state.data.pokes, [1])
    }))

  test("the timeout goes on from when the state was entered, by the wall clock", () =>
    Effect.gen(function* () {
      const before = yield* make()
      const { handle } = yield* run(before.scope)
      yield* TestClock.adjust(50)
      yield* before.actor.ask(toggle)
      handle.stop("shutdown")
      yield* TestClock.adjust(600)
      const { actor, scope } = yield* make({ state: before.folded() })
      yield* run(scope)
      yield* TestClock.adjust(399)
      yield* settled
      assert.strictEqual(actor.state.state, "On")
      yield* TestClock.adjust(1)
      yield* until(() => actor.state.state === "Off")
    }))

  test("a timeout that passed meanwhile fires at once; a clock set back waits no longer than the whole", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(10_000)
      const late = yield* make({ state: { state: "On", data: dark, entered: 1, at: 1, seq: 1 } })
      yield* run(late.scope)
      yield* until(() => late.actor.state.state === "Off")
      const early = yield* make({ state: { state: "On", data: dark, entered: 1, at: 99_999_999, seq: 1 } })
      yield* run(early.scope)
      yield* TestClock.adjust(999)
      yield* settled
      assert.strictEqual(early.actor.state.state, "On")
      yield* TestClock.adjust(1)
      yield* until(() => early.actor.state.state === "Off")
    }))
})

describe("ends", () => {
  test("normally, once a final state is acted on: the ask that led there is answered before, later ones hear that it stopped", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const { actor, scope, seen } = yield* make({ endsWhenFinal: true, restart: "transient" })
      const { end } = yield* run(scope)
      yield* Effect.forkChild(Effect.tap(end, () => Effect.sync(() => order.push("end"))))
      yield* actor.ask({ _tag: "Smash" })
      order.push("answer")
      assert.deepStrictEqual(yield* end, Exit.void)
      yield* settled
      assert.deepStrictEqual([order, seen.said], [["answer", "end"], ["say 0"]])
      assert.strictEqual(((yield* Effect.flip(actor.ask(toggle))) as ActorStopped).reason, "stopped")
    }))

  test("only when its last action is over", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { actor, scope } = yield* make({
        endsWhenFinal: true,
        restart: "temporary",
        perform: () => Deferred.await(gate)
      })
      const { end } = yield* run(scope)
      yield* actor.ask({ _tag: "Smash" })
      assert.strictEqual(scope.status, "running")
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual([yield* end, scope.status], [Exit.void, "closed"])
    }))
})

test("an ask that its asker gives up changes nothing if its turn has not come", () =>
  Effect.gen(function* () {
    const { actor, scope } = yield* make()
    yield* run(scope)
    const asking = yield* Effect.forkChild(actor.ask(poke(1)), { startImmediately: true })
    yield* settled
    yield* Fiber.interrupt(asking)
    yield* actor.ask(toggle)
    yield* settled
    assert.isEmpty(actor.state.data.pokes)
  }))
