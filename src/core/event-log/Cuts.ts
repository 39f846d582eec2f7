/**
 * Cuts: decides where a repair truncates the streams of a damaged store. Each stream keeps the runes before its first
 * damaged rune.
 *
 * Guarantees: a lazy rune with a damaged payload loses only the payload, because no state depends on it. The home
 * stream is a list of independent facts, so it loses only its damaged runes. `Cuts` does not change the store.
 */
import { breaksOf, type Link, PAYLOAD } from "./ChainWalk.ts"
import { ERASED } from "./Erasure.ts"
import { hashPayload } from "./HashChain.ts"
import { fromRow, type RuneRow } from "./RuneRow.ts"
import type { SegmentHead } from "./SegmentFile.ts"
import type { Segments } from "./Segments.ts"
import type { Database } from "./Sqlite.ts"

/**
 * Point at which a stream is cut. Runes up to `eventId` are kept, and later runes are lost. In the home stream, only
 * the damaged runes after this point are lost.
 */
export interface Cut {
  readonly stream: string
  /** eventId of the last rune that is kept; 0 if no rune is kept. */
  readonly eventId: number
  readonly seq: number
  readonly reason: string
  /** Number of lost runes that are still readable. */
  lost: number
}

/** A position in the log, with its rune. `row` is undefined if the rune cannot be read. */
export interface Place {
  readonly eventId: number
  readonly row: RuneRow | undefined
}

export interface Options {
  readonly home: string
  readonly isLazy: (kind: string) => boolean
  /** Hash of the payload that remained after an erasure, by the eventId of the erased rune. */
  readonly erasures: ReadonlyMap<number, string>
  /** If a user's setting has deleted old runes: each stream's newest deleted rune, after which it continues. */
  readonly begins?: ReadonlyArray<SegmentHead>
  /** The only stream to check; if omitted, all streams are checked. */
  readonly only?: string | undefined
  /** Returns the reason why a rune with a valid hash chain cannot be folded; undefined if it can be folded. */
  readonly folds?: (row: RuneRow) => string | undefined
}

const PAGE = 500

export class Cuts {
  private readonly of: Options
  private readonly links = new Map<string, Link>()
  /** Damaged runes of the home stream. */
  private readonly damaged = new Set<number>()
  private readonly textless = new Set<number>()
  readonly cuts = new Map<string, Cut>()
  /** Number of runes that cannot be read. */
  unknown = 0
  lost = 0
  /** The first position where a rune or a payload is lost; Infinity if nothing is lost. */
  first = Number.POSITIVE_INFINITY
  /** Message about missing acknowledged runes, which a repair cannot restore; undefined if none are missing. */
  behind: string | undefined

  constructor(of: Options) {
    this.of = of
    for (const { eventId, hash, seq, stream } of of.begins ?? []) this.links.set(stream, { eventId, seq, hash })
  }

  get isWell(): boolean {
    return this.lost === 0 && this.textless.size === 0 && this.behind === undefined
  }

  /** eventIds of the lazy runes that lose their payloads. */
  get blanked(): ReadonlyArray<number> {
    return [...this.textless]
  }

  isBlanked({ event_id }: RuneRow): boolean {
    return this.textless.has(event_id)
  }

  isLost({ event_id, stream }: RuneRow): boolean {
    const cut = this.cuts.get(stream)
    if (stream === this.of.home) return this.damaged.has(event_id)
    return cut !== undefined && event_id > cut.eventId
  }

  /** Call this for all positions, in order. */
  next({ eventId, row }: Place): void {
    if (row === undefined) {
      this.unknown += 1
      this.lose(eventId)
      return
    }
    const { home, isLazy, only } = this.of
    const { kind, stream } = row
    const cut = this.cuts.get(stream)
    const before = this.links.get(stream)
    this.links.set(stream, { eventId, seq: row.seq, hash: row.hash })
    if (only !== undefined && stream !== only) return
    if (cut !== undefined && stream !== home) {
      cut.lost += 1
      this.lose(eventId)
      return
    }
    // after a damaged rune of the home stream, do not compare the next seq, because the damaged seq is useless
    const reason = this.wrong(row, cut === undefined || before === undefined ? before : { ...before, seq: row.seq - 1 })
    if (reason === undefined) return
    if (reason === PAYLOAD && isLazy(kind)) {
      this.textless.add(eventId)
      this.first = Math.min(this.first, eventId)
      return
    }
    if (stream === home) this.damaged.add(eventId)
    if (cut === undefined) {
      const { eventId: last = 0, seq = 0 } = before ?? {}
      const isUntold = reason === PAYLOAD && !this.of.erasures.has(eventId) && row.payload?.includes(`"${ERASED}"`)
      const erased = isUntold === true ? "; its text may have been erased, and no rune says so any more" : ""
      this.cuts.set(stream, { stream, eventId: last, seq, reason: `rune ${eventId}: ${reason}${erased}`, lost: 1 })
    } else cut.lost += 1
    this.lose(eventId)
  }

  private lose(eventId: number): void {
    this.lost += 1
    this.first = Math.min(this.first, eventId)
  }

  private wrong(row: RuneRow, before: Link | undefined): string | undefined {
    const [broken] = breaksOf(fromRow(row), before)
    if (broken !== undefined) return broken.message
    const { event_id, payload, payload_hash } = row
    if (payload !== null) {
      const hash = hashPayload(payload)
      if (hash !== payload_hash && this.of.erasures.get(event_id) !== hash) return PAYLOAD
    }
    return this.of.folds?.(row)
  }
}

/** Hash of each payload that remained after an erasure, by eventId, read from intact runes of the home stream. */
export const erasuresIn = (places: Iterable<Place>, home: string): ReadonlyMap<number, string> => {
  const found = new Map<number, string>()
  for (const { row } of places) {
    if (row?.stream !== home || row.kind !== "rune.erasing" || row.payload === null) continue
    if (hashPayload(row.payload) !== row.payload_hash) continue
    const { eventId, left } = JSON.parse(row.payload) as { readonly eventId: number; readonly left: string }
    found.set(eventId, left)
  }
  return found
}

const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    // the read failed, so report the positions without their rows
    return undefined
  }
}

/** All positions in the segments after the position `after`, in order. */
export function* inSegments(segments: Segments, after: number): Generator<Place> {
  for (const { content, first, last } of segments.open) {
    if (last <= after) continue
    let next = first
    const footer = attempt(() => content.footer)
    for (let block = 0; block < (footer?.blocks.length ?? 0); block++) {
      for (const row of attempt(() => content.rows(block)) ?? []) {
        if (row.event_id < next || row.event_id > last) continue
        for (; next < row.event_id; next++) yield { eventId: next, row: undefined }
        yield { eventId: next++, row }
      }
    }
    for (; next <= last; next++) yield { eventId: next, row: undefined }
  }
}

function* inTable(database: Database, after: number, head: number): Generator<Place> {
  const page = database.prepare(`SELECT * FROM runes WHERE event_id > ? AND event_id <= ? ORDER BY event_id`)
  const one = database.prepare("SELECT * FROM runes WHERE event_id = ?")
  const found = new Map<number, RuneRow>()
  for (let from = after; from < head; from += PAGE) {
    const upTo = Math.min(from + PAGE, head)
    found.clear()
    const rows = attempt(() => page.all(from, upTo) as unknown as ReadonlyArray<RuneRow>)
    for (const row of rows ?? []) found.set(row.event_id, row)
    for (let eventId = from + 1; eventId <= upTo; eventId++) {
      // if a page cannot be read as a whole, its runes are read one by one
      const row =
        rows === undefined ? attempt(() => one.get(eventId) as unknown as RuneRow | undefined) : found.get(eventId)
      yield { eventId, row: row?.event_id === eventId ? row : undefined }
    }
  }
}

/** The last position in the store, from the table `head`; if the head is damaged, from the newest row. */
export const headOf = (database: Database): number => {
  const said = attempt(() => database.prepare("SELECT event_id AS last FROM head").get()?.["last"])
  const seen = attempt(() => database.prepare("SELECT max(event_id) AS last FROM runes").get()?.["last"])
  const [a, b] = [Number(said ?? 0), Number(seen ?? 0)]
  // a head that is below the newest row, or far above it, is damaged and ignored
  return b > 0 && (a < b || a > b + 1_000_000) ? b : a
}

/**
 * All positions of a store after the position `after`, in order. By default, runes that a user's setting has deleted
 * are skipped, because they are not lost.
 */
export function* placesIn(database: Database, segments: Segments, after = segments.deleted): Generator<Place> {
  yield* inSegments(segments, after)
  yield* inTable(database, Math.max(after, segments.last), headOf(database))
}
