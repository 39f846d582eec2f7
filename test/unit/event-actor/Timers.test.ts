/** Timers: the timeouts of a table, by the names of OTP's gen_statem cases. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { actor } from "../../../src/core/event-actor/EventSourcedActor.ts"
import type { Due } from "../../../src/core/event-actor/Mail.ts"
import { Timers } from "../../../src/core/event-actor/Timers.ts"
import { dark, make, makeHeld, run, settled, until } from "../../world/event-actor/Lantern.ts"
import { lab, MemoryLog, Restarter, scopeIn } from "../../world/event-actor/Lab.ts"

const test = (name: string, body: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.effect(name, () => Effect.scoped(body()))

const toggle = { _tag: "Toggle" } as const
const dimmed = { _tag: "Dimmed" } as const
const poke = (n: number) => ({ _tag: "Poke", n }) as const
const extend = (ms: number) => ({ _tag: "Extend", ms }) as const

describe("state_timeout", () => {
  test("fires its event when the state has lasted that long, caused by the rune that entered it", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* make()
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* TestClock.adjust(999)
      yield* settled
      assert.strictEqual(actor.state.state, "On")
      yield* TestClock.adjust(1)
      yield* until(() => actor.state.state === "Off")
      assert.deepInclude(log.kept.at(-1), { trigger: "Timeout", cause: { stream: "p", seq: 1 } })
    }))

  test("is not started anew by a move to the same state", () =>
    Effect.gen(function* () {
      const { actor, scope } = yield* make()
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* TestClock.adjust(700)
      yield* actor.ask(poke(1))
      yield* TestClock.adjust(300)
      yield* until(() => actor.state.state === "Off")
    }))

  test("is cancelled by a change of state, and starts anew when the state is entered again", () =>
    Effect.gen(function* () {
      const { actor, scope } = yield* make()
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* TestClock.adjust(700)
      yield* actor.ask(toggle)
      yield* actor.ask(toggle)
      yield* TestClock.adjust(999)
      yield* settled
      assert.strictEqual(actor.state.state, "On")
      yield* TestClock.adjust(1)
      yield* until(() => actor.state.state === "Off")
      assert.strictEqual(actor.state.data.timeouts, 1)
    }))

  test("of 0 fires after what is already queued", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* make()
      yield* run(scope)
      for (const event of [dimmed, poke(1), poke(2)]) actor.tellNow(event)
      yield* until(() => actor.state.state === "On")
      assert.deepStrictEqual(
        log.kept.map(({ trigger }) => trigger),
        ["Dimmed", "Poke", "Poke", "Timeout"]
      )
    }))

  test("goes on over a crash, and does not follow the wall clock while the process lives", () =>
    Effect.gen(function* () {
      const real = yield* Clock.Clock
      let jump = 0
      const jumping: Clock.Clock = {
        ...real,
        currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe() + jump,
        currentTimeMillis: Effect.sync(() => real.currentTimeMillisUnsafe() + jump)
      }
      const { actor, scope } = yield* make().pipe(Effect.provideService(Clock.Clock, jumping))
      const { end } = yield* run(scope)
      yield* actor.ask(toggle)
      yield* TestClock.adjust(600)
      jump = 3_600_000
      yield* Effect.exit(actor.ask({ _tag: "Bang" }))
      yield* end
      yield* run(scope)
      yield* TestClock.adjust(399)
      yield* settled
      assert.strictEqual(actor.state.state, "On")
      yield* TestClock.adjust(1)
      yield* until(() => actor.state.data.timeouts === 1)
    }))

  test("of a state that no rune has entered counts from the first start", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_000_000)
      const { actor, scope } = yield* make({ state: { state: "On", data: dark, entered: 0, at: 0, seq: 0 } })
      yield* run(scope)
      yield* TestClock.adjust(999)
      yield* settled
      assert.strictEqual(actor.state.state, "On")
      yield* TestClock.adjust(1)
      yield* until(() => actor.state.state === "Off")
    }))
})

describe("timeout_cancel_and_update", () => {
  test("a move that takes the deadline further takes the timeout with it", () =>
    Effect.gen(function* () {
      const { actor, scope } = yield* make()
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* TestClock.adjust(900)
      yield* actor.ask(extend(1_500))
      yield* TestClock.adjust(599)
      yield* settled
      assert.strictEqual(actor.state.state, "On")
      yield* TestClock.adjust(1)
      yield* until(() => actor.state.state === "Off")
    }))

  test("a deadline that moves counts on from when the state was entered, whatever the wall clock has done", () =>
    Effect.gen(function* () {
      const real = yield* Clock.Clock
      let jump = 0
      const jumping: Clock.Clock = {
        ...real,
        currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe() + jump,
        currentTimeMillis: Effect.sync(() => real.currentTimeMillisUnsafe() + jump)
      }
      const { actor, scope } = yield* make().pipe(Effect.provideService(Clock.Clock, jumping))
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* TestClock.adjust(600)
      jump = 3_600_000
      yield* actor.ask(extend(1_500))
      yield* TestClock.adjust(899)
      yield* settled
      assert.strictEqual(actor.state.state, "On")
      yield* TestClock.adjust(1)
      yield* until(() => actor.state.state === "Off")
    }))

  test("a move that takes the deadline into the past fires at once; one that takes it away fires never", () =>
    Effect.gen(function* () {
      const { actor, scope } = yield* make()
      yield* run(scope)
      yield* actor.ask(toggle)
      yield* TestClock.adjust(500)
      yield* actor.ask(extend(Number.MAX_SAFE_INTEGER))
      yield* TestClock.adjust(1_000_000)
      yield* settled
      assert.strictEqual(actor.state.state, "On")
      yield* actor.ask(extend(1))
      yield* until(() => actor.state.data.timeouts === 1)
    }))

  test("a timeout that has fired and waits in the mailbox is void once the state is left, as stepped", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* makeHeld()
      yield* run(scope)
      actor.tellNow(toggle)
      yield* settled
      log.land()
      yield* TestClock.adjust(500)
      actor.tellNow(toggle)
      actor.tellNow(toggle)
      yield* settled
      // on the disk it is still in the state that it has left
      yield* TestClock.adjust(500)
      yield* settled
      log.land()
      yield* settled
      log.land()
      assert.deepInclude(actor.state, { state: "On", entered: 3 })
      assert.strictEqual(actor.state.data.timeouts, 0)
    }))

  test("the same if the deadline was moved meanwhile", () =>
    Effect.gen(function* () {
      const { actor, log, scope } = yield* makeHeld()
      yield* run(scope)
      actor.tellNow(toggle)
      yield* settled
      log.land()
      actor.tellNow(extend(5_000))
      yield* settled
      yield* TestClock.adjust(1_000)
      yield* settled
      log.land()
      assert.strictEqual(actor.state.state, "On")
      yield* TestClock.adjust(4_000)
      yield* settled
      log.land()
      assert.strictEqual(actor.state.data.timeouts, 1)
    }))
})

test("a timer whose message breaks its step is tried three times, dead-lettered, and does not fire again", () =>
  Effect.gen(function* () {
    const { letters, system } = lab(new MemoryLog(), {}, yield* Effect.context<never>())
    const supervisor = new Restarter()
    const scope = scopeIn(system, "bomb")
    scope.add(
      "bomb",
      actor<number, string>({
        initial: 0,
        decide: () => {
          throw new Error("boom")
        },
        apply: (n) => n,
        timers: (_, began) => [{ key: "fuse", since: began, after: 100, message: "tick" }]
      })
    )
    supervisor.startChild(scope)
    yield* TestClock.adjust(100)
    yield* settled
    yield* TestClock.adjust(10_000)
    yield* settled
    assert.deepStrictEqual([supervisor.restarts, letters.map(({ reason }) => reason)], [3, ["poison"]])
  }))

/** As a clock that was set back by a minute, and as one whose milliseconds lag behind the monotonic one's. */
for (const behind of [1, 60_000]) {
  test(`whoever decides on a timer reads a time that is not before its deadline, on a clock ${behind} ms behind`, () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_000_000)
      const real = yield* Clock.Clock
      let lag = 0
      const lagging: Clock.Clock = { ...real, currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe() - lag }
      const log = new MemoryLog()
      const { system } = lab(log, {}, Context.make(Clock.Clock, lagging))
      const scope = scopeIn(system, "deadlines")
      const seen: Array<number> = []
      scope.add(
        "deadlines",
        actor<number, string>({
          initial: 0,
          decide: (_, __, { now }) => {
            seen.push(now)
            return { runes: [{ kind: "seen", payload: {} }], tells: [] }
          },
          apply: (n) => n + 1,
          timers: (n, began) => (n === 0 ? [{ key: "fuse", since: began, after: 100, message: "tick" }] : [])
        })
      )
      new Restarter().startChild(scope)
      lag = behind
      yield* TestClock.adjust(100)
      yield* settled
      assert.deepStrictEqual(seen, [1_000_100])
      assert.strictEqual(log.kept.at(-1)?.at, 1_000_100)
    }))
}

test("what the loop's timer tells too early is waited for again", () =>
  Effect.gen(function* () {
    let now = 0
    const waits: Array<readonly [ms: number, task: () => void]> = []
    const told: Array<Due> = []
    const timers = new Timers(
      { stream: "p", push: (due) => void told.push(due) },
      {
        clock: { currentTimeMillisUnsafe: () => now },
        monotonic: () => now,
        after: (ms, task) => {
          waits.push([ms, task])
          return () => {}
        }
      }
    )
    timers.set([{ key: "fuse", since: 0, after: 60, message: "tick" }])
    now = 41.5
    waits[0]![1]()
    assert.deepStrictEqual([waits.map(([ms]) => ms), told.length], [[60, 19], 0])
    now = 60
    waits[1]![1]()
    assert.lengthOf(told, 1)
  }))
