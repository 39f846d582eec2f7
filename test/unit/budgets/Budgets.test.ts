/** Limits by the day and the month, over several agents together: who waits, who is told, and when it goes on. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import * as Budgets from "../../../src/budgets/Budgets.ts"
import { newsOf } from "../../../src/alerts/AlertPolicy.ts"
import type { BudgetConfig } from "../../../src/config/AgentConfig.ts"
import { SpendingLimits, type Allowances, type Reach } from "../../../src/domain/SpendingLimits.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { memoryLog, type TestLog } from "../../world/agents/TestLog.ts"
import { actorSystem } from "../../world/agents/World.ts"

const SHOP = "shop-00000001"
const BAKERY = "bakery-00000002"
/** Noon. */
const NOON = new Date(2026, 10, 10, 12).getTime()
const HALF_A_DAY = 12 * 3_600_000

interface Agent {
  readonly interrupts: Array<readonly [reason: string, keep: boolean]>
  readonly ends: Array<Reach>
  /** Spends, as the agent's actor would: the rune, then the word of it. */
  readonly spend: (tokens: number, more?: object) => Effect.Effect<void>
  readonly asks: Effect.Effect<Reach | "unread" | undefined>
  woken: number
}

/** A daemon's life on the log. */
const open = Effect.fnUntraced(function* (log: TestLog, machine: BudgetConfig = {}) {
  const context = yield* Layer.build(
    Layer.fresh(
      Budgets.layer({ machine }).pipe(Layer.provide(Layer.mergeAll(Layer.succeed(EventLog, log), actorSystem(log))))
    )
  )
  const board = Context.get(context, SpendingLimits)
  return {
    board,
    agent: (name: string, limits: Limits = {}, conversation = SHOP) => make(board, log, name, limits, conversation)
  }
})

interface Limits {
  readonly agent?: BudgetConfig
  readonly project?: BudgetConfig
}

const make = (
  board: Allowances,
  log: TestLog,
  name: string,
  { agent: own = {}, project = {} }: Limits,
  conversation: string
): Effect.Effect<Agent, never, Scope.Scope> =>
  Effect.gen(function* () {
    const who = { conversation, agent: name }
    let total = 0
    const agent: Agent = {
      interrupts: [],
      ends: [],
      woken: 0,
      spend: (tokens, more = {}) =>
        Effect.gen(function* () {
          const usage = { agent_id: name, turn_id: "t", tokens, tool_calls: 0, wall_time: 0, usd: 0, ...more }
          const [rune] = yield* Effect.orDie(
            log.append([{ stream: conversation, kind: "agent.usage", actor: `meter/${name}`, payload: usage }])
          )
          total += tokens
          const { eventId, seq } = rune!
          yield* board.used(who, usage, { stream: conversation, eventId, seq })
          yield* Effect.yieldNow
        }),
      asks: Effect.sync(() => board.admits(who, { tokens: total, usd: 0 }, () => void agent.woken++))
    }
    yield* board.join({
      ...who,
      limits: () => ({ agent: own, project }),
      interrupt: (reason, keep) => Effect.sync(() => void agent.interrupts.push([reason, keep])),
      exhaust: (reach) => Effect.sync(() => void agent.ends.push(reach))
    })
    return agent
  })

const told = (log: TestLog) =>
  Effect.map(log.tail({ kinds: ["budget.near", "budget.spent"] }, 100), (runes) =>
    runes.map(({ kind, payload, stream }) => [stream, kind, payload["whose"], payload["period"], payload["spent"]])
  )

const noon = TestClock.setTime(NOON)

describe("a day's limit", () => {
  it.effect("what an agent says beyond belief is against its own budget alone, and marked", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(NOON)
      const log = yield* memoryLog
      const { agent, board } = yield* open(log, { perDay: { usd: 60 } })
      const limits = { agent: { perDay: { tokens: 1_000 } }, project: { perDay: { usd: 50 } } }
      const liar = yield* agent("liar", limits)
      const other = yield* agent("other", limits)
      const far = yield* agent("far", {}, BAKERY)
      yield* board.wake
      yield* liar.spend(0, { unlikely: { tokens: 9e15, usd: 3_000_000 } })
      assert.isUndefined(yield* other.asks)
      assert.isUndefined(yield* far.asks)
      assert.deepInclude(yield* liar.asks, { whose: "agent", period: "day", resource: "tokens" })
      const { near } = board.standing({ conversation: SHOP, agent: "liar" })
      assert.include(
        near.map(({ mark }) => mark).join(),
        "reports that it has spent 9.00e+15 tokens, 3.00e+6 USD, more than is possible"
      )
      const [row] = yield* board.costs("")
      assert.deepInclude(row, { agent: "liar", usd: 0, input: 0, unlikely: { tokens: 9e15, usd: 3_000_000 } })
      const told = yield* log.tail({ kinds: ["budget.near", "budget.spent"] }, 100)
      assert.isTrue(told.every(({ payload }) => payload["whose"] === "agent"))
      assert.isTrue(told.some(({ payload }) => String(payload["mark"]).includes("only against its own budget")))
      // what can be is everybody's
      yield* liar.spend(10, { usd: 55 })
      assert.deepInclude(yield* other.asks, { whose: "project" })
      yield* liar.spend(10, { usd: 6 })
      assert.deepInclude(yield* far.asks, { whose: "machine" })
    }).pipe(Effect.scoped)
  )

  it.effect("holds for three agents together: all are interrupted, all wait, and the next day all go on", () =>
    Effect.gen(function* () {
      yield* noon
      const log = yield* memoryLog
      const { agent } = yield* open(log)
      const project = { perDay: { tokens: 100 } }
      const [ann, bob, cy] = [
        yield* agent("ann", { project }),
        yield* agent("bob", { project }),
        yield* agent("cy", { project })
      ]
      yield* ann.spend(40)
      yield* bob.spend(39)
      assert.isUndefined(yield* cy.asks)
      yield* cy.spend(25)
      for (const one of [ann, bob, cy]) {
        assert.deepInclude(yield* one.asks, { whose: "project", period: "day", spent: 104, limit: 100 })
        assert.deepStrictEqual(one.interrupts, [
          ["the day's budget of tokens for the project is spent: 104 of 100", true]
        ])
      }
      // 79 was below the warning, and 104 is beyond it
      assert.deepStrictEqual(yield* told(log), [[SHOP, "budget.spent", "project", "day", 104]])
      yield* TestClock.adjust(HALF_A_DAY - 1)
      assert.isDefined(yield* ann.asks, "a moment before midnight")
      yield* TestClock.adjust(1)
      for (const one of [ann, bob, cy]) {
        assert.isAbove(one.woken, 0, "whoever waits is woken at midnight")
        assert.isUndefined(yield* one.asks)
      }
      yield* ann.spend(99)
      assert.deepStrictEqual((yield* told(log)).slice(1), [[SHOP, "budget.near", "project", "day", 99]])
    }).pipe(Effect.scoped)
  )

  it.effect("of one agent keeps no other from working", () =>
    Effect.gen(function* () {
      yield* noon
      const log = yield* memoryLog
      const { agent } = yield* open(log)
      const ann = yield* agent("ann", { agent: { perDay: { tokens: 100 } } })
      const bob = yield* agent("bob", { agent: { perDay: { tokens: 100 } } })
      yield* ann.spend(100)
      assert.deepInclude(yield* ann.asks, { whose: "agent", period: "day" })
      assert.isUndefined(yield* bob.asks)
      assert.deepStrictEqual(bob.interrupts, [])
    }).pipe(Effect.scoped)
  )

  it.effect("that is spent by what has not been told yet keeps an agent from its next turn, too", () =>
    Effect.gen(function* () {
      yield* noon
      const { agent, board } = yield* open(yield* memoryLog)
      yield* agent("ann", { agent: { perDay: { tokens: 100 } } })
      const who = { conversation: SHOP, agent: "ann" }
      assert.isDefined(board.admits(who, { tokens: 100, usd: 0 }, () => {}))
      assert.isUndefined(board.admits(who, { tokens: 99, usd: 0 }, () => {}))
    }).pipe(Effect.scoped)
  )

  it.effect("in USD holds as one in tokens", () =>
    Effect.gen(function* () {
      yield* noon
      const { agent } = yield* open(yield* memoryLog)
      const ann = yield* agent("ann", { project: { perDay: { usd: 1 } } })
      yield* ann.spend(1_000_000)
      assert.isUndefined(yield* ann.asks)
      yield* ann.spend(1, { usd: 1.25 })
      assert.deepInclude(yield* ann.asks, { resource: "usd", spent: 1.25 })
      assert.deepStrictEqual(ann.interrupts[0]?.[0], "the day's budget of USD for the project is spent: 1.25 of 1.00")
    }).pipe(Effect.scoped)
  )

  it.effect("ends its agents for good where the file says so", () =>
    Effect.gen(function* () {
      yield* noon
      const { agent } = yield* open(yield* memoryLog)
      const project = { perDay: { tokens: 100 }, whenSpent: "stop" } as const
      const ann = yield* agent("ann", { project })
      const bob = yield* agent("bob", { project })
      yield* ann.spend(100)
      for (const one of [ann, bob]) {
        assert.lengthOf(one.ends, 1)
        assert.deepStrictEqual(one.interrupts, [])
      }
    }).pipe(Effect.scoped)
  )

  it.effect("a month's limit holds over its days, until the next month", () =>
    Effect.gen(function* () {
      yield* noon
      const { agent } = yield* open(yield* memoryLog)
      const ann = yield* agent("ann", { project: { perMonth: { tokens: 100 } } })
      yield* ann.spend(60)
      yield* TestClock.adjust("3 days")
      yield* ann.spend(60)
      const reached = yield* ann.asks
      assert.deepInclude(reached, { period: "month", spent: 120, until: new Date(2026, 11, 1).getTime() })
      yield* TestClock.adjust("30 days")
      assert.isUndefined(yield* ann.asks)
    }).pipe(Effect.scoped)
  )
})

describe("the machine's limit", () => {
  it.effect("holds over projects, also those that nobody runs now; nothing begins before all is read", () =>
    Effect.gen(function* () {
      yield* noon
      const log = yield* memoryLog
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent } = yield* open(log)
          yield* (yield* agent("old", {}, "garden-00000003")).spend(50)
        })
      )
      const { agent } = yield* open(log, { perDay: { tokens: 100 } })
      const ann = yield* agent("ann")
      const bob = yield* agent("bob", {}, BAKERY)
      while ((yield* ann.asks) === "unread") yield* Effect.yieldNow
      yield* ann.spend(25)
      yield* bob.spend(25)
      for (const one of [ann, bob]) assert.deepInclude(yield* one.asks, { whose: "machine", spent: 100 })
      assert.deepStrictEqual(
        (yield* told(log)).map(([stream, kind]) => [stream, kind]),
        [["daemon", "budget.spent"]]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("in total is raised by a person, and by no day", () =>
    Effect.gen(function* () {
      yield* noon
      const { agent } = yield* open(yield* memoryLog, { tokens: 100 })
      const ann = yield* agent("ann")
      while ((yield* ann.asks) === "unread") yield* Effect.yieldNow
      yield* ann.spend(100)
      assert.deepInclude(yield* ann.asks, { whose: "machine", period: "total", until: null })
      yield* TestClock.adjust("400 days")
      assert.isDefined(yield* ann.asks)
    }).pipe(Effect.scoped)
  )
})

describe("a limit of a turn", () => {
  it.effect("interrupts the turn, whose work is kept, until a person lets it go on", () =>
    Effect.gen(function* () {
      yield* noon
      const log = yield* memoryLog
      const { agent } = yield* open(log)
      const ann = yield* agent("ann", { agent: { perTurn: { tokens: 100 } } })
      const bob = yield* agent("bob", { agent: { perTurn: { tokens: 100 } } })
      yield* bob.spend(60)
      yield* ann.spend(60)
      assert.deepStrictEqual(ann.interrupts, [])
      yield* ann.spend(60)
      assert.deepStrictEqual(ann.interrupts, [["the turn reached 100 tokens: go on, or stop", true]])
      assert.deepStrictEqual(bob.interrupts, [])
      assert.isUndefined(yield* ann.asks)
      assert.deepStrictEqual(yield* told(log), [[SHOP, "budget.spent", "agent", "turn", 120]])
      yield* ann.spend(60, { turn_id: "next" })
      assert.lengthOf(ann.interrupts, 1, "the next turn has its own")
    }).pipe(Effect.scoped)
  )
})

describe("a turn that costs ten times the usual", () => {
  it.effect("is marked while it is under way, and told of once; nothing is ended", () =>
    Effect.gen(function* () {
      yield* noon
      const log = yield* memoryLog
      const { agent, board } = yield* open(log)
      const ann = yield* agent("ann", { agent: { perTurn: { usd: "off" } } })
      for (const [turn_id, tokens] of [
        ["t1", 90],
        ["t2", 100],
        ["t3", 110]
      ] as const)
        yield* ann.spend(tokens, { turn_id })
      yield* ann.spend(999, { turn_id: "t4" })
      assert.deepStrictEqual(yield* told(log), [])
      yield* ann.spend(1, { turn_id: "t4" })
      yield* ann.spend(1, { turn_id: "t4" })
      assert.deepStrictEqual(yield* told(log), [[SHOP, "budget.near", "agent", "turn", 1_000]])
      assert.include(board.standing({ conversation: SHOP, agent: "ann" }).near[0], {
        mark: "the turn has cost 10 times the usual amount"
      })
      assert.deepStrictEqual(ann.interrupts, [])
      const [alert] = (yield* log.tail({}, 100)).flatMap((rune) => newsOf(rune)?.mail ?? [])
      assert.match(alert!.headline, /^ann: the turn has cost 10 times the usual amount$/)
    }).pipe(Effect.scoped)
  )
})

describe("a warning at 80 %", () => {
  it.effect("comes once for each limit, by mail, also over a restart", () =>
    Effect.gen(function* () {
      yield* noon
      const log = yield* memoryLog
      const limits = { agent: { tokens: 100 }, project: { perDay: { tokens: 200 } } }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent } = yield* open(log)
          const ann = yield* agent("ann", limits)
          yield* ann.spend(79)
          assert.deepStrictEqual(yield* told(log), [])
          yield* ann.spend(1)
          yield* ann.spend(1)
        })
      )
      const near = [[SHOP, "budget.near", "agent", "total", 80]]
      assert.deepStrictEqual(yield* told(log), near)
      const { agent, board } = yield* open(log)
      const ann = yield* agent("ann", limits)
      yield* ann.spend(1)
      assert.deepStrictEqual(yield* told(log), near, "the next daemon does not say it again")
      assert.deepInclude(board.standing({ conversation: SHOP, agent: "ann" }).near[0], { spent: 82, limit: 100 })
      const alerts = (yield* log.tail({}, 100)).flatMap((rune) => newsOf(rune)?.mail ?? [])
      assert.lengthOf(alerts, 1)
      assert.match(alerts[0]!.headline, /^ann: 80 % of the whole budget of tokens for the agent is spent: 80 of 100$/)
    }).pipe(Effect.scoped)
  )

  it.effect("of a total that begins anew comes anew", () =>
    Effect.gen(function* () {
      yield* noon
      const log = yield* memoryLog
      const { agent, board } = yield* open(log)
      const ann = yield* agent("ann", { agent: { tokens: 100 } })
      yield* ann.spend(80)
      const eventId = (yield* log.head) + 1
      yield* board.began({ conversation: SHOP, agent: "ann" }, { stream: SHOP, seq: 1, eventId })
      yield* ann.spend(79)
      assert.lengthOf(yield* told(log), 1)
      yield* ann.spend(1)
      assert.lengthOf(yield* told(log), 2)
    }).pipe(Effect.scoped)
  )
})

describe("a restart", () => {
  it.effect("loses no count, and counts nothing twice", () =>
    Effect.gen(function* () {
      yield* noon
      const log = yield* memoryLog
      const project = { perDay: { tokens: 100 } }
      for (let life = 0; life < 5; life++)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { agent } = yield* open(log)
            const ann = yield* agent("ann", { project })
            assert.isUndefined(yield* ann.asks)
            yield* ann.spend(19)
          })
        )
      const { agent } = yield* open(log)
      const ann = yield* agent("ann", { project })
      yield* ann.spend(4)
      assert.isUndefined(yield* ann.asks)
      yield* ann.spend(1)
      assert.deepInclude(yield* ann.asks, { spent: 100 })
    }).pipe(Effect.scoped)
  )

  it.effect("numbers that cannot be are no runes, and move no sum", () =>
    Effect.gen(function* () {
      yield* noon
      const log = yield* memoryLog
      const { agent } = yield* open(log)
      const ann = yield* agent("ann", { project: { perDay: { tokens: 100 } } })
      for (const tokens of [Number.NaN, Number.POSITIVE_INFINITY]) {
        const exit = yield* Effect.exit(ann.spend(tokens))
        assert.strictEqual(exit._tag, "Failure")
      }
      assert.isUndefined(yield* ann.asks)
    }).pipe(Effect.scoped)
  )
})
