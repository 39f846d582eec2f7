/** The order in which what a run that is taken up says comes to the log, and what the log has of it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { LiveRun } from "../../../src/agents/run/LiveRun.ts"
import { RunEvents } from "../../../src/agents/run/RunEvents.ts"
import type { RunRequest } from "../../../src/agents/run/RunSupervisor.ts"
import { ProcessedEvents } from "../../../src/agents/run/ProcessedEvents.ts"
import type { Run, RunEvent } from "../../../src/runs/Backend.ts"
import { StorageError } from "../../../src/core/event-log/EventLog.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"

const runId = "r1"

const told = (...heard: ReadonlyArray<readonly [kind: string, heard: object]>) => {
  const all = new ProcessedEvents()
  for (const [kind, of] of heard) all.add({ kind, payload: { heard: { run: runId, ...of } } }, runId)
  return all
}

const call = (end: number, event: number): RunEvent => ({
  _tag: "ToolResult",
  callId: "c",
  status: "success",
  output: "",
  place: { out: [1, end, event] }
})
const line = (end: number): RunEvent => ({
  _tag: "Delta",
  stream: "stdout",
  text: "",
  place: { out: [1, end, 1] }
})

describe("Told", () => {
  it("has what lies up to the newest fact, by program, place and number in the line", () => {
    const all = told(["tool.result", { out: [1, 100, 2] }])
    assert.isTrue(all.has(call(100, 2)))
    assert.isTrue(all.has(call(99, 7)))
    assert.isFalse(all.has(call(100, 3)))
    assert.isFalse(all.has(call(101, 1)))
    assert.isFalse(all.has({ ...call(1, 1), place: { out: [2, 1, 1] } }))
    assert.isFalse(all.has({ _tag: "Notice" }))
  })

  it("what is said in passing moves no fact, and no fact moves it", () => {
    const all = told(["run.output", { out: [1, 100, 1] }], ["tool.result", { out: [1, 50, 1] }])
    assert.isTrue(all.has(line(100)))
    assert.isFalse(all.has(line(101)))
    assert.isFalse(all.has(call(60, 1)))
  })

  it("knows nothing of another run", () => {
    const all = new ProcessedEvents()
    all.add({ kind: "tool.result", payload: { heard: { run: "r2", out: [1, 9, 1] } } }, runId)
    all.add({ kind: "tool.result", payload: { heard: "nonsense" } }, runId)
    assert.isFalse(all.has(call(1, 1)))
  })
})

interface Message {
  readonly _tag: string
  readonly heard?: object
}

/** The events of a run, heard by a daemon whose log reads so; what its calls' actor is told. */
const hearing = Effect.fnUntraced(function* (read: () => Stream.Stream<never, StorageError> = () => Stream.empty) {
  const messages: Array<Message> = []
  const nothing = () => Effect.void
  const log = { appendLazy: nothing, head: Effect.succeed(0), read, tail: () => Effect.succeed([]) }
  const setting = {
    agent: "a",
    conversation: "shop",
    config: () => ({ approvals: { timeout: "1 minute" }, maxToolTimeout: "1 minute", toolTimeout: "1 minute" }),
    priceOf: () => undefined,
    weather: { tell: nothing },
    report: nothing
  }
  const tell = (message: Message) => Effect.sync(() => void messages.push(message))
  const actor = { tell, ask: tell, state: { state: "idle", data: { turnId: null }, now: undefined } }
  const live = new LiveRun()
  const redact = yield* Redact
  const adopted = Latch.makeUnsafe(false)
  const events = new RunEvents({ setting, log, redact, adopted } as never, live, () => {
    return { tools: actor, turn: actor, worker: actor } as never
  })
  const run = { runId } as Run
  live.up(run, true, "t1", true)
  const hear = (adopt: boolean, ...all: ReadonlyArray<RunEvent>) => {
    const spec = { runId, turnId: "t1", cwd: "/", ...(adopt ? { adopt: { isUp: true } } : {}) }
    return events.events(run, { backend: { turns: true }, spec } as RunRequest, all)
  }
  return { hear, messages }
})

const made = (end: number, event: number): RunEvent => ({
  _tag: "ToolCall",
  callId: `c${event}`,
  tool: "Bash",
  arguments: {},
  readOnly: false,
  place: { out: [1, end, event] }
})
const spent = (end: number, event: number): RunEvent => ({
  _tag: "Usage",
  inputTokens: 10,
  outputTokens: 1,
  place: { out: [1, end, event] }
})

describe("a run that outlives its daemon", () => {
  it.effect("what it spent is told before a call that follows: no kill between the two leaves it out", () =>
    Effect.gen(function* () {
      const { hear, messages } = yield* hearing()
      yield* hear(false, spent(10, 1), made(10, 2))
      assert.deepStrictEqual(
        messages.map(({ _tag, heard }) => [_tag, heard]),
        [
          ["Paid", { run: runId, out: [1, 10, 1] }],
          ["Called", { run: runId, out: [1, 10, 2] }]
        ]
      )
    }).pipe(Effect.provide(Redact.layer))
  )

  it.effect("with a turn's end it is told in one, lest a budget cuts off what is done", () =>
    Effect.gen(function* () {
      const { hear, messages } = yield* hearing()
      yield* hear(false, spent(10, 1), {
        _tag: "TurnCompleted",
        turnId: "t1",
        output: "done",
        place: { out: [1, 10, 2] }
      })
      assert.deepStrictEqual(
        messages.map(({ _tag }) => _tag),
        ["Close"]
      )
    }).pipe(Effect.provide(Redact.layer))
  )

  it.effect("while the log cannot be read nothing of it is told, and nothing twice", () =>
    Effect.gen(function* () {
      let tries = 0
      const { hear, messages } = yield* hearing(() =>
        ++tries < 3 ? Stream.fail(new StorageError({ reason: "io", message: "no", remedy: "" })) : Stream.empty
      )
      const heard = yield* Effect.forkChild(hear(true, made(10, 1)))
      yield* TestClock.adjust("50 millis")
      assert.deepStrictEqual(messages, [])
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(heard)
      assert.strictEqual(tries, 3)
      assert.deepStrictEqual(
        messages.map(({ _tag }) => _tag),
        ["Called"]
      )
    }).pipe(Effect.provide(Layer.fresh(Redact.layer)))
  )
})
