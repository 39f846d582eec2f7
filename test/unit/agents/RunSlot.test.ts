import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Queue, Scheduler, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as RunSupervisor from "../../../src/agents/run/RunSupervisor.ts"
import { type Backend, BackendError, Left, type RunEvent, type RunSpec } from "../../../src/runs/Backend.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"

const spec = (runId: string): RunSpec => ({
  runId,
  agent: "builder",
  prompt: "p",
  cwd: "/",
  env: {},
  turnId: "turn-1",
  resume: undefined,
  mcp: {}
})

/** A backend whose runs do what the test says, and whose end is seen. */
const makeBackend = Effect.gen(function* () {
  const alive = new Set<string>()
  const feeds = new Map<string, Queue.Queue<RunEvent>>()
  const asked: Array<string> = []
  const feed = (runId: string) => feeds.get(runId)!
  const backend: Backend = {
    name: "test",
    turns: false,
    expect: (runId, comes) => void asked.push(`${comes ? "expect" : "no"} ${runId}`),
    start: Effect.fnUntraced(function* ({ runId }) {
      if (runId === "refused")
        return yield* new BackendError({ message: "no such program", remedy: "install it", fatal: true })
      const queue = yield* Queue.unbounded<RunEvent>()
      feeds.set(runId, queue)
      assert.strictEqual(alive.size, 0, "another run is alive")
      alive.add(runId)
      const left = yield* Left
      yield* Effect.addFinalizer(() =>
        Effect.andThen(
          runId === "untidy" ? left("a file") : Effect.void,
          Effect.sync(() => alive.delete(runId))
        )
      )
      return {
        runId,
        events: Stream.fromQueue(queue).pipe(Stream.takeUntil((event) => event._tag === "Exited")),
        send: () => Effect.void,
        answer: () => Effect.void,
        cancelCall: () => Effect.void,
        interruptTurn: Effect.sync(() => void asked.push(`interrupt ${runId}`)),
        end: Effect.sync(() => void asked.push(`end ${runId}`)),
        kill: Effect.sync(() => void asked.push(`kill ${runId}`))
      }
    })
  }
  return { backend, alive, asked, feed }
})

const setUp = Effect.gen(function* () {
  const exits: Array<readonly [string, Outcome]> = []
  const facts: Array<string> = []
  const test = yield* makeBackend
  const slot = yield* RunSupervisor.make(() => ({
    events: ({ runId }, _, events) =>
      Effect.sync(() => {
        for (const event of events) facts.push(`${runId}: ${event._tag === "Delta" ? event.text : event._tag}`)
      }),
    exited: ({ spec: { runId } }, outcome) => Effect.sync(() => void exits.push([runId, outcome])),
    note: (runId, text) => Effect.sync(() => void facts.push(`${runId} left ${text}`))
  }))
  const ensure = (runId: string, timeout: Duration.Input = "1 hour") =>
    slot.ensure({ backend: test.backend, spec: spec(runId), timeout: Effect.sleep(timeout) })
  return { ...test, slot, ensure, exits, facts }
})

const settle = Effect.repeat(Effect.yieldNow, { times: 50 })
const exited = (outcome: Outcome): RunEvent => ({ _tag: "Exited", outcome })

describe("RunSlot", () => {
  it.effect("reports the facts of a run in order and its end once, when nothing of it is left", () =>
    Effect.gen(function* () {
      const { alive, ensure, exits, facts, feed, slot } = yield* setUp
      yield* ensure("r1")
      yield* settle
      assert.strictEqual(slot.current(), "r1")
      yield* Queue.offerAll(feed("r1"), [
        { _tag: "Started", pid: 7 },
        { _tag: "Delta", stream: "stdout", text: "hello" },
        exited({ _tag: "Success" })
      ])
      yield* slot.gone
      yield* settle
      assert.deepStrictEqual(facts, ["r1: Started", "r1: hello"])
      assert.deepStrictEqual(exits, [["r1", { _tag: "Success" }]])
      assert.strictEqual(alive.size, 0)
    })
  )

  it.effect("what a run has left behind is told, and not with what it said", () =>
    Effect.gen(function* () {
      const { ensure, facts, feed, slot } = yield* setUp
      yield* ensure("untidy")
      yield* settle
      yield* Queue.offer(feed("untidy"), exited({ _tag: "Success" }))
      yield* slot.gone
      yield* settle
      assert.deepStrictEqual(facts, ["untidy left a file"])
    })
  )

  it.effect("its end is told while what was made for it is cleared away; the next one waits for both", () =>
    Effect.gen(function* () {
      const { backend, feed } = yield* makeBackend
      const [cleared, told] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const facts: Array<string> = []
      const slot: RunSupervisor.RunSupervisor = yield* RunSupervisor.make(() => ({
        events: () => Effect.void,
        exited: ({ spec: { runId } }, { _tag }) =>
          Effect.andThen(
            Effect.sync(() => void facts.push(`${runId} ${_tag}`)),
            Deferred.await(told)
          ),
        note: () => Effect.void
      }))
      const slow: Backend = {
        ...backend,
        start: (of) =>
          Effect.andThen(
            Effect.addFinalizer(() => (of.runId === "r1" ? Deferred.await(cleared) : Effect.void)),
            Effect.tap(backend.start(of), () => Effect.sync(() => void facts.push(`${of.runId} begins`)))
          )
      }
      const ensure = (runId: string) => slot.ensure({ backend: slow, spec: spec(runId), timeout: Effect.never })
      yield* ensure("r1")
      yield* settle
      yield* Queue.offer(feed("r1"), exited({ _tag: "Success" }))
      const next = yield* Effect.forkChild(ensure("r2"))
      yield* settle
      assert.deepStrictEqual([...facts, slot.current()], ["r1 begins", "r1 Success", "r1"])
      yield* Deferred.succeed(told, undefined)
      yield* settle
      assert.deepStrictEqual([...facts, slot.current()], ["r1 begins", "r1 Success", "r1"])
      yield* Deferred.succeed(cleared, undefined)
      yield* Fiber.join(next)
      yield* settle
      assert.deepStrictEqual([...facts, slot.current()], ["r1 begins", "r1 Success", "r2 begins", "r2"])
    })
  )

  it.effect("the next run begins though what is kept of the one before is not forgotten yet", () =>
    Effect.gen(function* () {
      const { alive, asked, backend, feed, slot } = yield* setUp
      const forgetful = { ...backend, forget: () => Effect.never }
      const ensure = (runId: string) => slot.ensure({ backend: forgetful, spec: spec(runId), timeout: undefined })
      slot.expect("r1", true)
      yield* ensure("r1")
      yield* settle
      yield* Queue.offer(feed("r1"), exited({ _tag: "Success" }))
      yield* settle
      assert.isUndefined(slot.current())
      slot.expect("r2", true)
      yield* ensure("r2")
      yield* settle
      slot.expect("r2", false)
      assert.deepStrictEqual([slot.current(), ...alive], ["r2", "r2"])
      // by the newest backend: before a run there is none
      assert.deepStrictEqual(asked, ["expect r2", "no r2"])
    })
  )

  it.effect("finds the run that is alive already instead of starting it twice", () =>
    Effect.gen(function* () {
      const { ensure, exits, feed, slot } = yield* setUp
      yield* ensure("r1")
      yield* settle
      yield* ensure("r1")
      yield* Queue.offer(feed("r1"), exited({ _tag: "Success" }))
      yield* slot.gone
      yield* settle
      assert.strictEqual(exits.length, 1)
    })
  )

  it.effect("a run that has ended is never started again: its run id is used once", () =>
    Effect.gen(function* () {
      const { ensure, exits, feed, slot } = yield* setUp
      yield* ensure("r1")
      yield* settle
      yield* Queue.offer(feed("r1"), exited({ _tag: "Error", detail: "exit code 1" }))
      yield* slot.gone
      yield* ensure("r1")
      yield* settle
      assert.strictEqual(slot.current(), undefined)
      assert.strictEqual(exits.length, 1)
    })
  )

  it.effect("a run counts as alive until its end is told: nobody can take it for lost", () =>
    Effect.gen(function* () {
      const { backend, feed } = yield* makeBackend
      const seen: Array<string | undefined> = []
      const slot: RunSupervisor.RunSupervisor = yield* RunSupervisor.make(() => ({
        events: () => Effect.void,
        exited: () => Effect.sync(() => void seen.push(slot.current())),
        note: () => Effect.void
      }))
      yield* slot.ensure({ backend, spec: spec("r1"), timeout: Effect.sleep("1 hour") })
      yield* settle
      yield* Queue.offer(feed("r1"), exited({ _tag: "Success" }))
      yield* slot.gone
      assert.deepStrictEqual([...seen, slot.current()], ["r1", undefined])
    })
  )

  it.effect("end closes the scope of a run that takes no interrupt, and its end is told", () =>
    Effect.gen(function* () {
      const { alive, ensure, exits, slot } = yield* setUp
      yield* ensure("r1")
      yield* settle
      yield* slot.end("r0")
      yield* settle
      assert.strictEqual(alive.size, 1)
      yield* slot.end("r1")
      yield* slot.gone
      assert.strictEqual(alive.size, 0)
      assert.deepStrictEqual(
        exits.map(([runId, { _tag }]) => [runId, _tag]),
        [["r1", "Error"]]
      )
    })
  )

  it.effect("starts the next run only when the one before is gone", () =>
    Effect.gen(function* () {
      const { alive, ensure, feed, slot } = yield* setUp
      yield* ensure("r1")
      yield* settle
      const next = yield* Effect.forkChild(ensure("r2"))
      yield* settle
      assert.deepStrictEqual([...alive], ["r1"])
      yield* Queue.offer(feed("r1"), exited({ _tag: "Error", detail: "exit code 1" }))
      yield* Fiber.join(next)
      yield* settle
      assert.deepStrictEqual([...alive], ["r2"])
      assert.strictEqual(slot.current(), "r2")
    })
  )

  it.effect("ends a run that takes too long, and says Timeout when it is gone", () =>
    Effect.gen(function* () {
      const { alive, ensure, exits, slot } = yield* setUp
      yield* ensure("r1", "30 minutes")
      yield* settle
      yield* TestClock.adjust("30 minutes")
      yield* slot.gone
      yield* settle
      assert.deepStrictEqual(exits, [["r1", { _tag: "Timeout" }]])
      assert.strictEqual(alive.size, 0)
    })
  )

  it.effect("passes stop and kill to the run that is alive, and to no other", () =>
    Effect.gen(function* () {
      const { asked, ensure, slot } = yield* setUp
      yield* ensure("r1")
      yield* slot.stop("r0")
      yield* slot.stop("r1")
      yield* slot.kill("r1")
      yield* settle
      assert.deepStrictEqual(asked, ["end r1", "kill r1"])
    })
  )

  it.effect("a program that cannot be started is a fatal end with its remedy", () =>
    Effect.gen(function* () {
      const { ensure, exits, slot } = yield* setUp
      yield* ensure("refused")
      yield* slot.stop("refused")
      yield* slot.gone
      yield* settle
      assert.deepStrictEqual(exits, [["refused", { _tag: "Fatal", detail: "no such program", remedy: "install it" }]])
    })
  )

  it.effect("closing its scope ends the run and reports nothing: the run was lost, not ended", () =>
    Effect.gen(function* () {
      const seen = yield* Deferred.make<{ readonly alive: Set<string>; readonly exits: ReadonlyArray<unknown> }>()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { alive, ensure, exits } = yield* setUp
          yield* ensure("r1")
          yield* settle
          assert.strictEqual(alive.size, 1)
          yield* Deferred.succeed(seen, { alive, exits })
        })
      )
      const { alive, exits } = yield* Deferred.await(seen)
      assert.strictEqual(alive.size, 0)
      assert.deepStrictEqual(exits, [])
    })
  )
})

describe("what an earlier daemon left of a run that is not taken up", () => {
  it.effect("is gone before the next run begins", () =>
    Effect.gen(function* () {
      const { alive, ensure, slot } = yield* setUp
      const isGone = yield* Deferred.make<void>()
      yield* slot.bury("old", Deferred.await(isGone))
      assert.strictEqual(slot.current(), "old")
      const next = yield* Effect.forkChild(ensure("new"), { startImmediately: true })
      yield* Effect.yieldNow
      assert.strictEqual(alive.size, 0)
      yield* Deferred.succeed(isGone, undefined)
      yield* Fiber.join(next)
      assert.strictEqual(slot.current(), "new")
    }).pipe(Effect.scoped)
  )

  it.effect("leaves the place free where nothing was left, wherever the fiber that asks is held up", () =>
    Effect.forEach(
      Array.from({ length: 60 }, (_, more) => 10 + more),
      (ops) =>
        Effect.gen(function* () {
          const { slot } = yield* setUp
          yield* slot.bury("old", Effect.void)
          yield* Effect.yieldNow
          assert.strictEqual(slot.current(), undefined)
          yield* slot.gone
        }).pipe(Effect.provideService(Scheduler.MaxOpsBeforeYield, ops), Effect.scoped),
      { discard: true }
    )
  )
})
