/**
 * ActorLookup: reads the side file next to the store's database. This file has the index of runes by actor (filled by
 * `ActorIndex`), snapshots, and the positions of subscribers.
 *
 * Guarantees: a lookup reads a bounded number of entries. Up to the last indexed position, a lookup finds every rune
 * that matches the selection. It can also return other runes, so the caller must check each rune. If the file is
 * missing or cannot be read, a lookup returns undefined, and the caller searches the log itself. The file is opened on
 * its first use.
 */
import { filedUnder } from "./ActorIndex.ts"
import type { Selection } from "./EventLog.ts"
import type { SnapshotRow } from "./Snapshot.ts"
import { type Database, nodeSqlite, type Output, type Statement } from "./Sqlite.ts"
import { StorePlace } from "./StorePlace.ts"
import type { Position } from "./Subscribers.ts"

/** Maximum number of threads (actor, stream and kind) of a selection. With more, the log itself is searched. */
const MAX_THREADS = 512
/** Number of entries of a thread that are read in one query. */
const CHUNK = 64

/** SQLITE_ERROR (no such table), SQLITE_BUSY, SQLITE_CANTOPEN: the file is being created, and is not damaged. */
const WAITED = new Set([1, 5, 14])

type Direction = "back" | "on"

/** Iterates over the positions of one thread (actor, stream and kind) within bounds, in order. */
class Cursor {
  private readonly page: Statement
  private readonly thread: number
  private readonly direction: Direction
  private readonly until: number
  private from: number
  private waiting: Array<number> = []
  private next = 0
  private isEnd = false

  constructor(page: Statement, thread: number, direction: Direction, after: number, upTo: number) {
    this.page = page
    this.thread = thread
    this.direction = direction
    this.from = direction === "back" ? upTo : after
    this.until = direction === "back" ? after : upTo
  }

  get peek(): number | undefined {
    if (this.next === this.waiting.length && !this.isEnd) {
      const [after, upTo] = this.direction === "back" ? [this.until, this.from] : [this.from, this.until]
      this.waiting = this.page.all(this.thread, after, upTo).map((row) => row["event_id"] as number)
      this.next = 0
      this.isEnd = this.waiting.length < CHUNK
      const last = this.waiting.at(-1)
      if (last !== undefined) this.from = this.direction === "back" ? last - 1 : last
    }
    return this.waiting[this.next]
  }

  take(): void {
    this.next += 1
  }
}

/**
 * Returns the name in the index that covers all runes of an actor, or of all actors below a prefix (`tool/builder/`).
 * Undefined if no single name covers the prefix.
 */
const filedAs = (name: string): string | undefined => {
  if (!name.endsWith("/")) return filedUnder(name)
  return filedUnder(`${name}x`) === name ? name : undefined
}

const namesIn = ({ actor, actors }: Selection) => (actor === undefined ? actors : [actor])

/** Index names of a selection's actors; undefined if it names no actor, or one without a single index name. */
const filedOf = (selection: Selection): ReadonlyArray<string> | undefined => {
  const names = namesIn(selection)?.map(filedAs)
  return names?.every((name) => name !== undefined) ? [...new Set(names)] : undefined
}

export class ActorLookup {
  private readonly file: string
  private readonly damaged: () => void
  private database: Database | undefined
  private opened: StorePlace | undefined

  /** `damaged` is called if the file cannot be read. */
  constructor(file: string, damaged: () => void) {
    this.file = file
    this.damaged = damaged
  }

  static serves(selection: Selection): boolean {
    return filedOf(selection) !== undefined || (selection.kinds?.length ?? 0) > 0
  }

  /** Returns true if a lookup returns only matching runes. False: the caller must check each rune. */
  static isExact(selection: Selection): boolean {
    const { actor, actors, since } = selection
    if (since !== undefined || (actor !== undefined && actors !== undefined)) return false
    return namesIn(selection)?.every((name) => filedAs(name) === name) ?? true
  }

  /** The last indexed position; undefined if the file cannot be used. */
  get place(): number | undefined {
    return this.attempt((database) => database.prepare("SELECT event_id FROM filed").get()?.["event_id"] as number)
  }

  /** The newest `count` matching positions with `downTo` < position ≤ `before`, newest first. */
  newest(selection: Selection, before: number, downTo: number, count: number): ReadonlyArray<number> | undefined {
    return this.merged(selection, "back", downTo, before, count)
  }

  /** The oldest `count` matching positions with `after` < position ≤ `upTo`, oldest first. */
  oldest(selection: Selection, after: number, upTo: number, count: number): ReadonlyArray<number> | undefined {
    return this.merged(selection, "on", after, upTo, count)
  }

  snapshot(stream: string, name: string): SnapshotRow | undefined {
    return this.row("SELECT *, event_id AS eventId FROM snapshots WHERE stream = ? AND name = ?", stream, name)
  }

  /** The saved position of a subscriber; undefined if there is none, or if the file cannot be read. */
  position(name: string): Position | undefined {
    return this.row("SELECT event_id AS eventId, hash FROM subscribers WHERE name = ?", name)
  }

  close(): void {
    this.database?.close()
    this.database = undefined
    this.opened = undefined
  }

  private merged(selection: Selection, direction: Direction, after: number, upTo: number, count: number) {
    return this.attempt((database) => {
      const threads = this.threadsOf(database, selection)
      if (threads.length > MAX_THREADS) return undefined
      const page = database.prepare(
        `SELECT event_id FROM entries WHERE thread = ? AND event_id > ? AND event_id <= ?
         ORDER BY event_id ${direction === "back" ? "DESC" : "ASC"} LIMIT ${CHUNK}`
      )
      const cursors = threads.map((thread) => new Cursor(page, thread, direction, after, upTo))
      const found: Array<number> = []
      while (found.length < count) {
        let best: Cursor | undefined
        let at = 0
        for (const cursor of cursors) {
          const peek = cursor.peek
          if (peek === undefined || (best !== undefined && (direction === "back" ? peek < at : peek > at))) continue
          best = cursor
          at = peek
        }
        if (best === undefined) break
        found.push(at)
        best.take()
      }
      return found
    })
  }

  private threadsOf(database: Database, selection: Selection): ReadonlyArray<number> {
    const { kinds, stream } = selection
    const filed = filedOf(selection)
    const where = [
      ...(filed === undefined ? [] : [`actor IN (${filed.map(() => "?").join(",")})`]),
      ...(stream === undefined ? [] : ["stream = ?"]),
      ...(kinds === undefined ? [] : [`kind IN (${kinds.map(() => "?").join(",")})`])
    ]
    const values = [...(filed ?? []), ...(stream === undefined ? [] : [stream]), ...(kinds ?? [])]
    const rows: ReadonlyArray<Output> = database
      .prepare(`SELECT id FROM threads WHERE ${where.join(" AND ")} LIMIT ${MAX_THREADS + 1}`)
      .all(...values)
    return rows.map(({ id }) => id as number)
  }

  private row<A>(sql: string, ...values: ReadonlyArray<string>): A | undefined {
    return this.attempt((database) => database.prepare(sql).get(...values) as A | undefined)
  }

  private attempt<A>(read: (database: Database) => A): A | undefined {
    try {
      // if the log's thread has recreated the file, open the new one
      if (this.opened?.isLeft === true) this.close()
      this.opened ??= new StorePlace(this.file)
      this.database ??= nodeSqlite.open(this.file, { readOnly: true })
      return read(this.database)
    } catch (error) {
      this.close()
      if (!WAITED.has((error as { readonly errcode?: number }).errcode ?? 0)) this.damaged()
      return undefined
    }
  }
}
