/**
 * Segments: finds the runes that were moved out of the store, by position, in their segment files.
 *
 * Guarantees: a lookup reads one block of one file. The blocks that were read last are cached. Runes of a file that a
 * user's setting has deleted are not returned. At run time this module uses no npm packages, because the log's threads
 * load it.
 */
import { join } from "node:path"
import { BaselineFile, isBeginning } from "./BaselineFile.ts"
import type { RuneRow } from "./RuneRow.ts"
import { fromRow } from "./RuneRow.ts"
import { SegmentFile, type SegmentHead } from "./SegmentFile.ts"
import type { Database } from "./Sqlite.ts"
import type { StoredRune } from "./StoredRune.ts"

export interface Listed {
  readonly first: number
  readonly last: number
  readonly file: string
  readonly sha256: string
  readonly bytes: number
}

/** Maximum number of blocks in the cache. */
const REMEMBERED = 6

/** The segments that the store lists, oldest first. */
export const listedIn = (database: Database): ReadonlyArray<Listed> =>
  database
    .prepare("SELECT first, last, file, sha256, bytes FROM segments ORDER BY first")
    .all() as unknown as ReadonlyArray<Listed>

/** Adds a segment to the store's list, and records the newest rune of each of its streams. */
export const list = (
  database: Database,
  { bytes, file, first, last, sha256 }: Listed,
  heads: ReadonlyArray<SegmentHead>
): void => {
  database
    .prepare("INSERT OR REPLACE INTO segments (first, last, file, sha256, bytes) VALUES (?, ?, ?, ?, ?)")
    .run(first, last, file, sha256, bytes)
  const set = database.prepare("INSERT OR REPLACE INTO left_heads VALUES (?, ?, ?, ?, ?, ?)")
  for (const { eventId, guarded, hash, isSealed, seq, stream } of heads) {
    set.run(stream, eventId, seq, hash, Number(isSealed), guarded)
  }
}

/** Newest rune of each stream that has runes in segments. If `stream` is set, only of this stream. */
export const leftHeadsIn = (database: Database, stream?: string): ReadonlyArray<SegmentHead> => {
  const all = "SELECT stream, event_id AS eventId, seq, hash, sealed, guarded FROM left_heads"
  const rows =
    stream === undefined ? database.prepare(all).all() : database.prepare(`${all} WHERE stream = ?`).all(stream)
  return rows.map(({ sealed, ...head }) => ({
    ...head,
    isSealed: sealed === 1
  })) as unknown as ReadonlyArray<SegmentHead>
}

interface Open extends Listed {
  readonly content: SegmentFile
}

const isThere = ({ file }: Listed): boolean => !isBeginning(file)

export class Segments {
  private readonly folder: string
  private all: ReadonlyArray<Open> = []
  /** Segments that still contain runes. The file that replaces deleted segments is not included. */
  private there: ReadonlyArray<Open> = []
  private known: BaselineFile | undefined
  private readonly blocks = new Map<string, ReadonlyArray<RuneRow>>()

  constructor(folder: string, listed: ReadonlyArray<Listed>) {
    this.folder = folder
    this.list(listed)
  }

  /** Replaces the list of segments. */
  list(listed: ReadonlyArray<Listed>): void {
    this.blocks.clear()
    this.known = undefined
    this.all = listed.map((one) => ({ ...one, content: new SegmentFile(join(this.folder, one.file)) }))
    this.there = this.all.filter(isThere)
  }

  /** Position of the newest rune that was deleted by a user's setting; 0 if there is none. */
  get deleted(): number {
    return this.all.findLast((one) => !isThere(one))?.last ?? 0
  }

  /** The file that replaces deleted runes; undefined if no runes were deleted. Throws if the file cannot be read. */
  get beginning(): BaselineFile | undefined {
    const listed = this.all.find((one) => !isThere(one))
    return listed && (this.known ??= new BaselineFile(listed.content, listed.sha256))
  }

  get listed(): ReadonlyArray<Listed> {
    return this.all.map(({ bytes, file, first, last, sha256 }) => ({ first, last, file, sha256, bytes }))
  }

  get open(): ReadonlyArray<Open> {
    return this.all
  }

  /** Last position of the segment that contains the rune. */
  end(eventId: number): number {
    return this.all.find(({ last }) => last >= eventId)?.last ?? this.last
  }

  /** Position of the newest rune that was moved out of the store or deleted; 0 if there is none. */
  get last(): number {
    return this.all.at(-1)?.last ?? 0
  }

  get bytes(): number {
    return this.all.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** The rows of one block with `after` < position, oldest first; empty if there are none. */
  after(after: number): ReadonlyArray<RuneRow> {
    const segment = this.there.find(({ last }) => last > after)
    if (segment === undefined) return []
    const rows = this.block(segment, segment.content.blockOf(Math.max(after + 1, segment.first)))
    return after < rows[0]!.event_id ? rows : rows.filter((row) => row.event_id > after)
  }

  /** The rows of one block with position ≤ `before`, oldest first; empty if there are none. */
  before(before: number): ReadonlyArray<RuneRow> {
    const segment = this.there.findLast(({ first }) => first <= before)
    if (segment === undefined) return []
    const rows = this.block(segment, segment.content.blockOf(Math.min(before, segment.last)))
    return rows.at(-1)!.event_id <= before ? rows : rows.filter((row) => row.event_id <= before)
  }

  row(eventId: number): RuneRow | undefined {
    const segment = this.there.find(({ first, last }) => first <= eventId && eventId <= last)
    if (segment === undefined) return undefined
    const rows = this.block(segment, segment.content.blockOf(eventId))
    return rows[eventId - rows[0]!.event_id]
  }

  at(eventId: number): StoredRune | undefined {
    const row = this.row(eventId)
    return row === undefined ? undefined : fromRow(row)
  }

  private block({ content, file }: Open, block: number): ReadonlyArray<RuneRow> {
    const key = `${file}\n${block}`
    const known = this.blocks.get(key)
    if (known !== undefined) return known
    const rows = content.rows(block)
    if (this.blocks.size >= REMEMBERED) this.blocks.delete(this.blocks.keys().next().value!)
    this.blocks.set(key, rows)
    return rows
  }
}
