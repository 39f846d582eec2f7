/**
 * LiveBoard: the board as it is, and as it changes, for all who watch it.
 *
 * Guarantees: while nobody watches it costs nothing; many who watch cost as much as one; a rune that changes a row is
 * told within one pause, and a burst of them as one; it takes at most a tenth of a core. Whoever reads slowly is told
 * the newest, and misses nothing of it.
 */
import { Clock, Effect, Stream } from "effect"
import type { Allowances } from "../domain/Allowance.ts"
import * as Calendar from "../domain/Calendar.ts"
import * as Rows from "../domain/BoardRow.ts"
import type { Board, BoardNews, BoardRow } from "../domain/BoardMessages.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import * as Monotonic from "../supervision/Monotonic.ts"
import { newsOf, rowsOf, type Spent } from "./BoardList.ts"
import type { Given } from "./WaitingList.ts"

/** Least ms between two looks, so that a burst of runes is one look. */
const PAUSE = 30
/** A look takes at most one part in so many of the time. */
const SHARE = 10
/** Changes without a rune (a silence, the end of a wait) are looked for so often. */
const LOOK = "2 seconds"
/** So old, ms, may be what was spent. */
const SPENT_FOR = 5_000

export interface Options {
  /** `all`: with what ended long ago. */
  readonly given: (all: boolean) => Effect.Effect<Given & { readonly startedAt: number }>
  readonly log: EventLog["Service"]
  readonly allowances: Allowances
}

interface Today {
  readonly at: number
  readonly of: ReadonlyMap<string, Spent>
}

/** Spending since midnight, by the agents' rows. */
const spending = (allowances: Allowances) => {
  let known: Today | undefined
  return Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (known !== undefined && Math.abs(now - known.at) < SPENT_FOR) return known.of
    const of = new Map<string, Spent>()
    for (const cost of yield* allowances.costs(Calendar.dayOf(now))) {
      const id = Rows.ofAgent(cost)
      const { tokens, usd } = of.get(id) ?? { tokens: 0, usd: 0 }
      of.set(id, { tokens: tokens + cost.input + cost.output, usd: usd + cost.usd })
    }
    known = { at: now, of }
    return of
  })
}

const sum = (all: Iterable<Spent>): Spent => {
  let tokens = 0
  let usd = 0
  for (const one of all) {
    tokens += one.tokens
    usd += one.usd
  }
  return { tokens, usd }
}

type Shown = ReadonlyMap<string, BoardRow>

/** The news of one who has seen `seen`; what is the same object is the same row. */
const told = (seen: Shown | undefined, { head, rows }: Board): readonly [Shown, ReadonlyArray<BoardNews>] => {
  const now = new Map(rows.map((row) => [row.id, row]))
  const changed = rows.filter((row) => seen?.get(row.id) !== row)
  const gone = [...(seen?.keys() ?? [])].filter((id) => !now.has(id))
  const isNothing = seen !== undefined && changed.length + gone.length === 0
  return [now, isNothing ? [] : [{ head, rows: changed, gone }]]
}

export const make = Effect.fnUntraced(function* ({ allowances, given, log }: Options) {
  const today = spending(allowances)

  const rows = Effect.fnUntraced(function* (all: boolean) {
    const spent = yield* today
    const now = yield* Clock.currentTimeMillis
    const found = { ...(yield* given(all)), all, today: spent }
    const head = { rune: yield* log.head, startedAt: found.startedAt, today: sum(spent.values()) }
    return { head, rows: rowsOf(found, now) } satisfies Board
  })

  /** Rows that are what they were stay the same objects. */
  const looks = Stream.suspend(() => {
    let before: Shown = new Map()
    /** By the monotonic clock, ms: the next look begins not before. */
    let free = 0
    return Stream.unwrap(
      Effect.map(log.head, (after) =>
        Stream.merge(Stream.as(Stream.chunks(log.subscribe({ after })), undefined), Stream.tick(LOOK)).pipe(
          Stream.buffer({ capacity: 1, strategy: "sliding" }),
          Stream.mapEffect(() =>
            Effect.gen(function* () {
              const asked = yield* Monotonic.now
              if (asked < free) yield* Effect.sleep(free - asked)
              const start = yield* Monotonic.now
              const board = yield* rows(false)
              const { rows: changed } = newsOf(before, board.rows)
              const fresh = new Set(changed.map(({ id }) => id))
              const kept = board.rows.map((row) => (fresh.has(row.id) ? row : before.get(row.id)!))
              before = new Map(kept.map((row) => [row.id, row]))
              const end = yield* Monotonic.now
              free = end + Math.max(PAUSE, (end - start) * SHARE)
              return { head: board.head, rows: kept } satisfies Board
            })
          )
        )
      )
    )
  })
  const shared = yield* Stream.share(looks, { capacity: 1, strategy: "sliding", replay: 1 })

  return {
    now: rows,
    /** All of it first, then what changes. */
    news: Stream.mapAccum(
      shared,
      (): Shown | undefined => undefined,
      (seen, board) => told(seen, board)
    )
  }
})
export type LiveBoard = Effect.Success<ReturnType<typeof make>>
