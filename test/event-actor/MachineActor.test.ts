import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ActorStopped } from "../../src/event-actor/ActorRef.ts"
import { DeadLetters } from "../../src/event-actor/DeadLetters.ts"
import { Refused } from "../../src/event-actor/Refused.ts"
import * as Supervisor from "../../src/supervision/Supervisor.ts"
import { EventLog, RuneRefused, StorageError } from "../../src/event-log/EventLog.ts"
import { dark, folded, intercepted, layer, make, run, runes, type Services, settled, until } from "./lamp.ts"

const test = (name: string, body: () => Effect.Effect<void, unknown, Services | Scope.Scope>) =>
  it.effect(name, () => body().pipe(Effect.scoped, Effect.provide(layer)))

const toggle = { _tag: "Toggle" } as const
const poke = (n: number) => ({ _tag: "Poke", n }) as const
const refusal = () => Effect.fail(new RuneRefused({ kind: "inbox.received", rule: "schema", message: "no" }))
const broken = Effect.fail(new StorageError({ message: "disk full", remedy: "free some", reason: "full" }))
const isPoke = (n: number) => (draft: { readonly payload: { readonly [key: string]: unknown } }) =>
  (draft.payload["event"] as { n?: number }).n === n

describe("MachineActor", () => {
  test("an ask is answered with the snapshot that its rune led to, durable by then", () =>
    Effect.gen(function* () {
      const { actor } = yield* make()
      yield* run(actor)
      const { eventId, snapshot } = yield* actor.ask(toggle)
      assert.deepStrictEqual(snapshot, { state: "On", data: dark, entered: eventId, seq: 1, at: 0 })
      assert.strictEqual(actor.snapshot, snapshot)
      assert.strictEqual(yield* (yield* EventLog).head, eventId)
    }))

  test("every move appends one rune with its whole event, its cause, and where from and to", () =>
    Effect.gen(function* () {
      const { actor } = yield* make()
      yield* run(actor)
      const before = { stream: "elsewhere", seq: 3 }
      const { cause } = yield* actor.ask(toggle, before)
      yield* actor.ask(poke(7), cause)
      const [first, second] = yield* runes
      assert.deepInclude(first, { kind: "worktree.kept", from: "Off", to: "On", trigger: "Toggle", cause: before })
      assert.deepInclude(second, {
        actor: "lamp/a",
        stream: "p",
        from: "On",
        to: "On",
        trigger: "Poke",
        cause: { stream: "p", seq: 1 }
      })
      assert.deepStrictEqual(second!.payload, { path: "lamp", event: poke(7) })
    }))

  test("a batch is appended in one call and its actions are performed in order, after it", () =>
    Effect.gen(function* () {
      const appends: Array<number> = []
      const { actor, seen } = yield* make({
        log: intercepted((drafts) => {
          appends.push(drafts.length)
          assert.isEmpty(seen.said)
          return undefined
        })
      })
      yield* run(actor)
      for (const event of [toggle, poke(1), poke(2), poke(3)]) actor.tellNow(event)
      yield* until(() => seen.said.length === 4)
      assert.deepStrictEqual(appends, [4])
      assert.deepStrictEqual(seen.said, ["say 0", "shout 1", "shout 2", "shout 3"])
    }))

  test("an action is given the snapshot and the eventId of its own rune", () =>
    Effect.gen(function* () {
      const given: Array<unknown> = []
      const { actor } = yield* make({
        perform: (_, { cause, snapshot }) => Effect.sync(() => void given.push([cause.eventId, snapshot.data.pokes]))
      })
      yield* run(actor)
      for (const event of [toggle, poke(1), poke(2)]) actor.tellNow(event)
      yield* until(() => given.length === 3)
      assert.deepStrictEqual(given, [
        [1, []],
        [2, [1]],
        [3, [1, 2]]
      ])
    }))

  test("mail waits while an action is performed", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { actor } = yield* make({ perform: () => Deferred.await(gate) })
      yield* run(actor)
      yield* actor.ask(toggle)
      const asking = yield* Effect.forkChild(actor.ask(poke(1)))
      yield* settled
      assert.isUndefined(asking.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual((yield* Fiber.join(asking)).snapshot.data.pokes, [1])
    }))

  describe("refusals", () => {
    test("a refused ask fails typed, says why and where the event is taken; nothing is changed", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        const before = actor.snapshot
        const error = yield* Effect.flip(actor.ask({ _tag: "Relight" }))
        assert.instanceOf(error, Refused)
        assert.deepInclude(
          { ...error },
          { actor: "lamp/a", state: "Off", event: "Relight", why: "illegal", remedy: "it is taken in On" }
        )
        assert.strictEqual((yield* Effect.flip(actor.ask({ _tag: "Late" })) as Effect.Effect<Refused>).why, "stale")
        assert.strictEqual(actor.snapshot, before)
        assert.isEmpty(yield* runes)
      }))

    test("a refused tell is dead-lettered if illegal and dropped if stale", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        for (const event of [{ _tag: "Late" }, { _tag: "Relight" }] as const) actor.tellNow(event)
        yield* actor.ask(toggle)
        const letters = yield* (yield* DeadLetters).recent
        assert.deepStrictEqual(
          letters.map((letter) => [letter.reason, letter.message]),
          [["illegal", { _tag: "Relight" }]]
        )
      }))

    test("a refusal in the middle of a batch names the state at that moment", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        actor.tellNow({ _tag: "Dimmed" })
        const error = yield* Effect.flip(actor.ask({ _tag: "Relight" }))
        assert.strictEqual((error as Refused).state, "Dim")
      }))

    test("however many wait, and ask again as soon as they are refused: all are answered", () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { actor } = yield* make({ capacity: 10_000, perform: () => Deferred.await(gate) })
        const { end } = yield* run(actor)
        yield* actor.ask(toggle)
        const late = Effect.flip(actor.ask({ _tag: "Late" }))
        const asking = yield* Effect.forkChild(
          Effect.forEach(Array.from({ length: 5_000 }), () => Effect.andThen(late, late), { concurrency: "unbounded" })
        )
        const ended = yield* Effect.forkChild(end)
        yield* settled
        yield* Deferred.succeed(gate, undefined)
        const errors = yield* Fiber.join(asking)
        assert.isTrue(errors.every((error) => error instanceof Refused))
        assert.isUndefined(ended.pollUnsafe())
      }))

    test("a postponed ask waits for the state to change", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        yield* run(actor)
        const asking = yield* Effect.forkChild(actor.ask(poke(1)), { startImmediately: true })
        yield* settled
        assert.isUndefined(asking.pollUnsafe())
        yield* actor.ask(toggle)
        assert.deepStrictEqual((yield* Fiber.join(asking)).snapshot.data.pokes, [1])
      }))

    test("a postponed ask fails typed when the actor ends", () =>
      Effect.gen(function* () {
        const { actor } = yield* make()
        const { handle } = yield* run(actor)
        const asking = yield* Effect.forkChild(Effect.flip(actor.ask(poke(1))), { startImmediately: true })
        yield* settled
        handle.stop("shutdown")
        assert.instanceOf(yield* Fiber.join(asking), ActorStopped)
      }))

    test("half the mailbox may be postponed, then asks are refused and tells dead-lettered", () =>
      Effect.gen(function* () {
        const { actor } = yield* make({ capacity: 4 })
        yield* run(actor)
        for (const n of [1, 2, 3]) actor.tellNow(poke(n))
        assert.strictEqual(((yield* Effect.flip(actor.ask(poke(4)))) as Refused).why, "postponed-limit")
        const [letter] = yield* (yield* DeadLetters).recent
        assert.deepInclude(letter, { reason: "postponed-limit", message: poke(3) })
        yield* actor.ask(toggle)
        yield* until(() => actor.snapshot.data.pokes.length === 2)
      }))
  })

  describe("a rune that the log refuses", () => {
    test("fails its own message only; the others are stepped anew without it", () =>
      Effect.gen(function* () {
        const { actor } = yield* make({
          log: intercepted((drafts) => (drafts.some(isPoke(2)) ? refusal() : undefined))
        })
        yield* run(actor)
        for (const event of [toggle, poke(1), poke(2), poke(3)]) actor.tellNow(event)
        yield* until(() => actor.snapshot.data.pokes.length === 2)
        assert.deepStrictEqual(actor.snapshot.data.pokes, [1, 3])
        const [letter] = yield* (yield* DeadLetters).recent
        assert.deepInclude(letter, { reason: "refused", message: poke(2) })
        assert.deepStrictEqual(yield* folded, actor.snapshot)
      }))

    test("fails its ask with what the log says", () =>
      Effect.gen(function* () {
        const { actor } = yield* make({
          log: intercepted((drafts) => (drafts.some(isPoke(2)) ? refusal() : undefined))
        })
        yield* run(actor)
        yield* actor.ask(toggle)
        assert.instanceOf(yield* Effect.flip(actor.ask(poke(2))), RuneRefused)
        assert.deepStrictEqual((yield* actor.ask(poke(3))).snapshot.data.pokes, [3])
      }))
  })

  test("a log that takes nothing ends the actor with that failure; its asks fail with it", () =>
    Effect.gen(function* () {
      const { actor } = yield* make({ log: intercepted(() => broken) })
      const { end } = yield* run(actor)
      assert.instanceOf(yield* Effect.flip(actor.ask(toggle)), StorageError)
      const exit = yield* end
      assert.isTrue(Exit.hasFails(exit))
      assert.strictEqual(actor.snapshot.state, "Off")
    }))

  describe("crashes", () => {
    test("in a step: the messages before it are committed and acted on", () =>
      Effect.gen(function* () {
        const { actor, seen } = yield* make()
        const { end } = yield* run(actor)
        for (const event of [toggle, poke(1), { _tag: "Bang" }, poke(2)] as const) actor.tellNow(event)
        assert.isTrue(Exit.hasDies(yield* end))
        assert.deepStrictEqual(actor.snapshot.data.pokes, [1])
        assert.deepStrictEqual(seen.said, ["say 0", "shout 1"])
        assert.lengthOf(yield* runes, 2)
      }))

    test("the supervisor restarts it where it stood, and its activity begins again", () =>
      Effect.gen(function* () {
        const { actor, seen } = yield* make()
        yield* Supervisor.make({ name: "top", backoff: "none", intensity: 10, period: "30 seconds", children: [actor] })
        for (const event of [toggle, poke(1), { _tag: "Bang" }, poke(2)] as const) actor.tellNow(event)
        yield* until(() => actor.snapshot.data.pokes.length === 2)
        assert.deepStrictEqual(actor.snapshot, {
          state: "On",
          data: { ...dark, pokes: [1, 2] },
          entered: 1,
          seq: 1,
          at: 0
        })
        const [letter] = yield* (yield* DeadLetters).recent
        assert.deepInclude(letter, { reason: "poison", message: { _tag: "Bang" } })
        assert.deepStrictEqual(seen.activities, [
          "+shine 1",
          "-shine 1",
          "+shine 1",
          "-shine 1",
          "+shine 1",
          "-shine 1",
          "+shine 1"
        ])
      }))

    test("in an action: it is not repeated, and what was committed behind it is performed by the next incarnation", () =>
      Effect.gen(function* () {
        const { actor, seen } = yield* make({
          perform: (action) => (action._tag === "Shout" && action.n === 1 ? Effect.die("no voice") : Effect.void)
        })
        const { end } = yield* run(actor)
        for (const event of [toggle, poke(1), poke(2)]) actor.tellNow(event)
        assert.isTrue(Exit.hasDies(yield* end))
        assert.deepStrictEqual(seen.said, ["say 0", "shout 1"])
        yield* run(actor)
        yield* until(() => seen.said.length === 3)
        assert.deepStrictEqual(seen.said, ["say 0", "shout 1", "shout 2"])
        assert.deepStrictEqual(actor.snapshot.data.pokes, [1, 2])
      }))

    test("in an activity: it reaches the supervisor", () =>
      Effect.gen(function* () {
        const { actor } = yield* make({ shine: () => Effect.fail("no current") })
        const { end } = yield* run(actor)
        yield* actor.ask(toggle)
        assert.deepStrictEqual(yield* end, Exit.fail("no current"))
      }))

    test("killed while it appends: what became durable is committed before the next start", () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { actor, seen } = yield* make({
          log: (log) => ({
            ...log,
            append: (drafts) => Effect.tap(log.append(drafts), () => Deferred.await(gate))
          })
        })
        const { handle, end } = yield* run(actor)
        const asking = yield* Effect.forkChild(Effect.flip(actor.ask(toggle)), { startImmediately: true })
        yield* settled
        handle.stop("shutdown")
        handle.stop("kill")
        yield* end
        assert.instanceOf(yield* Fiber.join(asking), ActorStopped)
        const again = yield* Effect.forkChild(run(actor))
        yield* settled
        assert.isUndefined(again.pollUnsafe())
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(again)
        assert.strictEqual(actor.snapshot.state, "On")
        assert.deepStrictEqual(yield* folded, actor.snapshot)
        yield* until(() => seen.said.length === 1)
      }))
  })

  describe("activities", () => {
    test("begin on entering the state, end on leaving it, and are keyed by the rune that entered it", () =>
      Effect.gen(function* () {
        const { actor, seen } = yield* make()
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* actor.ask(poke(1))
        yield* actor.ask(toggle)
        yield* actor.ask(toggle)
        yield* settled
        assert.deepStrictEqual(seen.activities, ["+shine 1", "-shine 1", "+shine 4"])
      }))

    test("begin again on reenter, though the state is the same", () =>
      Effect.gen(function* () {
        const { actor, seen } = yield* make()
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* actor.ask({ _tag: "Relight" })
        yield* settled
        assert.deepStrictEqual(seen.activities, ["+shine 1", "-shine 1", "+shine 2"])
      }))

    test("wait for the finalizers of the one before", () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { actor, seen } = yield* make({
          shine: () =>
            Effect.andThen(
              Effect.addFinalizer(() => Deferred.await(gate)),
              Effect.never
            )
        })
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* actor.ask({ _tag: "Relight" })
        yield* settled
        assert.lengthOf(
          seen.activities.filter((entry) => entry.startsWith("+")),
          1
        )
        yield* Deferred.succeed(gate, undefined)
        yield* settled
        assert.strictEqual(seen.activities.at(-1), "+shine 2")
      }))

    test("answer by telling their own actor, also with an ask", () =>
      Effect.gen(function* () {
        const { actor } = yield* make({
          shine: ({ self, cause }) => Effect.andThen(self.tell(poke(1), cause), Effect.asVoid(self.ask(poke(2), cause)))
        })
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* until(() => actor.snapshot.data.pokes.length === 2)
        assert.deepStrictEqual(
          (yield* runes).map((rune) => rune.cause?.seq ?? null),
          [null, 1, 1]
        )
      }))

    test("that end well leave the actor as it is", () =>
      Effect.gen(function* () {
        const { actor } = yield* make({ shine: () => Effect.void })
        yield* run(actor)
        yield* actor.ask(toggle)
        yield* settled
        assert.strictEqual((yield* actor.ask(poke(1))).snapshot.state, "On")
      }))

    test("are interrupted, and waited for, before the actor's end is reported", () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { actor } = yield* make({
          shine: () =>
            Effect.andThen(
              Effect.addFinalizer(() => Deferred.await(gate)),
              Effect.never
            )
        })
        const { handle, end } = yield* run(actor)
        yield* actor.ask(toggle)
        yield* settled
        handle.stop("shutdown")
        const ended = yield* Effect.forkChild(end)
        yield* settled
        assert.isUndefined(ended.pollUnsafe())
        yield* Deferred.succeed(gate, undefined)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.join(ended)))
      }))
  })

  describe("recovery", () => {
    test("from the fold: the state's activity begins again, its actions are not repeated", () =>
      Effect.gen(function* () {
        const before = yield* make()
        const { handle } = yield* run(before.actor)
        yield* before.actor.ask(toggle)
        handle.stop("shutdown")
        const { actor, seen } = yield* make({ snapshot: yield* folded })
        yield* run(actor)
        yield* settled
        assert.deepStrictEqual(seen, { said: [], activities: ["+shine 1"] })
        assert.deepStrictEqual((yield* actor.ask(poke(1))).snapshot.data.pokes, [1])
      }))

    test("the timeout goes on from when the state was entered, by the wall clock", () =>
      Effect.gen(function* () {
        const before = yield* make()
        const { handle } = yield* run(before.actor)
        yield* TestClock.adjust(50)
        yield* before.actor.ask(toggle)
        handle.stop("shutdown")
        yield* TestClock.adjust(600)
        const { actor } = yield* make({ snapshot: yield* folded })
        yield* run(actor)
        yield* TestClock.adjust(399)
        yield* settled
        assert.strictEqual(actor.snapshot.state, "On")
        yield* TestClock.adjust(1)
        yield* until(() => actor.snapshot.state === "Off")
      }))

    test("a timeout that passed meanwhile fires at once; a clock set back waits no longer than the whole", () =>
      Effect.gen(function* () {
        yield* TestClock.setTime(10_000)
        const late = yield* make({ snapshot: { state: "On", data: dark, entered: 1, seq: 1, at: 1 } })
        yield* run(late.actor)
        yield* until(() => late.actor.snapshot.state === "Off")
        const early = yield* make({ snapshot: { state: "On", data: dark, entered: 1, seq: 1, at: 99_999_999 } })
        yield* run(early.actor)
        yield* TestClock.adjust(1_000)
        yield* until(() => early.actor.snapshot.state === "Off")
      }))
  })

  test("it ends normally once a final state is acted on, where it is told to", () =>
    Effect.gen(function* () {
      const { actor, seen } = yield* make({ endsWhenFinal: true, restart: "temporary" })
      const { end } = yield* run(actor)
      assert.strictEqual((yield* actor.ask({ _tag: "Smash" })).snapshot.state, "Gone")
      assert.deepStrictEqual(yield* end, Exit.void)
      assert.deepStrictEqual(seen.said, ["say 0"])
      const late = yield* Effect.flip(actor.ask(toggle))
      assert.strictEqual((late as ActorStopped).reason, "stopped")
    }))

  test("a dead letter of an illegal tell carries the refusal", () =>
    Effect.gen(function* () {
      const { actor } = yield* make()
      yield* run(actor)
      actor.tellNow({ _tag: "Relight" })
      yield* settled
      const [letter] = yield* (yield* DeadLetters).recent
      assert.instanceOf(letter!.why, Refused)
    }))

  test("subscribers see the runes in order, without the actor calling them", () =>
    Effect.gen(function* () {
      const { actor } = yield* make()
      yield* run(actor)
      const log = yield* EventLog
      const watching = yield* Effect.forkChild(Stream.runCollect(Stream.take(log.subscribe({ actor: "lamp/a" }), 3)))
      for (const event of [toggle, poke(1), poke(2)]) actor.tellNow(event)
      const seen = Array.from(yield* Fiber.join(watching))
      assert.deepStrictEqual(
        seen.map((rune) => rune.trigger),
        ["Toggle", "Poke", "Poke"]
      )
    }))
})
