/** Tests of the board as it changes, over a real log. */
import { assert, describe, it } from "@effect/vitest"
import { type Duration, Effect, Fiber, Queue, Stream } from "effect"
import { layerMemory } from "../../../src/app/DaemonLog.ts"
import type { BoardNews } from "../../../src/domain/BoardMessages.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as LiveBoard from "../../../src/board/LiveBoard.ts"
import type * as BoardSections from "../../../src/board/BoardSections.ts"
import type { Given } from "../../../src/board/WaitingList.ts"
import { agentInfo, draft, factsOf, nothingWaits, T0 } from "../../world/rpc/World.ts"

const SPENT = { conversation: "web-1a2b3c4d", agent: "builder", day: "", model: "", goal: "" }
const cost = { ...SPENT, input: 100, output: 20, cacheRead: 0, cacheWrite: 0, usd: 0.5, unpriced: 0 }

const standing = Effect.fnUntraced(function* (every: Duration.Input) {
  const log = yield* EventLog
  let agents = [agentInfo(), agentInfo({ agent: "tester" })]
  let looks = 0
  const given = () =>
    Effect.sync((): Given & { startedAt: number } => {
      looks++
      return { ...nothingWaits, agents, startedAt: T0 }
    })
  const allowances = { costs: () => Effect.succeed([cost]) } as never
  const read: Array<string> = []
  const parts = ({ agents: some }: BoardSections.Parts) =>
    Effect.sync((): BoardSections.News => {
      read.push(...some.keys())
      return { agents: [...some.values()].map((one) => factsOf({ agents, backlog: [], calls: [] }, one)) }
    })
  const board = yield* LiveBoard.make({ given, parts, addresses: Effect.sync(() => agents), log, allowances, every })
  return {
    board,
    /** Rows that were read alone. */
    read,
    looks: () => looks,
    become: (next: typeof agents, runes = 1) =>
      Effect.andThen(
        Effect.sync(() => (agents = next)),
        runes === 0 ? Effect.void : log.append(Array.from({ length: runes }, () => draft()))
      )
  }
})

const made = standing("1 hour")

const watching = Effect.fnUntraced(function* (board: LiveBoard.LiveBoard) {
  const heard = yield* Queue.unbounded<BoardNews>()
  const fiber = yield* Effect.forkScoped(Stream.runForEach(board.news, (news) => Queue.offer(heard, news)))
  return { next: Queue.take(heard), fiber, left: Queue.size(heard) }
})

describe("the live board", () => {
  it.live("tells all of it first, then what changed and what is gone, to each who watches", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { become, board, read } = yield* made
        const one = yield* watching(board)
        const first = yield* one.next
        assert.deepStrictEqual(
          first.rows.map(({ name }) => name),
          ["builder", "tester"]
        )
        assert.deepStrictEqual(first.rows[0]?.today, { tokens: 120, usd: 0.5 })
        assert.deepStrictEqual(first.head.today, { tokens: 120, usd: 0.5 })
        yield* become([agentInfo({ word: "failed" }), agentInfo({ agent: "tester" })])
        const second = yield* one.next
        assert.deepStrictEqual(
          second.rows.map(({ name, word }) => [name, word]),
          [["builder", "failed"]]
        )
        const other = yield* watching(board)
        assert.lengthOf((yield* other.next).rows, 2)
        assert.include(read, "agent/web-1a2b3c4d/builder")
        assert.notInclude(read, "agent/web-1a2b3c4d/tester")
        yield* become([agentInfo({ agent: "tester" })])
        for (const who of [one, other]) {
          const { gone, rows } = yield* who.next
          assert.deepStrictEqual([rows, gone], [[], ["agent/web-1a2b3c4d/builder"]])
        }
      })
    ).pipe(Effect.provide(layerMemory))
  )

  it.live("tells what no rune tells, too", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { become, board, looks } = yield* standing("50 millis")
        const one = yield* watching(board)
        yield* one.next
        yield* become([agentInfo(), agentInfo({ agent: "tester", detail: "nothing was heard of it" })], 0)
        const { rows } = yield* one.next
        assert.deepStrictEqual(
          rows.map(({ name, says }) => [name, says]),
          [["tester", "nothing was heard of it"]]
        )
        assert.strictEqual(looks(), 1)
      })
    ).pipe(Effect.provide(layerMemory))
  )

  it.live("tells of agents that come without a rune, also to a board that had none", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { become, board, looks } = yield* standing("50 millis")
        yield* become([], 0)
        const one = yield* watching(board)
        assert.lengthOf((yield* one.next).rows, 0)
        yield* become([agentInfo(), agentInfo({ agent: "tester" })], 0)
        const { rows } = yield* one.next
        assert.deepStrictEqual(
          rows.map(({ name }) => name),
          ["builder", "tester"]
        )
        assert.strictEqual(looks(), 1)
      })
    ).pipe(Effect.provide(layerMemory))
  )

  it.live("costs nothing while nobody watches, and a burst of runes is few looks", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { become, board, looks } = yield* made
        yield* become([agentInfo()])
        assert.strictEqual(looks(), 0)
        const one = yield* watching(board)
        yield* one.next
        const before = looks()
        yield* become([agentInfo({ detail: "the last step" })], 500)
        assert.strictEqual((yield* one.next).rows[0]?.says, "the last step")
        assert.isBelow(looks() - before, 50)
        yield* Fiber.interrupt(one.fiber)
        const after = looks()
        yield* become([])
        assert.strictEqual(looks(), after)
      })
    ).pipe(Effect.provide(layerMemory))
  )
})
