/**
 * LiveBoard: the current board, and its changes, for all subscribers.
 *
 * Guarantees: without subscribers the board is not read; many subscribers cost little more than one. A rune that
 * changes a row is reported within one pause, and a burst of runes is reported as one change. A change without a rune
 * of its own is reported within two seconds.
 *
 * A rune causes a read of only those rows that it affects. All other rows are read in turns, so that no read delays the
 * subscribers for long. Reads of all rows and reads of some rows each take at most a tenth of a core. A slow subscriber
 * skips older states and receives the newest one.
 */
import { Clock, Duration, Effect, Queue, Stream } from "effect"
import type { Address } from "../domain/AgentPort.ts"
import type { Allowances } from "../domain/SpendingLimits.ts"
import * as Calendar from "../domain/Calendar.ts"
import * as Rows from "../domain/BoardRow.ts"
import type { Board } from "../domain/BoardMessages.ts"
import type { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import * as Monotonic from "../core/supervision/Monotonic.ts"
import { rowsOf, type Spent } from "./BoardList.ts"
import * as BoardSections from "./BoardSections.ts"
import { type Facts, headOf, Shown, Told } from "./SubscriberRows.ts"
import type { Given } from "./WaitingList.ts"

/** Minimum time between two reads of the board, in ms, so that a burst of runes causes only one read. */
const PAUSE = 15
/** Reads of all rows, and reads of some rows, each take at most 1/SHARE of the total time. */
const SHARE = 10
const EVERY = "2 seconds"
/** Number of turns in which every row is read once. */
const TURNS = 5
/** Maximum age of the cached spending, ms. */
const SPENT_FOR = 5_000

export interface Options {
  /** Reads all facts of the board. `all`: includes agents and goals that ended long ago. */
  readonly given: (all: boolean) => Effect.Effect<Given & { readonly startedAt: number }>
  readonly parts: (parts: BoardSections.Parts) => Effect.Effect<BoardSections.News>
  /** Addresses of the live agents. Some become alive without a rune, for example when a daemon restores its state. */
  readonly addresses: Effect.Effect<ReadonlyArray<Address>>
  readonly log: EventLog["Service"]
  readonly allowances: Allowances
  /** Interval at which the board is searched for changes without a rune, such as the end of a wait. */
  readonly every?: Duration.Input
}

interface Today {
  readonly at: number
  readonly of: ReadonlyMap<string, Spent>
}

/** Spending since midnight, by the row id of each agent. */
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

/** The parts of the board to read next, and when to read them. Times are in ms of the monotonic clock. */
class Pace {
  private parts = BoardSections.NOTHING
  /** Earliest time of the next full read, and of the next partial read. */
  private readonly free = { all: 0, some: 0 }

  note(parts: BoardSections.Parts): void {
    this.parts = BoardSections.join(this.parts, parts)
  }

  /** When the next parts must be read; undefined if there are none. */
  get due(): number | undefined {
    const { all, some } = this.free
    const due = [...(this.parts.all ? [all] : []), ...(BoardSections.hasSome(this.parts) ? [some] : [])]
    return due.length === 0 ? undefined : Math.min(...due)
  }

  /** Returns the parts that are due now, and removes them from the list. */
  take(now: number): BoardSections.Parts {
    const { parts } = this
    const isAll = parts.all && this.free.all <= now
    this.parts = isAll || !parts.all ? BoardSections.NOTHING : BoardSections.ALL
    return isAll ? BoardSections.ALL : { ...parts, all: false }
  }

  looked({ all, inTurn }: BoardSections.Parts, began: number, ended: number): void {
    const rest = Math.max(PAUSE, (ended - began) * SHARE)
    // a read in turn can wait for disks, and its duration must not delay the reads that runes cause
    this.free.some = ended + (all || inTurn ? PAUSE : rest)
    if (all) this.free.all = ended + rest
  }
}

export const make = Effect.fnUntraced(function* ({ addresses, allowances, every = EVERY, given, log, parts }: Options) {
  const today = spending(allowances)

  const factsOf = Effect.fnUntraced(function* (all: boolean) {
    const spent = yield* today
    return { ...(yield* given(all)), all, today: spent } satisfies Facts
  })

  const now = Effect.fnUntraced(function* (all: boolean) {
    const facts = yield* factsOf(all)
    const at = yield* Clock.currentTimeMillis
    return { head: headOf(facts, yield* log.head), rows: rowsOf(facts, at) } satisfies Board
  })

  /** The board after each read. All elements are the same object. */
  const looks = Stream.callback<Shown, StorageError>(
    Effect.fnUntraced(function* (queue) {
      const pace = new Pace()
      const noted = yield* Queue.sliding<void>(1)
      const note = (parts: BoardSections.Parts) =>
        Effect.suspend(() => {
          pace.note(parts)
          return Queue.offer(noted, undefined)
        })
      const runes = log.subscribe({ after: yield* log.head })
      const heard = Stream.runForEachArray(runes, (runes) => note(BoardSections.touched(runes)))
      const shown = new Shown()
      let facts: Facts | undefined
      let turns = 0
      const passed = Stream.runForEach(Stream.tick(Duration.millis(Duration.toMillis(every) / TURNS)), () =>
        Effect.flatMap(addresses, (living) =>
          note(
            facts === undefined
              ? BoardSections.ALL
              : BoardSections.turn({ known: facts.agents, living }, turns++, TURNS)
          )
        )
      )

      const look = Effect.fnUntraced(function* (began: number) {
        // a rune is published before its actors have moved to their new state, in the same turn of the event loop
        yield* Effect.yieldNow
        const taken = pace.take(began)
        const rune = yield* log.head
        facts =
          taken.all || facts === undefined
            ? yield* factsOf(false)
            : { ...BoardSections.withNews(facts, yield* parts(taken)), today: yield* today }
        shown.take(facts, yield* Clock.currentTimeMillis, rune)
        pace.looked(taken, began, yield* Monotonic.now)
        yield* Queue.offer(queue, shown)
      })
      const looking = Effect.gen(function* () {
        const at = yield* Monotonic.now
        const { due } = pace
        if (due === undefined) yield* Queue.take(noted)
        else if (due > at) yield* Effect.raceFirst(Queue.take(noted), Effect.sleep(due - at))
        else yield* look(at)
      })
      yield* Effect.all([heard, passed, Effect.forever(looking)], { concurrency: "unbounded", discard: true })
    }),
    { bufferSize: 1, strategy: "sliding" }
  )
  const shared = yield* Stream.share(looks, { capacity: 1, strategy: "sliding", replay: 1 })

  return {
    now,
    /** The whole board at first, then its changes. */
    news: Stream.suspend(() => {
      const told = new Told()
      return Stream.flatMap(shared, (shown) => Stream.fromIterable(told.news(shown)))
    })
  }
})
export type LiveBoard = Effect.Success<ReturnType<typeof make>>
