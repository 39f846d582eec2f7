/**
 * SegmentReader: reads a log whose oldest runes were moved to segments. These runes are read from the segments, newer
 * ones from the store. Callers see a single log.
 *
 * Guarantees: a call reads a bounded number of runes in segments, and yields between blocks. If a file is damaged or
 * missing, the call fails with a StorageError that names the file. Runes of segments that a user's setting has deleted
 * are not returned.
 */
import { Effect } from "effect"
import { StorageError } from "./EventLog.ts"
import type { LogReader, Page } from "./LogReader.ts"
import { fromRow } from "./RuneRow.ts"
import type { Segments } from "./Segments.ts"
import { PAGE_ROWS } from "./SqlReader.ts"
import { matches, type StoredRune } from "./StoredRune.ts"

/** Maximum number of runes that one call reads from segments. */
const SPAN = 2_048

/** Number of runes that a call looks up before it yields to other work. Each rune can be in a different block. */
const LOOKS = 8

const failed = (cause: unknown): StorageError =>
  new StorageError({
    reason: "corrupt",
    message: `A segment of the log cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
    remedy: "Put the file back from a backup; `agentd verify` says which runes it holds."
  })

const attempt = <A>(read: () => A): Effect.Effect<A, StorageError> => Effect.try({ try: read, catch: failed })

export class SegmentReader implements LogReader {
  private readonly reader: LogReader
  private readonly segments: () => Segments
  readonly lastCommitted: LogReader["lastCommitted"]

  constructor(reader: LogReader, segments: () => Segments) {
    this.reader = reader
    this.segments = segments
    this.lastCommitted = reader.lastCommitted
  }

  readonly at: LogReader["at"] = (positions) =>
    Effect.suspend(() => {
      const segments = this.segments()
      const { last } = segments
      const newer = positions.filter((position) => position > last)
      if (newer.length === positions.length) return this.reader.at(positions)
      return Effect.zipWith(
        this.found(
          positions.filter((position) => position <= last),
          Number.MAX_SAFE_INTEGER,
          () => true
        ),
        newer.length === 0 ? Effect.succeed([]) : this.reader.at(newer),
        (older, rest) => [...older, ...rest]
      )
    })

  private readonly found = Effect.fnUntraced(
    { self: this },
    function* (
      this: SegmentReader,
      positions: ReadonlyArray<number>,
      count: number,
      wanted: (rune: StoredRune) => boolean
    ) {
      const runes: Array<StoredRune> = []
      for (const [index, position] of positions.entries()) {
        if (runes.length === count) break
        const rune = yield* attempt(() => this.segments().at(position))
        if (rune !== undefined && wanted(rune)) runes.push(rune)
        if (index % LOOKS === LOOKS - 1) yield* Effect.yieldNow
      }
      return runes
    }
  )

  /** Follows the chain of a stream back from one of its runes within the segments, newest rune first. */
  private readonly back = Effect.fnUntraced(
    { self: this },
    function* (this: SegmentReader, newest: number, after: number, count: number, each: (rune: StoredRune) => void) {
      let next = newest
      for (let found = 0; next > after && found < count; found++) {
        const rune = yield* attempt(() => this.segments().at(next))
        // the rune was deleted by a user's setting
        if (rune === undefined) return
        each(rune)
        next = rune.prev
        if (found % LOOKS === LOOKS - 1) yield* Effect.yieldNow
      }
    }
  )

  /**
   * Position of the rune that precedes, in its stream, the oldest rune read from the store (`oldest`). Returns `newest`
   * if no rune was read from the store.
   */
  private readonly older = Effect.fnUntraced(
    { self: this },
    function* (this: SegmentReader, oldest: number | undefined, newest: number) {
      if (oldest === undefined) return newest
      const [rune] = yield* this.reader.at([oldest])
      return rune?.prev ?? 0
    }
  )

  readonly page: LogReader["page"] = (selection, after, upTo) =>
    Effect.suspend(() => {
      const segments = this.segments()
      if (after >= segments.last) return this.reader.page(selection, after, upTo)
      return attempt((): Page => {
        const runes: Array<StoredRune> = []
        let cursor = after
        const end = Math.min(upTo, segments.last)
        for (let looked = 0; cursor < end && looked < SPAN;) {
          const rows = segments.after(cursor)
          if (rows.length === 0 || rows[0]!.event_id > end) return { runes, cursor: end }
          for (const row of rows) {
            if (row.event_id > end || runes.length === PAGE_ROWS) break
            cursor = row.event_id
            looked += 1
            const rune = fromRow(row)
            if (matches(selection, rune)) runes.push(rune)
          }
          if (runes.length === PAGE_ROWS) break
        }
        return { runes, cursor }
      })
    })

  readonly pageBack: LogReader["pageBack"] = (selection, before, downTo, count) =>
    Effect.suspend(() => {
      const segments = this.segments()
      if (before > segments.last) return this.reader.pageBack(selection, before, Math.max(downTo, segments.last), count)
      return attempt((): Page => {
        const runes: Array<StoredRune> = []
        const limit = Math.min(count, PAGE_ROWS)
        let cursor = before
        for (let looked = 0; cursor > downTo && looked < SPAN && runes.length < limit;) {
          const rows = segments.before(cursor)
          if (rows.length === 0) return { runes, cursor: downTo }
          for (const row of rows.toReversed()) {
            if (row.event_id <= downTo || runes.length === limit) break
            cursor = row.event_id - 1
            looked += 1
            const rune = fromRow(row)
            if (matches(selection, rune)) runes.push(rune)
          }
          if (rows[0]!.event_id <= downTo) break
        }
        return { runes, cursor: Math.max(downTo, cursor) }
      })
    })

  readonly positions: LogReader["positions"] = Effect.fnUntraced(
    { self: this },
    function* (this: SegmentReader, newest, after, count) {
      const { last } = this.segments()
      const stored = newest > last ? yield* this.reader.positions(newest, Math.max(after, last), count) : []
      const found: Array<number> = []
      if (stored.length < count && after < last) {
        yield* this.back(yield* this.older(stored[0], newest), after, count - stored.length, ({ eventId }) =>
          found.push(eventId)
        )
      }
      return [...found.toReversed(), ...stored]
    }
  )

  readonly pages: LogReader["pages"] = Effect.fnUntraced(
    { self: this },
    function* (this: SegmentReader, newest, after) {
      const { last } = this.segments()
      const stored = newest > last ? yield* this.reader.pages(newest, Math.max(after, last)) : []
      if (after >= last) return stored
      const pages: Array<Array<number>> = [[]]
      yield* this.back(yield* this.older(stored[0]?.[0], newest), after, Number.MAX_SAFE_INTEGER, ({ eventId }) => {
        const page = pages.at(-1)!
        if (page.length < PAGE_ROWS) page.push(eventId)
        else pages.push([eventId])
      })
      const found = pages.toReversed().map((page) => page.toReversed())
      return [...found.filter((page) => page.length > 0), ...stored.filter((page) => page.length > 0)]
    }
  )

  readonly newest: LogReader["newest"] = (positions, selection, count) =>
    Effect.gen({ self: this }, function* () {
      const { last } = this.segments()
      const newer = positions.filter((position) => position > last)
      const runes = newer.length === 0 ? [] : yield* this.reader.newest(newer, selection, count)
      if (runes.length >= count || newer.length === positions.length) return runes
      const older = positions.filter((position) => position <= last).toReversed()
      return [...runes, ...(yield* this.found(older, count - runes.length, (rune) => matches(selection, rune)))]
    })
}
