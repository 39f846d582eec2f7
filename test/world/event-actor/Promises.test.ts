/**
 * Promises: what actors promise whatever happens around them, each with the scenario in
 * which actors were seen to break it.
 */
import type { CommitScope } from "../../../src/core/event-actor/CommitScope.ts"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, References } from "effect"
import { TestClock } from "effect/testing"
import type { ActorStopped } from "../../../src/core/event-actor/ActorError.ts"
import type { System } from "../../../src/core/event-actor/ActorSystem.ts"
import { TURN } from "../../../src/core/event-actor/CommitScope.ts"
import { Manual } from "../../../src/core/event-actor/EventLoop.ts"
import { actor, type EventSourcedActor, LATER, later, tell } from "../../../src/core/event-actor/EventSourcedActor.ts"
import type { Member } from "../../../src/core/event-actor/Member.ts"
import type { Options } from "../../../src/core/event-actor/ActorSystem.ts"
import { PASS, SLICE } from "../../../src/core/event-actor/TurnScheduler.ts"
import { StorageError } from "../../../src/core/event-log/EventLog.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import { begin, HeldLog, lab, MemoryLog, memory, quiet, Restarter, scopeIn } from "./Lab.ts"
import { settled, until } from "./Lantern.ts"

const run = Effect.runPromise
let names = 0
const alone = <S, M, A, E>(
  system: System,
  definition: EventSourcedActor<S, M, A, E>,
  supervisor: Restarter | "unstarted" = new Restarter()
): Member<S, M, E> => {
  const scope = scopeIn(system, `s${++names}`)
  const member = scope.add("a", definition)
  if (supervisor !== "unstarted") supervisor.startChild(scope)
  return member
}
const memoryIn = (options: Partial<Options> = {}) =>
  Effect.map(Effect.context<never>(), (context) => lab(new MemoryLog(), options, context))

type Counted = { readonly _tag: "One" } | { readonly _tag: "Crash" }
const one: Counted = { _tag: "One" }
const crashing = () => {
  let crashes = 0
  return actor<number, Counted>({
    initial: 0,
    decide: (_, message) => {
      if (message._tag === "Crash" && crashes++ < 2) throw new Error("crash")
      return { runes: [{ kind: "one", payload: {} }] }
    },
    apply: (n) => n + 1
  })
}

describe("mail", () => {
  it("a full mailbox over a restart loses no told mail: 8 senders × 1,000, default capacity", async () => {
    for (let round = 0; round < 5; round++) {
      const { letters, system } = memory()
      const supervisor = new Restarter()
      const member = alone(system, crashing(), supervisor)
      const sender = Effect.gen(function* () {
        for (let n = 0; n < 1_000; n++) yield* member.tell(one)
      })
      await run(
        Effect.all([...Array.from({ length: 8 }, () => sender), member.tell({ _tag: "Crash" })], {
          concurrency: "unbounded"
        })
      )
      await quiet()
      assert.deepStrictEqual([supervisor.restarts, member.state, letters.length], [2, 8_001, 0])
    }
  })

  it("tellers wait while the scope is down; only a closed one refuses", async () => {
    const { letters, system } = memory({ capacity: 4 })
    const member = alone(system, crashing(), "unstarted")
    const told = run(Effect.forEach(Array.from({ length: 20 }), () => member.tell(one), { concurrency: "unbounded" }))
    await quiet()
    assert.deepStrictEqual([member.waiting, letters.length], [4, 0])
    new Restarter().startChild(member.scope as CommitScope)
    await told
    await quiet()
    assert.strictEqual(member.state, 20)
    ;(member.scope as CommitScope).close()
    await run(member.tell(one))
    assert.deepStrictEqual(
      letters.map(({ reason }) => reason),
      ["closed"]
    )
  })

  it("an interrupted ask gives its place back: also one that was postponed, also to a teller that waits", async () => {
    const { system } = memory({ capacity: 4 })
    let isOpen = false
    const member = alone(
      system,
      actor<number, Counted>({
        initial: 0,
        decide: () => (isOpen ? { runes: [{ kind: "one", payload: {} }] } : "postpone"),
        apply: (n) => n + 1
      })
    )
    const asks = [Effect.runFork(member.ask(one)), Effect.runFork(member.ask(one))]
    const down = alone(system, crashing(), "unstarted")
    for (let n = 0; n < 4; n++) down.tellNow(one)
    assert.strictEqual(member.waiting, 2)
    for (const fiber of asks) await run(Fiber.interrupt(fiber))
    assert.deepStrictEqual([member.waiting, member.postponed], [0, []])
    isOpen = true

    const held = lab(new HeldLog(1), { capacity: 3 })
    const busy = alone(held.system, crashing())
    busy.tellNow(one)
    await quiet()
    const waiting = [1, 2].map(() => Effect.runFork(busy.ask(one)))
    const teller = Effect.runFork(busy.tell(one))
    assert.deepStrictEqual([busy.waiting, teller.pollUnsafe()], [3, undefined])
    for (const fiber of waiting) await run(Fiber.interrupt(fiber))
    assert.deepStrictEqual([busy.waiting, Exit.isSuccess(teller.pollUnsafe()!)], [2, true])
    held.log.land()
    await quiet()
    held.log.land()
    await quiet()
    assert.deepStrictEqual([busy.state, busy.waiting], [2, 0])
  })

  it("asks that are given up while the scope is down do not pile up", async () => {
    const { system } = lab(new HeldLog(1), { capacity: 4 })
    const member = alone(system, crashing())
    member.tellNow(one)
    await quiet()
    for (let n = 0; n < 10_000; n++) {
      const asking = Effect.runFork(member.ask(one))
      asking.interruptUnsafe()
    }
    const { mail } = member.scope as unknown as { readonly mail: { readonly size: number } }
    assert.strictEqual(member.waiting, 1)
    assert.isBelow(mail.size, 2_500)
  })

  it("who waited first gets the room first", async () => {
    const { log, system } = lab(new HeldLog(1), { capacity: 1 })
    const member = alone(
      system,
      actor<number, number>({
        initial: 0,
        decide: (_, n) => ({ runes: [{ kind: "one", payload: { n } }] }),
        apply: (n) => n + 1
      })
    )
    for (const n of [1, 2, 3, 4]) Effect.runFork(member.tell(n))
    for (let n = 0; n < 4; n++) {
      await quiet()
      log.land()
    }
    assert.deepStrictEqual(
      log.kept.map(({ payload }) => payload["n"]),
      [1, 2, 3, 4]
    )
  })

  it("an interrupted teller stands in no line", async () => {
    const { letters, system } = memory({ capacity: 2 })
    const member = alone(system, crashing(), "unstarted")
    const tellers = Array.from({ length: 4 }, () => Effect.runFork(member.tell(one)))
    await run(Fiber.interrupt(tellers[2]!))
    new Restarter().startChild(member.scope as CommitScope)
    await quiet()
    assert.deepStrictEqual([member.state, letters.length], [3, 0])
  })
})

describe("asks end", () => {
  it.effect("an ask waits out a restart, for 10 s at most; then told mail is dead-lettered, too", () =>
    Effect.gen(function* () {
      const { letters, system } = yield* memoryIn()
      const scope = scopeIn(system, "down")
      const member = scope.add("a", crashing())
      begin(scope)
      member.tellNow({ _tag: "Crash" })
      yield* settled
      assert.strictEqual(scope.status, "restarting")
      const asking = yield* Effect.forkChild(Effect.flip(member.ask(one)), { startImmediately: true })
      yield* TestClock.adjust(9_999)
      yield* settled
      assert.isUndefined(asking.pollUnsafe())
      yield* TestClock.adjust(1)
      const error = (yield* Fiber.join(asking)) as ActorStopped
      assert.deepInclude({ ...error }, { _tag: "ActorStopped", reason: "restarting" })
      assert.deepStrictEqual([scope.status, letters.map(({ reason }) => reason)], ["gone", ["closed"]])
      // its supervisor may still bring it back
      new Restarter().startChild(scope)
      assert.strictEqual((yield* member.ask(one)).state, 1)
    })
  )

  it.effect("also one that was postponed, where nothing brings the scope back", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const scope = scopeIn(system, "late")
      const member = scope.add(
        "a",
        actor<number, Counted>({
          initial: 0,
          decide: (_, { _tag }) => {
            if (_tag === "Crash") throw new Error("crash")
            return "postpone"
          },
          apply: (n) => n
        })
      )
      begin(scope)
      const asking = yield* Effect.forkChild(Effect.flip(member.ask(one)), { startImmediately: true })
      yield* Effect.flip(member.ask({ _tag: "Crash" }))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(((yield* Fiber.join(asking)) as ActorStopped).reason, "restarting")
      assert.deepStrictEqual([member.waiting, scope.status], [0, "gone"])
    })
  )

  it.effect("of a stopped and a closed scope: at once and typed", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const scope = scopeIn(system, "s")
      const member = scope.add("a", crashing())
      const reason = Effect.map(Effect.flip(member.ask(one)), (error) => (error as ActorStopped).reason)
      const supervisor = yield* Supervisor.make({ name: "top" })
      yield* supervisor.startChild(scope)
      yield* supervisor.terminateChild("s")
      assert.strictEqual(yield* reason, "stopped")
      yield* supervisor.restartChild("s")
      assert.strictEqual((yield* member.ask(one)).state, 1)
      scope.close()
      assert.strictEqual(yield* reason, "stopped")
    }).pipe(Effect.scoped)
  )

  it.effect("of a scope that is not started yet: answered once it is", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const scope = scopeIn(system, "s")
      const member = scope.add("a", crashing())
      const asking = yield* Effect.forkChild(member.ask(one))
      yield* TestClock.adjust(9_000)
      yield* settled
      assert.isUndefined(asking.pollUnsafe())
      const supervisor = yield* Supervisor.make({ name: "top" })
      yield* supervisor.startChild(scope)
      assert.strictEqual((yield* Fiber.join(asking)).state, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("of a scope that is not started in time: typed, gives its place back, and told mail stays", () =>
    Effect.gen(function* () {
      const { letters, system } = yield* memoryIn()
      const scope = scopeIn(system, "s")
      const member = scope.add("a", crashing())
      member.tellNow(one)
      const asking = yield* Effect.forkChild(Effect.flip(member.ask(one)))
      yield* settled
      yield* TestClock.adjust(10_000)
      assert.strictEqual(((yield* Fiber.join(asking)) as ActorStopped).reason, "unstarted")
      assert.deepStrictEqual([member.waiting, scope.status, letters.length], [1, "unstarted", 0])
      const supervisor = yield* Supervisor.make({ name: "top" })
      yield* supervisor.startChild(scope)
      assert.strictEqual((yield* member.ask(one)).state, 2)
    }).pipe(Effect.scoped)
  )

  it("an ask on which the scope crashes fails `crashed` at once; a storage error is told as it is", async () => {
    const { log, system } = memory()
    const member = alone(system, crashing())
    assert.strictEqual(((await run(Effect.flip(member.ask({ _tag: "Crash" })))) as ActorStopped).reason, "crashed")
    const full = new StorageError({ message: "disk full", remedy: "free some", reason: "full" })
    log.breaks = () => full
    assert.strictEqual(await run(Effect.flip(member.ask(one))), full)
  })

  type Asks =
    | { readonly _tag: "Get" }
    | { readonly _tag: "Ask" }
    | { readonly _tag: "Put"; readonly ask: number; readonly value: string }
    | { readonly _tag: "PutOff" }

  it("of itself, from an action, from a forked fiber and from an activity: answered", async () => {
    const { system } = memory()
    const answers: Array<unknown> = []
    const twice = (self: { ask: (message: Asks) => Effect.Effect<unknown, unknown> }) =>
      Effect.gen(function* () {
        const forked = yield* Effect.forkChild(self.ask({ _tag: "Get" }))
        answers.push(yield* self.ask({ _tag: "Get" }), yield* Fiber.join(forked))
      })
    const member = alone(
      system,
      actor<number, Asks, "ask">({
        initial: 0,
        decide: (n, { _tag }) =>
          _tag === "Ask" ? { runes: [{ kind: "asked", payload: {} }], acts: ["ask"] } : { runes: [], reply: n },
        apply: (n) => n + 1,
        activities: (n) => (n > 0 ? [{ name: "ask", key: n }] : []),
        perform: (_, { self }) => twice(self),
        run: (_, { self }) => twice(self)
      })
    )
    await run(member.ask({ _tag: "Ask" }))
    await quiet()
    assert.deepStrictEqual(answers, [1, 1, 1, 1])
  })

  it("a cycle of asks that are put off ends typed before anything is written, one that is not is answered", async () => {
    const { log, system } = memory()
    const others = new Map<unknown, Member<number, Asks>>()
    /** Asked, it asks the other one and answers with what that says. */
    const definition = (isPutOff: (message: Asks) => boolean) =>
      actor<number, Asks, { readonly ask: number }>({
        initial: 0,
        decide: (_, message, context) => {
          if (message._tag === "Put") {
            return {
              runes: [{ kind: "put", payload: {} }],
              settles: [{ ask: message.ask, reply: message.value }]
            }
          }
          if (!isPutOff(message)) return { runes: [], reply: "at once" }
          return { runes: [{ kind: "off", payload: {} }], reply: LATER, acts: [{ ask: context.ask }] }
        },
        apply: (n) => n + 1,
        perform: ({ ask }, { self }) =>
          Effect.map(Effect.result(others.get(self)!.ask<string>({ _tag: "PutOff" })), (result) => {
            const value = result._tag === "Success" ? result.success : (result.failure as ActorStopped).reason
            self.tellNow({ _tag: "Put", ask, value })
          })
      })
    const a = alone(
      system,
      definition(() => true)
    )
    const b = alone(
      system,
      definition(() => true)
    )
    others.set(a, b).set(b, a)
    assert.strictEqual(await run(a.ask<string>({ _tag: "PutOff" })), "cycle")
    assert.deepStrictEqual(
      log.kept.map(({ kind }) => kind),
      ["off", "off", "put", "put"]
    )
    const c = alone(
      system,
      definition(({ _tag }) => _tag === "Ask")
    )
    const d = alone(
      system,
      definition(() => true)
    )
    others.set(c, d).set(d, c)
    assert.strictEqual(await run(c.ask<string>({ _tag: "Ask" })), "at once")
  })

  it.effect("one that is put off and never settled: after a minute; or when its scope stops", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const never = actor<number, Asks>({ initial: 0, decide: () => ({ runes: [], reply: LATER }), apply: (n) => n })
      const [first, second] = [alone(system, never), alone(system, never)]
      const reasonOf = (member: Member<number, Asks>) =>
        Effect.forkChild(
          Effect.map(Effect.flip(member.ask({ _tag: "Get" })), (error) => (error as ActorStopped).reason),
          {
            startImmediately: true
          }
        )
      const asking = [yield* reasonOf(first), yield* reasonOf(second)]
      ;(second.scope as CommitScope).close()
      assert.strictEqual(yield* Fiber.join(asking[1]!), "stopped")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(asking[0]!), "unanswered")
    })
  )
})

describe("no circle blocks itself", () => {
  it("tells in a circle, and to oneself, with full mailboxes", async () => {
    const { letters, system } = memory({ capacity: 4 })
    const nexts = new Map<unknown, Member<number, Counted>>()
    const definition = actor<number, Counted>({
      initial: 0,
      decide: (n, message, { self }) => ({
        runes: [{ kind: "one", payload: {} }],
        tells: n < 2_000 ? [later(nexts.get(self)!, message)] : []
      }),
      apply: (n) => n + 1
    })
    const [a, b, c] = [alone(system, definition), alone(system, definition), alone(system, definition)]
    nexts.set(a, b).set(b, a).set(c, c)
    await run(
      Effect.forEach([a, b, c], (one_) => Effect.forEach(Array.from({ length: 8 }), () => one_.tell(one)), {
        concurrency: 3,
        discard: true
      })
    )
    await quiet()
    assert.isTrue(a.state >= 2_000 && b.state >= 2_000 && c.state >= 2_000, `${a.state} ${b.state} ${c.state}`)
    assert.strictEqual(a.waiting + b.waiting + c.waiting + letters.length, 0)
  })

  it("tells and asks from actions, each leading to more actions than may wait", async () => {
    const { letters, system } = memory({ capacity: 4 })
    const nexts = new Map<unknown, Member<number, Counted>>()
    const definition = actor<number, Counted, "on">({
      initial: 0,
      decide: (n) => ({ runes: [{ kind: "one", payload: {} }], acts: n < 1_000 ? ["on"] : [] }),
      apply: (n) => n + 1,
      perform: (_, { self }) =>
        Effect.gen(function* () {
          const next = nexts.get(self)!
          yield* Effect.yieldNow
          yield* next.tell(one)
          yield* self.tell(one)
          yield* Effect.orDie(next.ask(one))
        })
    })
    const [a, b] = [alone(system, definition), alone(system, definition)]
    nexts.set(a, b).set(b, a)
    await run(Effect.all([a.tell(one), b.tell(one)]))
    for (let n = 0; n < 3_000 && (a.state < 1_500 || b.state < 1_500); n++) await quiet()
    assert.isTrue(a.state >= 1_500 && b.state >= 1_500, `${a.state} ${b.state}`)
    assert.isEmpty(letters)
  })
})

describe("poison", () => {
  it("a message whose append dies every time is dead-lettered after three times, and nobody escalates", () =>
    run(
      Effect.gen(function* () {
        const { letters, log, system } = yield* memoryIn()
        const scope = scopeIn(system, "poison")
        const member = scope.add("a", crashing())
        const supervisor = yield* Supervisor.make({
          name: "top",
          backoff: "none",
          intensity: 10,
          period: "30 seconds",
          children: [scope]
        })
        let tries = 0
        log.breaks = (unit) => (unit.runes[0]!.cause?.seq === 99 ? (tries++, new Error("no")) : undefined)
        member.tellNow(one, { stream: "x", seq: 99 })
        assert.strictEqual((yield* member.ask(one)).state, 1)
        yield* settled
        assert.deepStrictEqual([tries, letters.map(({ reason }) => reason)], [3, ["poison"]])
        assert.deepInclude(yield* supervisor.countChildren, { active: 1 })
      }).pipe(Effect.scoped)
    ))

  it("so is one whose payload cannot be encoded", async () => {
    const { letters, system } = memory()
    const supervisor = new Restarter()
    const member = alone(
      system,
      actor<number, Counted>({
        initial: 0,
        decide: (_, { _tag }) => ({ runes: [{ kind: "one", payload: _tag === "Crash" ? { big: 1n } : {} }] }),
        apply: (n) => n + 1
      }),
      supervisor
    )
    member.tellNow({ _tag: "Crash" })
    assert.strictEqual((await run(member.ask(one))).state, 1)
    assert.deepStrictEqual([supervisor.restarts, letters.map(({ reason }) => reason)], [3, ["poison"]])
  })

  it("what is folded is what is stored: NaN, dates, functions and undefined are what JSON makes of them", async () => {
    const { log, system } = memory({ strict: false })
    const odd = {
      n: Number.NaN,
      zero: -0,
      at: new Date(0),
      f: () => 1,
      none: undefined,
      list: [undefined, 1],
      ok: "yes"
    }
    const member = alone(
      system,
      actor<unknown, Counted>({
        initial: null,
        decide: () => ({ runes: [{ kind: "one", payload: odd }], state: odd }),
        apply: (_, { payload }) => payload
      })
    )
    const { state } = await run(member.ask(one))
    const stored = { n: null, zero: 0, at: "1970-01-01T00:00:00.000Z", list: [null, 1], ok: "yes" }
    assert.deepStrictEqual([state, log.kept[0]!.payload], [stored, stored])
  })

  it("a state that no rune leads to, that is no plain data, or that apply would not make, is a crash", async () => {
    const { system } = memory()
    const broken = [
      { runes: [], state: 1 },
      { runes: [{ kind: "k", payload: {} }], state: 7 },
      { runes: [{ kind: "bad", payload: {} }] }
    ]
    for (const decision of broken) {
      const crashed = new Restarter()
      const member = alone(
        system,
        actor<unknown, Counted>({
          initial: 0,
          decide: () => decision,
          apply: (n, { kind }) => (kind === "bad" ? new Map() : Number(n) + 1)
        }),
        crashed
      )
      assert.strictEqual(((await run(Effect.flip(member.ask(one)))) as ActorStopped).reason, "crashed")
      assert.strictEqual(crashed.restarts, 1)
    }
  })

  it("a crash moves no waiting mail: the queue is the same object with 100,000 in it", async () => {
    const { system } = lab(new HeldLog(1), { capacity: 1_000_000 })
    const member = alone(system, crashing())
    member.tellNow({ _tag: "Crash" })
    for (let n = 0; n < 100_000; n++) member.tellNow(one)
    const inside = member.scope as unknown as { readonly mail: { back: Array<unknown>; all: () => never } }
    const { back } = inside.mail
    inside.mail.all = () => assert.fail("the mail was walked through")
    await quiet()
    assert.strictEqual(inside.mail.back, back)
    assert.isAbove(member.waiting, 99_000)
  })
})

describe("fairness", () => {
  it("a turn ends after a slice of time, and the event loop gets its turn after a pass, however heavy the steps are", () => {
    const loop = new Manual()
    const { system } = lab(new MemoryLog(), { capacity: 1_000_000, loop })
    const order: Array<string> = []
    const heavy = (name: string, ms: number) =>
      alone(
        system,
        actor<number, Counted>({
          initial: 0,
          decide: () => {
            order.push(name)
            loop.time += ms
            return { runes: [{ kind: "one", payload: {} }] }
          },
          apply: (n) => n + 1
        })
      )
    const [light, slow] = [heavy("light", SLICE / 4), heavy("slow", SLICE)]
    for (let n = 0; n < 100; n++) {
      light.tellNow(one)
      slow.tellNow(one)
    }
    loop.turn()
    assert.deepStrictEqual(order.slice(0, 10), [...Array(4).fill("light"), "slow", ...Array(4).fill("light"), "slow"])
    // one step may begin just before the end
    assert.isAtMost(loop.time, PASS + SLICE)
    assert.isAtLeast(loop.time, PASS)
    assert.strictEqual(loop.waiting, 1)
    loop.run()
    assert.deepStrictEqual([light.state, slow.state], [100, 100])
  })

  it("a turn is bounded by messages, too", () => {
    const loop = new Manual()
    const { system } = lab(new MemoryLog(), { capacity: 1_000_000, loop, strict: false })
    const member = alone(system, crashing())
    const other = alone(system, crashing())
    for (let n = 0; n < TURN * 2; n++) member.tellNow(one)
    other.tellNow(one)
    const seen: Array<number> = []
    const asked = Effect.runFork(Effect.map(other.ask(one), () => seen.push(member.state)))
    loop.run()
    assert.isDefined(asked.pollUnsafe())
    assert.deepStrictEqual([seen, member.state], [[TURN], TURN * 2])
  })
})

describe("incarnations", () => {
  const busy = { now: 0, most: 0, begun: 0 }
  type Shine = { readonly _tag: "Crash" } | { readonly _tag: "Go" }
  const shining = (gate: Effect.Effect<void>) =>
    actor<number, Shine>({
      initial: 0,
      decide: (_, message) => {
        if (message._tag === "Crash") throw new Error("crash")
        return { runes: [{ kind: "go", payload: {} }] }
      },
      apply: (n) => n + 1,
      activities: () => [{ name: "shine", key: 1 }],
      run: () =>
        Effect.uninterruptible(
          Effect.gen(function* () {
            busy.begun += 1
            busy.most = Math.max(busy.most, ++busy.now)
            yield* gate
            busy.now -= 1
          })
        )
    })

  it.effect("one_for_all kills a scope whose activity is deaf: abandoned, started again, and the activity waits", () =>
    Effect.gen(function* () {
      Object.assign(busy, { now: 0, most: 0, begun: 0 })
      const { system } = yield* memoryIn()
      const gate = yield* Deferred.make<void>()
      const deaf = scopeIn(system, "deaf")
      const member = deaf.add("a", shining(Deferred.await(gate)))
      const sibling = scopeIn(system, "sibling")
      const bomb = sibling.add("a", crashing())
      const supervisor = yield* Supervisor.make({
        name: "top",
        strategy: "one_for_all",
        backoff: "none",
        intensity: 10,
        children: [deaf, sibling]
      })
      bomb.tellNow({ _tag: "Crash" })
      yield* settled
      yield* TestClock.adjust("6 seconds")
      yield* until(() => deaf.status === "running" && sibling.status === "running")
      assert.isTrue((yield* supervisor.trace).some((event) => event._tag === "Abandoned" && event.child === "deaf"))
      assert.strictEqual((yield* member.ask({ _tag: "Go" })).state, 1)
      assert.deepStrictEqual(busy, { now: 1, most: 1, begun: 1 })
      yield* Deferred.succeed(gate, undefined)
      yield* until(() => busy.begun === 2)
      assert.strictEqual(busy.most, 1)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "a scope that crashes beside a deaf activity is reported after the grace, and the next one waits for it",
    () =>
      Effect.gen(function* () {
        Object.assign(busy, { now: 0, most: 0, begun: 0 })
        const { system } = yield* memoryIn()
        const gate = yield* Deferred.make<void>()
        const scope = scopeIn(system, "deaf", { shutdown: "1 second" })
        const member = scope.add("a", shining(Deferred.await(gate)))
        yield* Supervisor.make({ name: "top", backoff: "none", intensity: 10, children: [scope] })
        const crashed = yield* Effect.flip(member.ask({ _tag: "Crash" }))
        assert.strictEqual((crashed as ActorStopped).reason, "crashed")
        const asking = yield* Effect.forkChild(member.ask({ _tag: "Go" }), { startImmediately: true })
        yield* settled
        assert.strictEqual(scope.status, "stopping")
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* Fiber.join(asking)).state, 1)
        assert.deepStrictEqual(busy, { now: 1, most: 1, begun: 1 })
        yield* Deferred.succeed(gate, undefined)
        yield* until(() => busy.begun === 2)
      }).pipe(Effect.scoped)
  )

  it.effect("closing is no restart: 11 of 20 closed, the supervisor lives and holds none of them", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const supervisor = yield* Supervisor.make({
        name: "top",
        strategy: "dynamic",
        backoff: "none",
        intensity: 10,
        period: "30 seconds"
      })
      const all = Array.from({ length: 20 }, (_, n) => scopeIn(system, `closed${n}`))
      for (const scope of all) {
        scope.add("a", crashing())
        yield* supervisor.startChild(scope)
      }
      for (const scope of all.slice(0, 11)) scope.close()
      yield* settled
      assert.deepInclude(yield* supervisor.countChildren, { specs: 9, active: 9 })
      assert.isFalse((yield* supervisor.trace).some(({ _tag }) => _tag === "Restarting"))
    }).pipe(Effect.scoped)
  )

  it.effect("a scope that was terminated and not closed is held by nothing", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const supervisor = yield* Supervisor.make({ name: "top", strategy: "dynamic" })
      let scope: ReturnType<typeof scopeIn> | undefined = scopeIn(system, "leak")
      scope.add("a", crashing())
      yield* supervisor.startChild(scope)
      yield* supervisor.terminateChild("leak")
      const seen = new WeakRef(scope)
      scope = undefined
      // a system and a supervisor hold no list of scopes: what they hold is reachable from them
      const held = new Set<unknown>()
      const walk = (value: unknown): void => {
        if (typeof value !== "object" || value === null || held.has(value)) return
        held.add(value)
        for (const inner of value instanceof Map ? [...value.keys(), ...value.values()] : Object.values(value))
          walk(inner)
      }
      walk(system)
      assert.isFalse(held.has(seen.deref()))
    }).pipe(Effect.scoped)
  )

  it.effect("a second observer steals nothing: both hear of the crash, and the supervisor restarts", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const scope = scopeIn(system, "watched")
      const member = scope.add("a", crashing())
      yield* Supervisor.make({ name: "top", backoff: "none", intensity: 10, children: [scope] })
      const heard: Array<Exit.Exit<unknown, unknown>> = []
      scope.incarnation!.onExit({ childExited: (exit) => void heard.push(exit) })
      member.tellNow({ _tag: "Crash" })
      assert.strictEqual((yield* member.ask(one)).state > 0, true)
      assert.isTrue(heard.length === 1 && Exit.hasDies(heard[0]!))
    }).pipe(Effect.scoped)
  )

  it.effect("one scope under two supervisors is refused", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const scope = scopeIn(system, "shared")
      const member = scope.add("a", crashing())
      yield* Supervisor.make({ name: "first", children: [scope] })
      const second = yield* Supervisor.make({ name: "second" })
      const error = yield* Effect.flip(second.startChild(scope))
      assert.include(JSON.stringify(error), "ScopeTaken")
      assert.strictEqual((yield* member.ask(one)).state, 1)
    }).pipe(Effect.scoped)
  )

  const Word = Context.Reference<string>("test/Word", { defaultValue: () => "none" })

  it.effect("what runs is in a fiber of the supervisor's context, and ends with the incarnation", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const seen: Array<unknown> = []
      const note = Effect.gen(function* () {
        seen.push([yield* Word, (yield* References.CurrentLogAnnotations)["scope"]])
        return yield* Effect.onInterrupt(Effect.never, () => Effect.sync(() => seen.push("interrupted")))
      })
      const scope = scopeIn(system, "fiber")
      const member = scope.add(
        "a",
        actor<number, Counted, "act">({
          initial: 0,
          decide: () => ({ runes: [{ kind: "one", payload: {} }], acts: ["act"] }),
          apply: (n) => n + 1,
          activities: (n) => (n > 0 ? [{ name: "note", key: 1 }] : []),
          perform: () => note,
          run: () => note
        })
      )
      const supervisor = yield* Supervisor.make({ name: "top", strategy: "dynamic" }).pipe(
        Effect.provideService(Word, "inherited")
      )
      yield* supervisor.startChild(scope)
      yield* member.ask(one)
      yield* settled
      assert.deepStrictEqual(seen, [
        ["inherited", "fiber"],
        ["inherited", "fiber"]
      ])
      yield* supervisor.terminateChild("fiber")
      assert.deepStrictEqual(seen.slice(2), ["interrupted", "interrupted"])
    }).pipe(Effect.scoped)
  )

  it.effect("interrupted, the incarnation's fiber ends what it runs, and its Exit is what the supervisor hears", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const scope = scopeIn(system, "interrupted")
      let isInterrupted = false
      scope.add(
        "a",
        actor<number, Counted>({
          initial: 0,
          decide: () => "illegal",
          apply: (n) => n,
          activities: () => [{ name: "wait", key: 1 }],
          run: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isInterrupted = true)))
        })
      )
      const incarnation = begin(scope)
      const heard: Array<Exit.Exit<unknown, unknown>> = []
      incarnation.onExit({ childExited: (exit) => void heard.push(exit) })
      const { life } = incarnation as unknown as { readonly life: { readonly fiber: Fiber.Fiber<void, unknown> } }
      yield* Fiber.interrupt(life.fiber)
      assert.isTrue(isInterrupted && heard.length === 1 && Exit.hasInterrupts(heard[0]!))
    })
  )

  it.effect("a scope that never ran anything has no fiber", () =>
    Effect.gen(function* () {
      const { system } = yield* memoryIn()
      const scope = scopeIn(system, "still")
      const member = scope.add("a", crashing())
      yield* Supervisor.make({ name: "top", children: [scope] })
      yield* member.ask(one)
      assert.isUndefined((scope.incarnation as unknown as { readonly life: unknown }).life)
    }).pipe(Effect.scoped)
  )

  it("an activity that is told to end by a failure of its own crashes the scope; one that is interrupted from within, too", async () => {
    for (const [run_, expected] of [
      [Effect.fail("no current"), "no current"],
      [Effect.interrupt, "interrupted by its own code"]
    ] as const) {
      const { system } = memory()
      const exits: Array<Exit.Exit<unknown, unknown>> = []
      const scope = scopeIn(system, "act")
      scope.add(
        "a",
        actor<number, Counted>({
          initial: 0,
          decide: () => "illegal",
          apply: (n) => n,
          activities: () => [{ name: "run", key: 1 }],
          run: () => run_
        })
      )
      begin(scope)
      scope.incarnation!.onExit({ childExited: (exit) => void exits.push(exit) })
      await quiet()
      assert.include(String(Exit.isFailure(exits[0]!) && Cause.squash(exits[0]!.cause)), expected)
    }
  })
})

describe("actors that come and go", () => {
  const child = (runs: Array<string>, gate: Effect.Effect<void> = Effect.never) =>
    actor<number, Counted>({
      initial: 0,
      decide: () => ({ runes: [{ kind: "one", payload: {} }] }),
      apply: (n) => n + 1,
      activities: () => [{ name: "live", key: 1 }],
      run: () =>
        Effect.suspend(() => {
          runs.push("+")
          return Effect.ensuring(
            gate,
            Effect.sync(() => void runs.push("-"))
          )
        })
    })

  it("one that is added while the scope runs lives at once; one that is removed ends, and its mail is told so", async () => {
    const { letters, system } = memory()
    const scope = scopeIn(system, "family")
    const parent = scope.add("parent", crashing())
    new Restarter().startChild(scope)
    const runs: Array<string> = []
    const member = scope.add("child", child(runs))
    assert.deepStrictEqual(runs, ["+"])
    assert.strictEqual((await run(member.ask(one))).state, 1)
    scope.remove("child")
    await quiet()
    assert.strictEqual(((await run(Effect.flip(member.ask(one)))) as ActorStopped).reason, "stopped")
    assert.isFalse(member.tellNow(one))
    assert.deepStrictEqual([letters.map(({ reason }) => reason), (await run(parent.ask(one))).state], [["closed"], 1])
    assert.throws(() => scope.member("child"), /has no actor child/)
    assert.throws(() => scope.add("parent", crashing()), /already exists/)
  })

  it("of one name two activities never run at once, also when the actor was removed and added again", async () => {
    const { system } = memory()
    const scope = scopeIn(system, "again")
    new Restarter().startChild(scope)
    const runs: Array<string> = []
    const gate = Deferred.makeUnsafe<void>()
    scope.add("child", child(runs, Effect.uninterruptible(Deferred.await(gate))))
    scope.remove("child")
    scope.add("child", child(runs))
    await quiet()
    assert.deepStrictEqual(runs, ["+"])
    Deferred.doneUnsafe(gate, Effect.void)
    await quiet()
    assert.deepStrictEqual(runs, ["+", "-", "+"])
  })

  it("mail on its way to an actor that is removed meanwhile is settled, and what was told to it is dead-lettered", async () => {
    const { letters, log, system } = lab(new HeldLog())
    const scope = scopeIn(system, "way")
    const parent = scope.add("parent", crashing())
    const member = scope.add("child", crashing())
    new Restarter().startChild(scope)
    const asked = run(member.ask(one))
    parent.tellNow(one)
    member.tellNow(one)
    scope.remove("child")
    await quiet()
    log.land()
    assert.strictEqual((await asked).state, 1)
    assert.deepStrictEqual([parent.state, member.waiting, letters.length], [1, 0, 1])
    // told by another scope's step
    const teller = alone(
      system,
      actor<number, Counted>({
        initial: 0,
        decide: () => ({ runes: [{ kind: "one", payload: {} }], tells: [tell(member, one)] }),
        apply: (n) => n + 1
      })
    )
    teller.tellNow(one)
    await quiet()
    assert.strictEqual(letters.length, 1, "not before it is durable")
    log.land()
    assert.strictEqual(letters.length, 2)
  })

  it("what a failed append brings back for an actor that was removed is dead-lettered, or fails typed", async () => {
    const { letters, log, system } = lab(new HeldLog())
    const scope = scopeIn(system, "back")
    const parent = scope.add("parent", crashing())
    const member = scope.add("child", crashing())
    new Restarter().startChild(scope)
    parent.tellNow(one)
    member.tellNow(one)
    await quiet()
    const asked = run(Effect.flip(member.ask(one)))
    scope.remove("child")
    log.break()
    await quiet()
    log.land()
    assert.strictEqual(((await asked) as ActorStopped).reason, "stopped")
    assert.deepStrictEqual([parent.state, member.state, member.waiting], [1, 0, 0])
    assert.deepStrictEqual(
      letters.map(({ reason }) => reason),
      ["closed"]
    )
  })

  it("parts of an actor write runes of their own name, and no others", async () => {
    const { log, system } = memory()
    const table = actor<ReadonlyArray<string>, string>({
      initial: [],
      decide: (_, seat) => ({ runes: [{ kind: "sat", actor: seat, payload: { seat } }] }),
      apply: (seats, { payload }) => [...seats, String(payload["seat"])],
      parts: (name) => name.startsWith("seat/")
    })
    const member = alone(system, table)
    await run(member.ask("seat/ann"))
    assert.deepInclude(log.kept[0], { actor: "seat/ann" })
    assert.strictEqual(((await run(Effect.flip(member.ask("bob")))) as ActorStopped).reason, "crashed")
  })
})
