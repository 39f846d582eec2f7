/**
 * Notices over a real log by channels that the test plays: digests, quiet hours, who is told when nobody answers, and
 * what is taken back. Time is the test's.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as OpenNotices from "../../../src/alerts/OpenNotices.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { DAEMON_STREAM } from "../../../src/core/event-log/Rune.ts"
import * as SteppedClock from "../../support/SteppedClock.ts"
import {
  answered,
  append,
  asked,
  blocked,
  config,
  died,
  living,
  passing,
  plan,
  project,
  type Played,
  played,
  STREAM,
  turn,
  unblocked,
  withLog
} from "./PlayedChannels.ts"

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
        ["demo/one stopped permanently", "demo/two stopped permanently"]
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

describe("a project that is suspended", () => {
  const notify = config(["desk", "phone"], {
    tell: { others: ["desk"] },
    escalate: { after: "20 minutes", to: ["phone"] }
  })
  const suspended = project("session.suspended", { _tag: "budget_exhausted", resource: "usd", spent: 2, limit: 1 })
  const byOf = ({ told }: Played) => told.map(({ by }) => by)

  it.effect("is told on where nobody resumes it", () =>
    Effect.gen(function* () {
      const play = played("desk", "phone")
      yield* living(play, notify)
      yield* append(suspended)
      yield* passing("25 minutes", "10 seconds")
      assert.deepStrictEqual(byOf(play), ["desk", "phone"])
    }).pipe(Effect.scoped, withLog)
  )

  for (const [how, rune] of [
    ["resumed", project("session.unsuspended", { _tag: "resume_requested", by: "dana" })],
    ["closed", project("session.closed", { _tag: "cleanup_complete", stats: null })]
  ] as const)
    it.effect(`is told on no more once it is ${how}, and is taken back`, () =>
      Effect.gen(function* () {
        const play = played("desk", "phone")
        yield* living(play, notify)
        yield* append(suspended)
        yield* passing("5 minutes", "10 seconds")
        yield* append(rune)
        yield* passing("1 hour", "1 minute")
        assert.deepStrictEqual(byOf(play), ["desk"])
        assert.deepStrictEqual(
          play.back.map(({ handle }) => handle),
          ["desk-1"]
        )
      }).pipe(Effect.scoped, withLog)
    )

  it.effect("a budget of a day that is spent goes on by itself: it is told on to nobody", () =>
    Effect.gen(function* () {
      const play = played("desk", "phone")
      yield* living(play, notify)
      yield* append({
        stream: STREAM,
        kind: "budget.spent",
        actor: "budget/demo",
        payload: {
          key: "day",
          name: "demo",
          whose: "project",
          period: "day",
          label: "1970-01-01",
          resource: "usd",
          until: 86_400_000,
          spent: 2,
          limit: 1,
          stops: false
        }
      })
      yield* passing("25 minutes", "10 seconds")
      assert.deepStrictEqual(byOf(play), ["desk"])
    }).pipe(Effect.scoped, withLog)
  )
})

describe("an agent that is done", () => {
  const notify = config(["desk"], { tell: { done: ["desk"], others: ["desk"] }, digestWindow: "30 seconds" })
  const idle = { agent: "one", conversation: STREAM, word: "idle", inbox: 0, sessionSeq: 1 } as never
  const facts = ({ kind }: { readonly kind: string }) => (kind === "turn.completed" ? { agent: idle, turn: "t1" } : {})
  const kindsOf = ({ told }: Played) => told.map(({ notices }) => notices.map(({ kind }) => kind))

  it.effect("is told so", () =>
    Effect.gen(function* () {
      const play = played("desk")
      yield* living(play, notify, { facts })
      yield* append(turn("one", "turn.started", "t1"), turn("one", "turn.completed", "t1"))
      yield* passing("1 minute")
      assert.deepStrictEqual(kindsOf(play), [["done"]])
    }).pipe(Effect.scoped, withLog)
  )

  it.effect(
    "is not where its next turn begins before that is sent; of nobody else and of nothing else is dropped",
    () =>
      Effect.gen(function* () {
        const play = played("desk")
        yield* living(play, notify, { facts })
        yield* append(turn("one", "turn.started", "t1"), turn("one", "turn.completed", "t1"), died("one"))
        yield* passing("5 seconds")
        yield* append(turn("two", "turn.started", "t2"))
        yield* passing("5 seconds")
        yield* append(turn("one", "turn.started", "t3"))
        yield* passing("1 minute")
        assert.deepStrictEqual(kindsOf(play), [["failed"]])
      }).pipe(Effect.scoped, withLog)
  )

  it.effect("is told so where the fact was known before its turn's beginning was read", () =>
    Effect.gen(function* () {
      const play = played("desk")
      yield* living(play, notify, { facts: (rune) => ({ ...facts(rune), turn: "t2" }) })
      yield* append(turn("one", "turn.started", "t1"), turn("one", "turn.completed", "t1"))
      yield* passing("5 seconds")
      yield* append(turn("one", "turn.started", "t2"), turn("one", "turn.completed", "t2"))
      yield* passing("1 minute")
      assert.deepStrictEqual(kindsOf(play), [["done"]])
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("is not over a restart between", () =>
    Effect.gen(function* () {
      const play = played("desk")
      const first = yield* living(play, notify, { facts })
      yield* append(turn("one", "turn.started", "t1"), turn("one", "turn.completed", "t1"))
      yield* passing("5 seconds")
      yield* Fiber.interrupt(first)
      yield* append(turn("one", "turn.started", "t3"))
      yield* living(play, notify, { facts })
      yield* passing("1 minute")
      assert.lengthOf(play.told, 0)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("is told so still where the message is on its way", () =>
    Effect.gen(function* () {
      const play = played("desk")
      play.failing.add("desk")
      yield* living(play, notify, { facts })
      yield* append(turn("one", "turn.started", "t1"), turn("one", "turn.completed", "t1"))
      yield* passing("32 seconds")
      yield* append(turn("one", "turn.started", "t3"))
      play.failing.delete("desk")
      yield* passing("1 minute")
      assert.deepStrictEqual(kindsOf(play), [["done"]])
    }).pipe(Effect.scoped, withLog)
  )
})
