/**
 * SqliteStore: writes the log's runes to one table, with a few fixed prepared statements. Hash chains are computed
 * here, when runes are inserted, so that this takes no time on the actors' thread.
 *
 * `commit` is one transaction and one sync. If it fails, no row was written, and the chains are unchanged. Each row
 * names the previous row of its stream, so that a stream can be read backwards from its newest rune without an index.
 */
import type { Link } from "./ChainWalk.ts"
import { dirname, join } from "node:path"
import { type Erasing, without } from "./Erasure.ts"
import { chain, GENESIS, hashPayload } from "./HashChain.ts"
import type { Row } from "./Row.ts"
import * as WalMark from "./WalMark.ts"
import { COLUMNS as ALL_COLUMNS, type RuneRow } from "./RuneRow.ts"
import { type Head, type Made, SegmentFile, type SegmentHead, SEGMENTS } from "./SegmentFile.ts"
import { leftHeadsIn, list } from "./Segments.ts"
import { type Database, nodeSqlite, openStore, type Statement, type Value } from "./Sqlite.ts"

export interface StoreOptions {
  readonly file: string
  /** Name of the home stream, whose runes record the segments. */
  readonly home: string
  /** Maximum size of the file in bytes. */
  readonly maxBytes?: number
  /** Kinds of runes after which a stream accepts no more runes. */
  readonly seals: ReadonlyArray<string>
  readonly guarded: ReadonlyArray<string>
}

/** Payloads to write back to their runes in the store. */
export type PutBack = ReadonlyArray<readonly [eventId: number, payload: string]>

/** Columns of new runes. They have no `cause`, which is only used in format 1. */
const COLUMNS = ALL_COLUMNS.filter((column) => column !== "cause")
const WIDTH = COLUMNS.length
const HOLES = `(${Array.from({ length: WIDTH }, () => "?").join(",")})`
/** Number of rows in the multi-row INSERT. The other INSERT inserts a single row. */
const MANY = 8

const PAGE_BYTES = 4096
/** Size (bytes) that triggers a checkpoint: `SOME_BYTES` while nothing is written, `MUCH_BYTES` at any time. */
export const SOME_BYTES = 500_000
export const MUCH_BYTES = 1_000_000
/** Number of pages (8 MB) that the write-ahead log exceeds only if a reader prevents its checkpoint. */
const SWOLLEN_PAGES = 2_048
/** Estimated size (bytes) in the write-ahead log: of a row without its payload, and of a commit without its rows. */
const ROW_BYTES = 350
const COMMIT_BYTES = 3 * PAGE_BYTES

/**
 * Checkpoints the write-ahead log into the file, then truncates the log, because it contains old versions of pages.
 * Throws if a reader uses the log.
 */
export const emptyWal = (database: Database): void => {
  const { busy } = database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { readonly busy: number }
  // SQLITE_BUSY: a reader is using the write-ahead log
  if (busy !== 0) throw Object.assign(new Error("the database is locked"), { errcode: 5 })
}

const empty: Head = { eventId: 0, seq: 0, hash: GENESIS, isSealed: false, guarded: 0 }

export class SqliteStore {
  readonly database: Database
  private readonly file: string
  private readonly home: string
  private readonly one: Statement
  private readonly many: Statement
  private readonly head: Statement
  private readonly begin: Statement
  private readonly end: Statement
  private link: Statement | undefined
  private readonly seals: ReadonlySet<string>
  private readonly guarded: ReadonlySet<string>
  private readonly valuesOfOne: Array<Value> = Array.from({ length: WIDTH }, () => null)
  private readonly valuesOfMany: Array<Value> = Array.from({ length: WIDTH * MANY }, () => null)
  /** The newest rune of each stream, after the last commit. */
  readonly heads = new Map<string, Head>()
  /** The newest rune of each stream that the current transaction has appended to. */
  private readonly pending = new Map<string, Head>()
  /** Approximate number of bytes written since the last checkpoint. */
  bytes = 0
  /** True if the write-ahead log is so large that a reader must have prevented its checkpoint. */
  isSwollen = false
  /** Position of the newest rune in a segment; 0 if there is none. Rows up to this position are deleted, or will be. */
  left = 0

  constructor({ file, guarded, home, maxBytes, seals }: StoreOptions, sqlite = nodeSqlite) {
    this.seals = new Set(seals)
    this.guarded = new Set(guarded)
    this.file = file
    this.home = home
    this.database = openStore({ file, maxBytes }, sqlite)
    try {
      this.database.exec("PRAGMA secure_delete=ON")
      WalMark.set(this.database, this.file)
      const insert = (rows: number) =>
        this.database.prepare(
          `INSERT INTO runes (${COLUMNS.join(",")}) VALUES ${Array.from({ length: rows }, () => HOLES).join(",")}`
        )
      this.one = insert(1)
      this.many = insert(MANY)
      this.head = this.database.prepare("UPDATE head SET event_id = ?")
      this.begin = this.database.prepare("BEGIN IMMEDIATE")
      this.end = this.database.prepare("COMMIT")
      this.left = (this.database.prepare("SELECT max(last) AS last FROM segments").get()?.["last"] ?? 0) as number
    } catch (error) {
      this.database.close()
      throw error
    }
  }

  /** Writes all rows, or none of them. */
  commit(rows: ReadonlyArray<Row>): void {
    let bytes = COMMIT_BYTES
    try {
      this.begin.run()
      let index = 0
      for (; index + MANY <= rows.length; index += MANY) {
        for (let n = 0; n < MANY; n++) bytes += this.fill(rows[index + n]!, this.valuesOfMany, n * WIDTH)
        this.many.run(...this.valuesOfMany)
      }
      for (; index < rows.length; index++) {
        bytes += this.fill(rows[index]!, this.valuesOfOne, 0)
        this.one.run(...this.valuesOfOne)
      }
      this.head.run(rows[rows.length - 1]!.eventId)
      for (const row of rows) this.listTold(row)
      this.end.run()
    } catch (error) {
      this.pending.clear()
      if (this.database.isTransaction) this.database.exec("ROLLBACK")
      throw error
    }
    for (const [stream, head] of this.pending) this.heads.set(stream, head)
    this.pending.clear()
    this.bytes += bytes
  }

  /** Sets the newest rune of a stream to a rune that is already in the store. */
  restore(stream: string, kind: string, { eventId, hash, seq }: Pick<Head, "eventId" | "seq" | "hash">): void {
    const row = { event_id: eventId, hash, kind, seq }
    this.heads.set(stream, this.headAfter(row, this.heads.get(stream)?.guarded ?? 0))
  }

  /** Returns the stream's newest rune (head) after this row. `guarded`: the value of `guarded` in the previous head. */
  headAfter(row: Pick<RuneRow, "event_id" | "hash" | "kind" | "seq">, guarded: number): Head {
    return {
      eventId: row.event_id,
      seq: row.seq,
      hash: row.hash,
      isSealed: this.seals.has(row.kind),
      guarded: this.guarded.has(row.kind) ? row.event_id : guarded
    }
  }

  /** The previous rune of the same stream; undefined if the stream has no earlier rune. */
  linkBefore({ prev, stream }: { readonly prev: number; readonly stream: string }): Link | undefined {
    if (prev === 0) return undefined
    this.link ??= this.database.prepare("SELECT event_id AS eventId, seq, hash FROM runes WHERE event_id = ?")
    const row = this.link.get(prev) as unknown as Link | undefined
    if (row !== undefined) return row
    const head = this.leftHead(stream)
    return head?.eventId === prev ? head : undefined
  }

  /** The newest rune of a stream in the segments; undefined if the stream has no runes in segments. */
  leftHead(stream: string): Head | undefined {
    return this.left === 0 ? undefined : leftHeadsIn(this.database, stream)[0]
  }

  /** The newest rune in the segments of each stream that has runes there. */
  get leftHeads(): ReadonlyArray<SegmentHead> {
    return this.left === 0 ? [] : leftHeadsIn(this.database)
  }

  /** Lists a segment, so that its rows may be deleted. The change is durable when this method returns. */
  leave(made: Made): void {
    this.transaction(() => list(this.database, made, this.headsIn(made)))
    this.left = Math.max(this.left, made.last)
  }

  /** Lists this file in place of the segments that it replaces. The change is durable when this method returns. */
  forget(made: Made): void {
    this.transaction(() => {
      this.database.prepare("DELETE FROM segments WHERE last <= ?").run(made.last)
      list(this.database, made, [])
    })
  }

  /**
   * Updates the list of segments in the same transaction as the rune about it: a copy of the store has both or none.
   */
  private listTold({ kind, stream, text }: Row): void {
    if (stream !== this.home) return
    if (kind !== "segment.sealed" && kind !== "segment.rewritten" && kind !== "log.begins") return
    const made = JSON.parse(text) as Made
    if (kind === "segment.rewritten") return this.relist(made)
    if (kind === "log.begins") this.database.prepare("DELETE FROM segments WHERE last <= ?").run(made.last)
    list(this.database, made, kind === "log.begins" ? [] : this.headsIn(made))
  }

  private headsIn({ file }: Made): ReadonlyArray<SegmentHead> {
    return new SegmentFile(join(dirname(this.file), SEGMENTS, file)).footer.heads
  }

  /** Updates the list entry of a segment whose file was rewritten. */
  private relist({ bytes, file, first, last, sha256 }: Made): void {
    this.database
      .prepare("UPDATE segments SET file = ?, sha256 = ?, bytes = ? WHERE first = ? AND last = ?")
      .run(file, sha256, bytes, first, last)
  }

  /** Deletes at most `count` rows that are in a segment, oldest first. Returns the number of deleted rows. */
  drop(count: number): number {
    const { changes } = this.unhurried(() =>
      this.database
        .prepare(
          `DELETE FROM runes WHERE event_id IN
            (SELECT event_id FROM runes WHERE event_id <= ? ORDER BY event_id LIMIT ${count})`
        )
        .run(this.left)
    ) as { readonly changes: number | bigint }
    this.bytes += Number(changes) * ROW_BYTES * 2
    return Number(changes)
  }

  /** Releases free pages to the file system. Returns true if at least `worth` more pages are free. */
  giveBack(pages: number, worth: number): boolean {
    const { auto_vacuum: way } = this.database.prepare("PRAGMA auto_vacuum").get() as { readonly auto_vacuum: number }
    const free = () =>
      (this.database.prepare("PRAGMA freelist_count").get() as { readonly freelist_count: number }).freelist_count
    if (way !== 2 || free() < worth) return false
    this.unhurried(() => this.database.exec(`PRAGMA incremental_vacuum(${pages})`))
    this.bytes += pages * PAGE_BYTES
    return free() >= worth
  }

  /** The last eventId of the newest commit. An eventId that was assigned once is never assigned again. */
  get lastCommitted(): number {
    const row = this.database.prepare("SELECT event_id FROM head").get() as { readonly event_id: number } | undefined
    return row?.event_id ?? 0
  }

  /** Writes back payloads that an older agentd had moved elsewhere. The change is durable when this method returns. */
  putBack(payloads: PutBack): void {
    this.transaction(() => {
      const allow = this.database.prepare("INSERT OR IGNORE INTO erasing VALUES (?)")
      const put = this.database.prepare("UPDATE runes SET payload = ? WHERE event_id = ? AND payload IS NULL")
      for (const [eventId, payload] of payloads) {
        allow.run(eventId)
        put.run(payload, eventId)
        this.bytes += payload.length + ROW_BYTES
      }
      this.database.exec("DELETE FROM erasing")
    })
  }

  /**
   * Erases text in a payload from the file; the rest of the payload stays. Repeating this has no further effect. Throws
   * if the remaining payload does not have the hash `left`.
   */
  rewrite({ eventId, fields, left }: Erasing): void {
    const row = this.database.prepare("SELECT payload FROM runes WHERE event_id = ?").get(eventId) as
      | { readonly payload: string | null }
      | undefined
    const payload = row?.payload ?? null
    if (payload !== null && hashPayload(payload) !== left) {
      const text = without(payload, fields)
      if (hashPayload(text) !== left) throw new Error(`rune ${eventId} is not what was to be erased`)
      this.database.exec("BEGIN IMMEDIATE")
      try {
        this.database.prepare("INSERT OR IGNORE INTO erasing VALUES (?)").run(eventId)
        this.database.prepare("UPDATE runes SET payload = ? WHERE event_id = ?").run(text, eventId)
        this.database.exec("DELETE FROM erasing; COMMIT")
      } catch (error) {
        if (this.database.isTransaction) this.database.exec("ROLLBACK")
        throw error
      }
    }
    WalMark.clear(this.database)
    try {
      emptyWal(this.database)
    } finally {
      WalMark.set(this.database, this.file)
    }
    this.bytes = 0
  }

  /** Ignores an error, because the next commit gets the same error and reports it. */
  checkpoint(): void {
    this.bytes = 0
    try {
      const pages = this.database.prepare("PRAGMA wal_checkpoint(PASSIVE)").get() as { readonly log: number }
      if (pages.log > SWOLLEN_PAGES) this.isSwollen = true
    } catch {
      return
    }
  }

  /** Truncates a write-ahead log that has grown because a reader prevented its checkpoint. */
  shrink(): void {
    emptyWal(this.database)
    this.isSwollen = false
  }

  close(): void {
    try {
      WalMark.clear(this.database)
    } catch {
      // the disk accepts no writes, so the write-ahead log stays next to the file
    }
    this.checkpoint()
    this.database.close()
  }

  /**
   * Writes without waiting for the disk. The next commit makes the write durable. If a power failure undoes it, the
   * write is repeated later.
   */
  private unhurried<A>(write: () => A): A {
    this.database.exec("PRAGMA synchronous=NORMAL")
    try {
      return write()
    } finally {
      this.database.exec("PRAGMA synchronous=FULL")
    }
  }

  private transaction(write: () => void): void {
    this.database.exec("BEGIN IMMEDIATE")
    try {
      write()
      this.database.exec("COMMIT")
    } catch (error) {
      if (this.database.isTransaction) this.database.exec("ROLLBACK")
      throw error
    }
  }

  private fill(row: Row, into: Array<Value>, at: number): number {
    const { eventId, kind, seq, stream, text } = row
    const before = this.pending.get(stream) ?? this.heads.get(stream) ?? empty
    if (seq !== before.seq + 1) throw new Error(`${stream}#${seq} came after ${stream}#${before.seq}`)
    const payloadHash = hashPayload(text)
    const hash = chain(before.hash, row.header, payloadHash)
    this.pending.set(stream, {
      eventId,
      seq,
      hash,
      isSealed: this.seals.has(kind),
      guarded: this.guarded.has(kind) ? eventId : before.guarded
    })
    into[at] = eventId
    into[at + 1] = 2
    into[at + 2] = seq
    into[at + 3] = before.eventId
    into[at + 4] = stream
    into[at + 5] = row.at
    into[at + 6] = kind
    into[at + 7] = row.actor
    into[at + 8] = row.from
    into[at + 9] = row.to
    into[at + 10] = row.trigger
    // null means the rune's own stream: most causes are in the same stream
    into[at + 11] = row.causeStream === stream ? null : row.causeStream
    into[at + 12] = row.causeSeq
    into[at + 13] = row.moves
    into[at + 14] = row.visibility
    into[at + 15] = text
    into[at + 16] = payloadHash
    into[at + 17] = hash
    return text.length + ROW_BYTES
  }
}
