/**
 * Subscribers: who follows the log over restarts, each by name, with the position up to
 * which it has taken what it follows.
 *
 * Guarantees: each rune that matches is handed over at least once over all restarts; a
 * start goes on at the position, whatever was or was not done with the runes before it.
 * Positions are kept without a wait for the disk: after a crash a subscriber hears some
 * runes again. A position that names no rune of this store is none.
 */
import { Effect } from "effect"
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

/** Where positions are kept. */
export interface Positions {
  readonly get: (name: string) => Effect.Effect<Position | undefined, StorageError>
  readonly keep: (name: string, eventId: number) => void
}

interface Piece {
  readonly runes: ReadonlyArray<Rune>
  readonly cursor: number
}

export class Subscribers {
  private readonly positions: Positions
  private readonly reader: LogReader
  private readonly recent: RecentEvents
  private readonly page: (selection: Selection, after: number, upTo: number) => Effect.Effect<Piece, StorageError>

  constructor(of: {
    readonly positions: Positions
    readonly reader: LogReader
    readonly recent: RecentEvents
    readonly page: (selection: Selection, after: number, upTo: number) => Effect.Effect<Piece, StorageError>
  }) {
    this.positions = of.positions
    this.reader = of.reader
    this.recent = of.recent
    this.page = of.page
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
        if (cursor > kept) this.positions.keep(name, cursor)
        kept = cursor
      }
      const following = Effect.gen({ self: this }, function* () {
        while (yield* this.recent.beyond(cursor)) {
          const piece = yield* this.page(selection, cursor, this.recent.head)
          if (piece.runes.length > 0) yield* handle(piece.runes)
          cursor = piece.cursor
          if (cursor - kept >= KEEP_EVERY) keep()
        }
      })
      yield* Effect.ensuring(following, Effect.sync(keep))
    })

  private position(name: string): Effect.Effect<number, StorageError> {
    return Effect.gen({ self: this }, function* () {
      const position = yield* this.positions.get(name)
      if (position === undefined) return 0
      const [rune] = yield* this.reader.at([position.eventId])
      return rune?.hash === position.hash ? position.eventId : 0
    })
  }
}
