/**
 * Subscribers: who follows the log over restarts, each by name, with the position up to
 * which it has taken what it follows.
 *
 * Guarantees: each rune that matches is handed over at least once over all restarts; a
 * start goes on at the position, whatever was or was not done with the runes before it.
 * Positions are kept without a wait for the disk: after a crash a subscriber hears some
 * runes again. A position that names no rune of this store is none. A rune that cannot be
 * read, and one on which the subscriber crashes, is passed over, and that is said: the same
 * rune would end each of its lives.
 */
import { Cause, Effect } from "effect"
import type { Selection, StorageError } from "./EventLog.ts"
import type { LogReader } from "./LogReader.ts"
import type { RecentEvents } from "./RecentEvents.ts"
import type { Rune } from "./Rune.ts"

/** A position is kept after so many runes of the log, and when the subscriber ends. */
const KEEP_EVERY = 1_024

/** A position as it is kept: with the hash of its rune. */
export interface Position {
  readonly eventId: number
  readonly hash: string
}

export interface Positions {
  readonly get: (name: string) => Effect.Effect<Position | undefined, StorageError>
  readonly keep: (name: string, eventId: number) => void
}

interface Piece {
  readonly runes: ReadonlyArray<Rune>
  readonly cursor: number
}

export interface Skipped {
  readonly subscriber: string
  readonly eventId: number
  /** Undefined for one that cannot be read. */
  readonly rune: Rune | undefined
  readonly message: string
}

/** Runes that a subscriber crashes on one after the other: then it is not the runes. */
const MAX_SKIPPED = 20

interface Of {
  /** Says that a rune was passed over. */
  readonly skipped: (skipped: Skipped) => Effect.Effect<void>
  readonly positions: Positions
  readonly reader: LogReader
  readonly recent: RecentEvents
  readonly page: (selection: Selection, after: number, upTo: number) => Effect.Effect<Piece, StorageError>
}

export class Subscribers {
  private readonly inARow = new Map<string, number>()
  private readonly of: Of

  constructor(of: Of) {
    this.of = of
  }

  /** Ends with the log. */
  readonly follow = <E, R>(
    name: string,
    selection: Selection,
    handle: (runes: ReadonlyArray<Rune>) => Effect.Effect<void, E, R>
  ): Effect.Effect<void, E | StorageError, R> =>
    Effect.gen({ self: this }, function* () {
      let kept = yield* this.position(name)
      let cursor = Math.max(kept, selection.after ?? 0)
      const keep = () => {
        if (cursor > kept) this.of.positions.keep(name, cursor)
        kept = cursor
      }
      const following = Effect.gen({ self: this }, function* () {
        while (yield* this.of.recent.beyond(cursor)) {
          const piece = yield* this.readable(name, selection, cursor, this.of.recent.head)
          if (piece.runes.length > 0) yield* this.handed(name, piece.runes, handle)
          cursor = piece.cursor
          if (cursor - kept >= KEEP_EVERY) keep()
        }
      })
      yield* Effect.ensuring(following, Effect.sync(keep))
    })

  /** The next piece without a rune whose payload is damaged. */
  private readable(
    subscriber: string,
    selection: Selection,
    after: number,
    upTo: number
  ): Effect.Effect<Piece, StorageError> {
    return Effect.catchIf(
      this.of.page(selection, after, upTo),
      ({ reason }) => reason === "corrupt",
      (error) =>
        upTo - after > 1
          ? this.readable(subscriber, selection, after, after + ((upTo - after) >> 1))
          : Effect.as(this.of.skipped({ subscriber, eventId: upTo, rune: undefined, message: error.message }), {
              runes: [],
              cursor: upTo
            })
    )
  }

  /** All at once; after a crash one by one, so that the rune that it crashes on is known. */
  private handed<E, R>(
    subscriber: string,
    runes: ReadonlyArray<Rune>,
    handle: (runes: ReadonlyArray<Rune>) => Effect.Effect<void, E, R>
  ): Effect.Effect<void, E, R> {
    const well = Effect.tap(
      Effect.suspend(() => handle(runes)),
      Effect.sync(() => this.inARow.delete(subscriber))
    )
    return Effect.catchDefect(well, (defect) => {
      const inARow = this.inARow.get(subscriber) ?? 0
      if (inARow >= MAX_SKIPPED) return Effect.die(defect)
      const [rune] = runes
      if (rune === undefined || runes.length > 1) {
        return Effect.forEach(runes, (one) => this.handed(subscriber, [one], handle), { discard: true })
      }
      const message = Cause.pretty(Cause.die(defect)).split("\n")[0]!
      this.inARow.set(subscriber, inARow + 1)
      return this.of.skipped({ subscriber, eventId: rune.eventId, rune, message })
    })
  }

  private position(name: string): Effect.Effect<number, StorageError> {
    return Effect.gen({ self: this }, function* () {
      const position = yield* this.of.positions.get(name)
      if (position === undefined) return 0
      const [rune] = yield* this.of.reader.at([position.eventId])
      return rune?.hash === position.hash ? position.eventId : 0
    })
  }
}
