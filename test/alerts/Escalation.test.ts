/**
 * Notices over a real log by channels that the test plays: digests, quiet hours, who is told when nobody answers, and
 * what is taken back. Time is the test's.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { type Duration, Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { layerMemory } from "../../src/app/DaemonLog.ts"
import { type AlertChannel, AlertChannels, type Message } from "../../src/alerts/AlertChannel.ts"
import { AlertContext } from "../../src/alerts/AlertContext.ts"
import * as Alerter from "../../src/alerts/Alerter.ts"
import { LiveOutbox } from "../../src/alerts/LiveOutbox.ts"
import * as OpenNotices from "../../src/alerts/OpenNotices.ts"
import { SendError } from "../../src/alerts/SendError.ts"
import { NotifyConfig } from "../../src/config/NotifyConfig.ts"
import { EventLog } from "../../src/event-log/EventLog.ts"
import { Redact } from "../../src/event-log/Redact.ts"
import { DAEMON_STREAM, type RuneDraft } from "../../src/event-log/Rune.ts"
import * as SteppedClock from "../support/SteppedClock.ts"

const decode = Schema.decodeUnknownSync(NotifyConfig)
const STREAM = "demo-00000000"

interface Played {
  readonly told: Array<Message & { readonly by: string }>
  readonly back: Array<{ readonly by: string; readonly handle: string; readonly why: string }>
  /** Channels that hang, and those that fail. */
  readonly hanging: Set<string>
  readonly failing: Set<string>
  readonly channels: ReadonlyArray<AlertChannel>
}

const refused = new SendError({ message: "HTTP 503", remedy: "wait", class: "transient" })

/** Channels of these names, each a type of its own; those of capitals cannot take a message back. */
const played = (...names: ReadonlyArray<string>): Played => {
  const told: Played["told"] = []
  const back: Played["back"] = []
  const hanging = new Set<string>()
  const failing = new Set<string>()
  const channels = names.map((name): AlertChannel => ({
    name,
    send: (_, message) =>
      Effect.suspend(() => {
        if (hanging.has(name)) return Effect.never
        if (failing.has(name)) return Effect.fail(refused)
        told.push({ ...message, by: name })
        return Effect.succeed({ response: "ok", handle: `${name}-${told.length}` })
      }),
    ...(name === "chat"
      ? {}
      : {
          withdraw: (_: unknown, { handle }: { readonly handle: string }, why: string) =>
            Effect.sync(() => (back.push({ by: name, handle, why }), { response: "ok" }))
        }),
    check: () => Effect.succeed("fine")
  }))
  return { told, back, hanging, failing, channels }
}

const config = (names: ReadonlyArray<string>, rest: object = {}) =>
  decode({ channels: Object.fromEntries(names.map((name) => [name, { type: "other", name }])), ...rest })

const living = ({ channels }: Played, notify: NotifyConfig) =>
  Effect.forkScoped(
    Effect.provide(
      Alerter.run({ host: "lab" }),
      Layer.mergeAll(
        AlertContext.layerTest(
          () => undefined,
          () => notify
        ),
        LiveOutbox.layer,
        Layer.succeed(AlertChannels, channels)
      )
    )
  )

const append = (...drafts: ReadonlyArray<RuneDraft | ReadonlyArray<RuneDraft>>) =>
  Effect.flatMap(EventLog, (log) => log.append(drafts.flat() as ReadonlyArray<RuneDraft>))

const asked = (agent: string): RuneDraft => ({
  stream: STREAM,
  kind: "agent.asked",
  actor: `agent/${agent}`,
  payload: { agent_id: agent, question: `Which region, asks ${agent}?` }
})

const answered = (agent: string, from = "dana"): RuneDraft => ({
  stream: STREAM,
  kind: "inbox.received",
  actor: `inbox/${agent}`,
  payload: { event: { _tag: "Received", message: { messageId: "m", from, text: "eu", urgent: false, at: 0 } } }
})

const worker = (agent: string, from: string, to: string, event: { readonly _tag: string }): RuneDraft => ({
  stream: STREAM,
  kind: "worker.moved",
  actor: `worker/${agent}`,
  from,
  to,
  trigger: event._tag,
  payload: {
    event,
    consecutiveErrors: 5,
    totalErrors: 5,
    fatal: { message: "5 errors in a row; the last: exit code 1", remedy: "Mend it." }
  }
})

const prepared = { _tag: "PromptReady", prompt: "go", runId: "r", messageIds: [], at: 0 }
const exited = { _tag: "SessionExited", runId: "r", outcome: { _tag: "Error", detail: "exit code 1" } }

/** A run that begins and fails, and is the last. */
const died = (agent: string): ReadonlyArray<RuneDraft> => [
  worker(agent, "BuildingPrompt", "Spawning", prepared),
  worker(agent, "Spawning", "Stopped", exited)
]

const plan = (kind: string, event: { readonly _tag: string; readonly [field: string]: unknown }): RuneDraft => ({
  stream: STREAM,
  kind,
  actor: "plan/g1",
  payload: { event }
})
const blocked = plan("plan.blocked", { _tag: "all_runnable_blocked", reason: "vault refuses" })
const unblocked = plan("plan.unblocked", { _tag: "dependency_resolved", reason: "dana says so" })

/** The log and the alerter have a turn between two steps of the clock. */
const passing = (time: Duration.Input, step: Duration.Input = "1 second") =>
  Effect.gen(function* () {
    const [whole, one] = [Number(millis(time)), Number(millis(step))]
    for (let passed = 0; passed < whole; passed += one) {
      yield* settled
      yield* TestClock.adjust(step)
    }
    yield* settled
  })

const millis = (input: Duration.Input): number => {
  const [amount = "0", unit = ""] = String(input).split(" ")
  return Number(amount) * (unit.startsWith("h") ? 3_600_000 : unit.startsWith("m") ? 60_000 : 1_000)
}

const settled = Effect.promise(async () => {
  for (let turn = 0; turn < 12; turn++) await new Promise((resume) => setImmediate(resume))
})

const withLog = Effect.provide(Layer.mergeAll(layerMemory, NodeFileSystem.layer, Redact.layer))

describe("a digest", () => {
  it.effect("fifty agents that die within half a minute are one message", () =>
    Effect.gen(function* () {
      const play = played("phone")
      yield* living(play, config(["phone"]))
      for (let at = 0; at < 50; at += 5) {
        yield* append(...Array.from({ length: 5 }, (_, one) => died(`agent-${at + one}`)))
        yield* passing("2 seconds")
      }
      yield* passing("1 minute")
      assert.lengthOf(play.told, 1)
      assert.strictEqual(play.told[0]!.title, "agentd: 50 notices")
      assert.lengthOf(play.told[0]!.notices, 50)
      assert.match(play.told[0]!.body, /and 45 more$/)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("what needs a person goes at once, and takes along what waited", () =>
    Effect.gen(function* () {
      const play = played("phone")
      yield* living(play, config(["phone"], { digestWindow: "10 minutes" }))
      yield* append(died("one"))
      yield* passing("1 minute")
      assert.lengthOf(play.told, 0)
      yield* append(asked("two"))
      yield* passing("5 seconds")
      assert.deepStrictEqual(
        play.told[0]!.notices.map(({ kind }) => kind),
        ["failed", "question"]
      )
    }).pipe(Effect.scoped, withLog)
  )
})

describe("a channel that is dead", () => {
  it.effect("holds back no other, and of one that fails the others are told", () =>
    Effect.gen(function* () {
      const play = played("phone", "chat", "desk")
      play.hanging.add("phone")
      play.failing.add("chat")
      yield* living(play, config(["phone", "chat", "desk"], { tell: { others: ["phone", "chat", "desk"] } }))
      yield* append(asked("one"))
      yield* passing("5 seconds")
      assert.deepStrictEqual(
        play.told.map(({ by }) => by),
        ["desk"]
      )
      yield* passing("30 minutes", "10 seconds")
      const news = play.told.filter(({ notices }) => notices.some(({ kind }) => kind === "unsent"))
      assert.isNotEmpty(news)
      assert.isTrue(news.every(({ by }) => by === "desk"))
      assert.isTrue(
        news.flatMap(({ notices }) => notices).some(({ title }) => title === "1 notice could not be sent by chat")
      )
      play.failing.delete("chat")
      yield* passing("20 minutes", "10 seconds")
      assert.isTrue(play.told.some(({ by }) => by === "chat"))
    }).pipe(Effect.scoped, withLog)
  )
})

describe("quiet hours", () => {
  it.effect("hold all but what is excepted, and end with one message", () =>
    Effect.gen(function* () {
      const play = played("phone")
      const quietHours = { from: "00:00", to: "07:00", timeZone: "UTC", except: ["question"] }
      yield* living(play, config(["phone"], { quietHours }))
      yield* append(died("one"))
      yield* passing("10 minutes", "30 seconds")
      yield* append(died("two"), asked("three"))
      yield* passing("1 minute", "10 seconds")
      assert.deepStrictEqual(
        play.told.map(({ notices }) => notices.map(({ kind }) => kind)),
        [["question"]]
      )
      yield* passing("7 hours", "2 minutes")
      assert.lengthOf(play.told, 2)
      assert.deepStrictEqual(
        play.told[1]!.notices.map(({ title }) => title),
        ["demo/one stopped for good", "demo/two stopped for good"]
      )
    }).pipe(Effect.scoped, withLog)
  )
})

describe("what nobody answers", () => {
  const notify = config(["desk", "phone", "chat"], {
    tell: { others: ["desk"] },
    escalate: { after: "20 minutes", to: ["desk", "phone", "chat"] }
  })

  it.effect("is told by the next channel after 20 minutes, and the next but one; over a restart nothing twice", () =>
    Effect.gen(function* () {
      const play = played("desk", "phone", "chat")
      const first = yield* living(play, notify)
      yield* append(asked("one"))
      yield* passing("15 minutes", "10 seconds")
      assert.deepStrictEqual(
        play.told.map(({ by }) => by),
        ["desk"]
      )
      yield* Fiber.interrupt(first)
      yield* living(play, notify)
      yield* passing("6 minutes", "10 seconds")
      assert.deepStrictEqual(
        play.told.map(({ by, title }) => [by, title.slice(0, 27)]),
        [
          ["desk", "demo/one asks: Which region"],
          ["phone", "Nobody answered for 20 min:"]
        ]
      )
      assert.strictEqual(play.told[1]!.urgency, "now")
      yield* passing("21 minutes", "10 seconds")
      yield* passing("2 hours", "1 minute")
      assert.deepStrictEqual(
        play.told.map(({ by }) => by),
        ["desk", "phone", "chat"]
      )
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("once it is answered is told no further, and is taken back where the channel can", () =>
    Effect.gen(function* () {
      const play = played("desk", "phone", "chat")
      yield* living(play, notify)
      yield* append(asked("one"))
      yield* passing("25 minutes", "10 seconds")
      yield* append(answered("one"))
      yield* passing("2 hours", "1 minute")
      assert.deepStrictEqual(
        play.told.map(({ by }) => by),
        ["desk", "phone"]
      )
      assert.deepStrictEqual(
        play.back.map(({ by, handle }) => [by, handle]),
        [
          ["desk", "desk-1"],
          ["phone", "phone-2"]
        ]
      )
      assert.match(play.back[0]!.why, /^Answered by dana at \d\d:\d\d\.$/)
    }).pipe(Effect.scoped, withLog)
  )

  for (const down of ["desk", "phone"]) {
    it.effect(`is told further where ${down} is down`, () =>
      Effect.gen(function* () {
        const play = played("desk", "phone", "chat")
        play.failing.add(down)
        yield* living(play, notify)
        yield* append(asked("one"))
        yield* passing("50 minutes", "10 seconds")
        const toldOf = play.told.filter(({ notices }) => notices.some(({ kind }) => kind === "question"))
        assert.deepStrictEqual(
          toldOf.map(({ by }) => by),
          ["desk", "phone", "chat"].filter((name) => name !== down)
        )
      }).pipe(Effect.scoped, withLog)
    )
  }

  it.effect("is told further where one that was told first is down", () =>
    Effect.gen(function* () {
      const play = played("desk", "phone", "chat")
      play.failing.add("phone")
      yield* living(play, { ...notify, tell: { others: ["desk", "phone"] } })
      yield* append(asked("one"))
      yield* passing("25 minutes", "10 seconds")
      const toldOf = play.told.filter(({ notices }) => notices.some(({ kind }) => kind === "question"))
      assert.deepStrictEqual(
        toldOf.map(({ by }) => by),
        ["desk", "chat"]
      )
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("once it is answered, waits by no channel any more", () =>
    Effect.gen(function* () {
      const play = played("phone")
      yield* living(play, config(["phone"]))
      yield* append(asked("one"), answered("one"))
      yield* passing("1 minute")
      const log = yield* EventLog
      const { notices } = yield* log.recover(DAEMON_STREAM, { notices: OpenNotices.fold })
      assert.strictEqual(notices.state.open.size, 0)
      assert.strictEqual(notices.state.answered.size, 1)
      assert.strictEqual(notices.state.waiting.size, 0)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("a clock that is set back a day makes nobody wait a day", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      const test = Effect.gen(function* () {
        const play = played("desk", "phone", "chat")
        yield* TestClock.adjust("48 hours")
        yield* living(play, notify)
        yield* append(asked("one"))
        yield* passing("5 seconds")
        assert.lengthOf(play.told, 1)
        yield* clock.step(-SteppedClock.DAY)
        yield* passing("25 minutes", "10 seconds")
        assert.isTrue(play.told.some(({ by }) => by === "phone"))
      })
      yield* clock.within(test.pipe(Effect.scoped, withLog))
    })
  )
})

describe("an answer", () => {
  it.effect("that comes before its notice is sent drops it; an agent's word is no answer", () =>
    Effect.gen(function* () {
      const play = played("phone")
      yield* living(play, config(["phone"]))
      yield* append(asked("one"), asked("two"))
      yield* append(answered("one"), answered("two", "agent:demo/three"))
      yield* passing("1 minute")
      assert.deepStrictEqual(
        play.told.flatMap(({ notices }) => notices.map(({ about }) => about)),
        [`asked:${STREAM}/two`]
      )
      assert.lengthOf(play.back, 0)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("to one of several that were told as one takes nothing back", () =>
    Effect.gen(function* () {
      const play = played("phone")
      yield* living(play, config(["phone"]))
      yield* append(asked("one"), asked("two"))
      yield* passing("1 minute")
      assert.lengthOf(play.told, 1)
      yield* append(answered("one"))
      yield* passing("1 minute")
      assert.lengthOf(play.back, 0)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("that comes while its notice is on its way takes it back as soon as it has come", () =>
    Effect.gen(function* () {
      const play = played("phone")
      play.hanging.add("phone")
      const notify = config(["phone"])
      const first = yield* living(play, notify)
      yield* append(asked("one"))
      yield* passing("5 seconds")
      yield* append(answered("one"))
      yield* passing("5 seconds")
      // killed with the message on its way: whether it came is not known, and it is sent again
      yield* Fiber.interrupt(first)
      play.hanging.delete("phone")
      yield* living(play, notify)
      yield* passing("1 minute")
      assert.lengthOf(play.told, 1)
      assert.lengthOf(play.back, 1)
    }).pipe(Effect.scoped, withLog)
  )
})

describe("a notice of the same thing as an answered one", () => {
  const kindsOf = ({ told }: Played) => told.flatMap(({ notices }) => notices.map(({ kind }) => kind))

  it.effect("that asks nothing is not taken back", () =>
    Effect.gen(function* () {
      const play = played("phone")
      yield* living(play, config(["phone"], { digestWindow: "1 second" }))
      yield* append(blocked)
      yield* passing("10 seconds")
      yield* append(unblocked)
      yield* passing("10 seconds")
      assert.lengthOf(play.back, 1)
      yield* append(plan("plan.goal_met", { _tag: "critique_passed", summary: "All is well." }))
      yield* passing("10 seconds")
      assert.deepStrictEqual(kindsOf(play), ["goalBlocked", "goalMet"])
      assert.lengthOf(play.back, 1)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("is told where its rune is the answer", () =>
    Effect.gen(function* () {
      const play = played("phone")
      yield* living(play, config(["phone"], { digestWindow: "1 second" }))
      yield* append(blocked)
      yield* passing("10 seconds")
      yield* append(plan("plan.stopped", { _tag: "budget_exhausted", reason: "its budget is spent" }))
      yield* passing("10 seconds")
      assert.deepStrictEqual(kindsOf(play), ["goalBlocked", "goalStopped"])
      assert.deepStrictEqual(
        play.back.map(({ handle }) => handle),
        ["phone-1"]
      )
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("is told where it comes behind the answer, in one batch", () =>
    Effect.gen(function* () {
      const play = played("phone")
      yield* living(play, config(["phone"], { digestWindow: "1 second" }))
      yield* append(asked("one"))
      yield* passing("10 seconds")
      yield* append(answered("one"), asked("one"))
      yield* passing("10 seconds")
      assert.deepStrictEqual(kindsOf(play), ["question", "question"])
      assert.deepStrictEqual(
        play.back.map(({ handle }) => handle),
        ["phone-1"]
      )
      yield* append(answered("one"), asked("one"), answered("one"), asked("one"))
      yield* passing("10 seconds")
      assert.lengthOf(play.told, 3)
    }).pipe(Effect.scoped, withLog)
  )
})

describe("messages about one thing", () => {
  it.effect("name the first of them", () =>
    Effect.gen(function* () {
      const play = played("phone")
      yield* living(play, config(["phone"], { digestWindow: "1 second" }))
      for (let time = 0; time < 2; time++) {
        yield* append(died("one"))
        yield* passing("1 minute")
      }
      assert.lengthOf(play.told, 2)
      assert.isUndefined(play.told[0]!.earlier)
      assert.strictEqual(play.told[1]!.earlier, play.told[0]!.id)
    }).pipe(Effect.scoped, withLog)
  )
})
