/**
 * RepairPlan: what of a damaged store can stay: rune by rune, in order, as the chains say.
 *
 * Guarantees: a stream is kept up to its first rune that is not as it was written, and cut there: what comes after
 * rests on what is lost. A lazy rune, which no state is made of, loses its payload alone. Of the home stream, which is a
 * list of facts, only the damaged runes are lost. Changes nothing.
 */
import type { Link } from "./ChainWalk.ts"
import { GENESIS, hashPayload, hashRune } from "./HashChain.ts"
import { fromRow, type RuneRow } from "./RuneRow.ts"
import type { SegmentHead } from "./SegmentFile.ts"
import type { Segments } from "./Segments.ts"
import type { Database } from "./Sqlite.ts"

/** A stream that is kept up to a rune. */
export interface Cut {
  readonly stream: string
  /** The last rune that is kept; 0 for none. */
  readonly eventId: number
  readonly seq: number
  readonly reason: string
  /** Runes that are lost, of those that can be read. */
  lost: number
}

/** A position of the log; no row: nobody knows what was there. */
export interface Place {
  readonly eventId: number
  readonly row: RuneRow | undefined
}

export type Fate = "kept" | "lost" | "again" | "blanked"

export interface Options {
  readonly home: string
  readonly isLazy: (kind: string) => boolean
  /** The hash of what is left, by the rune whose texts were erased. */
  readonly erasures: ReadonlyMap<number, string>
  /** Where streams go on whose older runes a person's setting has deleted. */
  readonly begins?: ReadonlyArray<SegmentHead>
  /** The stream that alone is looked at; left out: all. */
  readonly only?: string | undefined
  /** Why a rune whose chain holds does not fold; undefined: it does. */
  readonly folds?: (row: RuneRow) => string | undefined
}

const START: Link = { eventId: 0, seq: 0, hash: GENESIS }
const PAGE = 500
/** The payload of a rune that lost it. */
export const BLANK = "{}"

export class RepairPlan {
  private readonly of: Options
  private readonly links = new Map<string, Link>()
  readonly cuts = new Map<string, Cut>()
  readonly blanked: Array<number> = []
  /** Positions of which nobody knows what was there. */
  unknown = 0
  lost = 0
  /** The store lacks what was acknowledged, in words: no repair brings that back. */
  behind: string | undefined

  constructor(of: Options) {
    this.of = of
    for (const { eventId, hash, seq, stream } of of.begins ?? []) this.links.set(stream, { eventId, seq, hash })
  }

  get isWell(): boolean {
    return this.lost === 0 && this.blanked.length === 0 && this.behind === undefined
  }

  next({ row }: Place): Fate {
    if (row === undefined) {
      this.unknown += 1
      this.lost += 1
      return "lost"
    }
    const { home, only } = this.of
    const { stream } = row
    const before = this.links.get(stream) ?? START
    const link = { eventId: row.event_id, seq: row.seq, hash: row.hash }
    if (only !== undefined && stream !== only) {
      this.links.set(stream, link)
      return "kept"
    }
    const cut = this.cuts.get(stream)
    if (cut !== undefined) {
      const isWhole = stream === home && isChained(row, before) && this.isPaid(row)
      this.links.set(stream, link)
      if (isWhole) return "again"
      cut.lost += 1
      this.lost += 1
      return "lost"
    }
    const reason = this.wrong(row, before)
    if (reason === undefined) {
      this.links.set(stream, link)
      return "kept"
    }
    if (reason === "payload" && this.of.isLazy(row.kind)) {
      this.links.set(stream, link)
      this.blanked.push(row.event_id)
      return "blanked"
    }
    const { eventId, seq } = before
    const said = reason === "payload" ? "its payload is not the one that was appended" : reason
    this.cuts.set(stream, { stream, eventId, seq, reason: `rune ${row.event_id}: ${said}`, lost: 1 })
    this.links.set(stream, link)
    this.lost += 1
    return "lost"
  }

  private wrong(row: RuneRow, before: Link): string | undefined {
    if (row.seq !== before.seq + 1) return `it is #${row.seq} of its stream, and comes after #${before.seq}`
    if (!isChained(row, before)) return "its hash does not follow from its header and the rune before it"
    if (!this.isPaid(row)) return "payload"
    return this.of.folds?.(row)
  }

  private isPaid({ event_id, payload, payload_hash }: RuneRow): boolean {
    if (payload === null) return true
    const hash = hashPayload(payload)
    return hash === payload_hash || this.of.erasures.get(event_id) === hash
  }
}

const isChained = (row: RuneRow, before: Link): boolean => {
  const rune = fromRow(row)
  return (
    rune.prev === before.eventId &&
    (rune.format === 1 || rune.causeId === null) &&
    hashRune(before.hash, rune, rune.payloadHash) === rune.hash
  )
}

/** Erasures, as the home stream's whole runes tell of them. */
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
    // named as a position of which nobody knows what was there
    return undefined
  }
}

/** Rows of one segment's block, or nothing of its positions. */
function* inSegments(segments: Segments): Generator<Place> {
  for (const { content, first, last } of segments.open) {
    // what a person's setting has deleted is not lost
    if (last <= segments.deleted) continue
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
      // of a page that cannot be read as a whole, each rune that can
      const row =
        rows === undefined ? attempt(() => one.get(eventId) as unknown as RuneRow | undefined) : found.get(eventId)
      yield { eventId, row: row?.event_id === eventId ? row : undefined }
    }
  }
}

/** The last position of the store, as far as anything says. */
export const headOf = (database: Database): number => {
  const said = attempt(() => database.prepare("SELECT event_id AS last FROM head").get()?.["last"])
  const seen = attempt(() => database.prepare("SELECT max(event_id) AS last FROM runes").get()?.["last"])
  const [a, b] = [Number(said ?? 0), Number(seen ?? 0)]
  // a damaged number that is far too large is none
  return b > 0 && (a < b || a > b + 1_000_000) ? b : a
}

/** All positions of a store, in order. */
export function* placesIn(database: Database, segments: Segments): Generator<Place> {
  yield* inSegments(segments)
  yield* inTable(database, segments.last, headOf(database))
}
