/**
 * Durable times: a clock that was a month ahead for a moment, and is right again, silences nothing that was written
 * meanwhile. docs/clocks.md lists them; those of schedules, alerts and timers are in their own tests.
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { begunOn } from "../../../src/projects/ConversationRecovery.ts"
import * as Expiry from "../../../src/projects/Expiry.ts"
import * as MessageFiles from "../../../src/agents/prompt/MessageFiles.ts"
import { isDue, untilDue } from "../../../src/agents/actors/NextTurn.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import { Agents } from "../../../src/projects/service/Agents.ts"
import * as LogScrubber from "../../../src/app/LogScrubber.ts"
import { reaches } from "../../../src/budgets/Limits.ts"
import * as SpendingTotals from "../../../src/budgets/SpendingTotals.ts"
import * as Calendar from "../../../src/domain/Calendar.ts"
import * as UsageWindow from "../../../src/domain/UsageWindow.ts"
import { step } from "../../../src/core/event-actor/StateMachine.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { Plan } from "../../../src/goals/Plan.ts"
import { options, task } from "../goals/Tasks.ts"
import * as ProviderMachine from "../../../src/providers/ProviderMachine.ts"
import { DAY } from "../../support/SteppedClock.ts"

const NOW = new Date(2026, 10, 10, 12).getTime()
const MONTH = 30 * DAY
const HOUR = 3_600_000
const MINUTE = 60_000

describe("a clock that was ahead by a month, and is right again:", () => {
  describe.each([
    ["the day", { perDay: { tokens: 1e9 } }],
    ["the month", { perMonth: { tokens: 1e9 } }]
  ] as const)("the budget of %s", (_, budget) => {
    const spent = ({ project }: SpendingTotals.SpendingTotals, now: number) =>
      reaches("project", budget, project, now)[0]!.spent
    const use = (spending: SpendingTotals.SpendingTotals, tokens: number, at: number) =>
      SpendingTotals.use(spending, { agent_id: "a", turn_id: "t", tokens, tool_calls: 0, wall_time: 0, usd: 0 }, at)

    it("is that of now: what was spent before counts, and what was spent by the wrong clock", () => {
      const spending = SpendingTotals.fresh()
      use(spending, 100, NOW)
      use(spending, 10, NOW + 2 * MONTH)
      assert.strictEqual(spent(spending, NOW), 110)
      use(spending, 1, NOW)
      assert.strictEqual(spent(spending, NOW), 111)
      assert.strictEqual(spending.project.day.label, Calendar.dayOf(NOW))
    })

    it("begins anew with the next, though nothing was spent since", () => {
      const spending = SpendingTotals.fresh()
      use(spending, 100, NOW + 3 * MONTH)
      assert.strictEqual(spent(spending, NOW + MONTH), 0)
      use(spending, 1, NOW + MONTH)
      assert.strictEqual(spent(spending, NOW + MONTH), 1)
      assert.strictEqual(spent(spending, NOW + 2 * MONTH), 0)
    })
  })

  it("a clock set back by hours begins no day anew", () => {
    const spending = SpendingTotals.fresh()
    const late = new Date(2026, 10, 11, 1).getTime()
    SpendingTotals.use(spending, { agent_id: "a", turn_id: "t", tokens: 7, tool_calls: 0, wall_time: 0, usd: 0 }, late)
    const [found] = reaches("project", { perDay: { tokens: 9 } }, spending.project, late - 3 * HOUR)
    assert.strictEqual(found!.spent, 7)
  })

  it("sub-agents a day are those of now", () => {
    const begun = (day: string) => begunOn({ begun: { day, count: 20 } } as never, Calendar.dayOf(NOW))
    assert.deepStrictEqual(
      [NOW + MONTH, NOW + DAY, NOW, NOW - DAY].map((at) => begun(Calendar.dayOf(at))),
      [0, 20, 20, 0]
    )
    assert.strictEqual(begun(""), 0)
  })

  it("runs an hour: those of the wrong clock do not count for a month", () => {
    const spacing = { interval: 0, maxRunsPerHour: 3 }
    const ahead = [1, 2, 3].map((minute) => NOW + MONTH + minute * MINUTE)
    const data = { ...WorkerMachine.initial(), lastRunAt: NOW, recentRuns: [...ahead, NOW].slice(-3) }
    assert.isTrue(isDue(data, spacing, NOW + MINUTE))
    const full = { ...data, recentRuns: [NOW, NOW + MINUTE, NOW + 2 * MINUTE], lastRunAt: NOW + 2 * MINUTE }
    assert.strictEqual(untilDue(full, spacing, NOW + 3 * MINUTE), HOUR - 3 * MINUTE)
  })

  describe("a provider's trouble", () => {
    const of = { provider: "anthropic", account: "login" }
    const stepped = (state: ProviderMachine.State, data: ProviderMachine.Data, event: ProviderMachine.Event) =>
      step(ProviderMachine.Provider, state, data, event)
    const played = (...events: ReadonlyArray<ProviderMachine.Event>) => {
      let [state, data]: [ProviderMachine.State, ProviderMachine.Data] = ["Available", ProviderMachine.initial]
      for (const event of events) {
        const result: ReturnType<typeof stepped> = stepped(state, data, event)
        if (result._tag !== "Refused") [state, data] = [result.state, result.data]
      }
      return { state, data }
    }
    const failed = (at: number) => ({ _tag: "failed", ...of, at, began: at, message: "529", by: "web/ann" }) as const

    it("is over with the first answer", () => {
      const answered = { _tag: "answered", at: NOW + 5_000, began: NOW, by: "web/bob" } as const
      assert.strictEqual(played(failed(NOW + MONTH), { _tag: "retry_due" }, answered).state, "Available")
    })

    it("grows, and is told to a person when it lasts", () => {
      const all = [0, 1, 2].map((n) => failed(NOW + n * 10 * MINUTE))
      const { data, state } = played(failed(NOW + MONTH), ...all)
      assert.strictEqual(state, "Unavailable")
      assert.deepInclude(data, { failures: 4, since: NOW, toldAt: NOW + 20 * MINUTE })
    })
  })

  it("a window of an account's use is near its end no more, and what is told next is news", () => {
    const told = { name: "requests", used: 0.99, limit: 100, remaining: 1, resetsAt: NOW + MONTH + MINUTE }
    const known = { ...told, at: NOW + MONTH }
    assert.isFalse(UsageWindow.isNear(known, NOW))
    assert.isTrue(UsageWindow.isNews(known, { ...told, used: 0.1, resetsAt: NOW + MINUTE }, NOW))
  })

  it("the whole log is checked when a check was due", () => {
    const checks: Array<string> = []
    const log = {
      get: () => Effect.succeed(undefined),
      sealed: Effect.succeed({ deleted: 0 }),
      checked: Effect.succeed({ at: NOW + MONTH }),
      scrub: Effect.sync(() => {
        checks.push("checked")
        return { problems: 0, runes: 1 }
      })
    }
    return Effect.runPromise(
      Effect.andThen(TestClock.setTime(NOW), LogScrubber.once(Duration.days(7))).pipe(
        Effect.provide([Layer.succeed(EventLog, log as never), Layer.succeed(Agents, {} as never), TestClock.layer()]),
        Effect.map(() => assert.deepStrictEqual(checks, ["checked"]))
      )
    )
  })

  it("a task of a goal that is to be tried again is, at the latest after its longest wait", () => {
    const { cap } = options().backoff
    const waits = (until: number) =>
      Plan.empty
        .add([task("t")], 0)
        .assign("t", { agent: "a", messageId: "m", base: null }, NOW)
        .release("t", { error: "no", counts: true, until }, NOW)
    assert.strictEqual(waits(NOW + cap).advance(NOW, cap).nextAt, NOW + cap)
    assert.isUndefined(waits(NOW + MONTH).advance(NOW, cap).nextAt)
  })

  it.effect("a prompt that it stamped is as old as the next rune, and holds up none behind it", () =>
    Effect.gen(function* () {
      const day = (eventId: number, days: number) => ({ eventId, at: NOW + days * DAY, kind: "run.output" })
      const runes = [day(1, -9), day(2, 30), day(3, -8), day(4, 30), day(5, -1)]
      const gone: Array<number> = []
      const log = {
        read: ({ after = 0 }: { readonly after?: number }) =>
          Stream.fromIterable(
            runes
              .filter(({ eventId }) => eventId > after && !gone.includes(eventId))
              .map((rune) => ({ ...rune, stream: "web-1", payload: { text: "a text", event: {} } }))
          ),
        erase: (eventId: number) => Effect.sync(() => void gone.push(eventId))
      }
      const notLiving = [{ reason: "closed", record: { conversation: "web-1" } }]
      const projects = { living: new Map(), notLiving, configOf: () => ({ keepPrompts: Duration.days(7) }) }
      yield* TestClock.setTime(NOW)
      yield* Expiry.make(projects as never, log as never, MessageFiles.memory())(undefined)
      assert.deepStrictEqual(gone, [1, 2, 3])
    })
  )
})
