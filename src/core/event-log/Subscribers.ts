/**
 * Subscribers: the subscribers that follow the log across restarts. Each subscriber has a name, and a position up to
 * which it has handled its matching runes.
 *
 * Guarantees: each matching rune is passed to the subscriber at least once, across all restarts. After a restart, a
 * subscriber continues at its saved position, whether or not the earlier runes had any effect. Positions are saved
 * without waiting for the disk, so a subscriber can get some runes again after a crash. A position that names no rune
 * of this store is ignored. A rune that cannot be read, or on which the subscriber crashes, is skipped and reported.
 * Otherwise the same rune would crash the subscriber after each restart.
 */
import { Cause, Effect } from "effect"
import type { Selection, StorageError } from "./EventLog.ts"
import type { LogReader } from "./LogReader.ts"
import type { RecentEvents } from "./RecentEvents.ts"
import type { Rune } from "./Rune.ts"

/**
 * Number of runes of the log after which a subscriber's position is saved. It is also saved when the subscriber ends.
 */
const KEEP_EVERY = 1_024

/** A subscriber's saved position, with the hash of the rune at this position. */
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
  /** The rune that is skipped; undefined if it cannot be read. */
  readonly rune: Rune | undefined
  readonly message: string
}

/**
 * Maximum number of consecutive runes that are skipped because a subscriber crashes on them. If it crashes on more, the
 * runes are not the cause.
 */
const MAX_SKIPPED = 20

interface Of {
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

  /** Passes matching runes to `handle` until the log is closed. */
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

  /** Reads the next piece of runes, and skips a rune whose payload is damaged. */
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

  /** Passes all runes at once; after a crash, one by one, to find the rune on which the subscriber crashes. */
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
