/**
 * ActorIndex: records the runes of each actor, by kind, in a side file next to the store's database. The newest runes
 * of an agent are then found fast in a long log, without an extra index on the main table.
 *
 * The log's thread fills the tables in small steps, mostly while nothing is appended. The file stores the position up
 * to which it is filled. Runes after this position are searched for in the log itself. The tables can be wrong, so a
 * reader checks each rune that they name. Entries of runes that a user's setting has deleted are removed in steps. If
 * the tables cannot be trusted, they are emptied and filled again. If another connection has locked the file, the
 * thread fills the tables later.
 */
import { type BackgroundTask, STEP } from "./BackgroundTask.ts"
import { isLocked } from "./GroupCommit.ts"
import { listedIn, Segments } from "./Segments.ts"
import { FILED_VERSION, type SideFile } from "./SideFile.ts"
import type { Database, Statement } from "./Sqlite.ts"
import type { SqliteStore } from "./SqliteStore.ts"

/** Number of unindexed runes above which the thread indexes even between appends, not only when appends pause. */
const MANY = 20_000

/**
 * Maximum number of consecutive steps that find the file locked; then indexing waits for the next append. A reader that
 * opens the file locks it for a moment.
 */
const MAX_LOCKED = 20

/**
 * Limits of one step: threads to check for deleted runes, and entries to remove. A thread is a combination of actor,
 * stream and kind.
 */
const THREADS = 64
const ENTRIES = 1_000

/** Maximum number of threads whose ids are cached. A thread is a combination of actor, stream and kind. */
const REMEMBERED = 4_096

/**
 * The name under which the runes of an actor are indexed. There are many actors like `tool/builder/7`, so they share
 * the name `tool/builder/`.
 */
export const filedUnder = (actor: string): string => {
  const end = actor.indexOf("/", actor.indexOf("/") + 1)
  return end === -1 || !actor.includes("/") ? actor : actor.slice(0, end + 1)
}

const HAS = "SELECT 1 FROM entries WHERE thread = ? AND event_id = ?"

/**
 * Checks that the index has one entry for each rune up to the last indexed position, and no other entries. Later runes
 * are not checked.
 */
export class FiledCheck {
  private readonly threads = new Map<string, number>()
  private readonly find: Statement
  private readonly count: Statement
  private readonly place: number
  /** Number of index entries for runes up to position `place`. */
  private entries = 0
  private seen = 0
  private isWrong = false

  constructor(database: Database) {
    this.find = database.prepare(HAS)
    this.place = (database.prepare("SELECT event_id FROM filed").get()?.["event_id"] ?? 0) as number
    this.count = database.prepare("SELECT count(*) AS entries FROM entries WHERE event_id BETWEEN ? AND ?")
    for (const { actor, id, kind, stream } of database.prepare("SELECT * FROM threads").all()) {
      this.threads.set(`${actor as string}\n${stream as string}\n${kind as string}`, id as number)
    }
  }

  next({
    actor,
    eventId,
    kind,
    stream
  }: {
    readonly actor: string
    readonly eventId: number
    readonly kind: string
    readonly stream: string
  }): void {
    if (eventId > this.place || this.isWrong) return
    if (this.seen === 0) this.entries = this.count.get(eventId, this.place)!["entries"] as number
    this.seen += 1
    const thread = this.threads.get(`${filedUnder(actor)}\n${stream}\n${kind}`)
    this.isWrong = thread === undefined || this.find.get(thread, eventId) === undefined
  }

  get problems(): ReadonlyArray<string> {
    return this.isWrong || this.seen !== this.entries ? ["it does not say which runes an actor has"] : []
  }
}

interface Row {
  readonly event_id: number
  readonly stream: string
  readonly actor: string
  readonly kind: string
  readonly hash: string
}

interface Opened {
  readonly database: Database
  readonly page: Statement
  readonly find: Statement
  readonly has: Statement
  readonly add: Statement
  readonly enter: Statement
  readonly setPlace: Statement
  readonly threads: Statement
  readonly takeOut: Statement
  readonly close: Statement
}

export class ActorIndex implements BackgroundTask {
  readonly chore = "the file that says which runes an actor has"
  private readonly side: SideFile
  private readonly store: SqliteStore
  private readonly known: Segments
  private opened: Opened | undefined
  private readonly threads = new Map<string, number>()
  /** eventId of the newest indexed rune. */
  private place = 0
  /** In threads with ids up to this one, no deleted runes have entries. Undefined: no deleted rune has an entry. */
  private cleared: number | undefined
  /** Number of consecutive steps that found the file locked. */
  private locked = 0
  private last: number

  constructor(of: {
    readonly side: SideFile
    readonly store: SqliteStore
    /** Folder that contains the segments. */
    readonly folder: string
    readonly newest: number
  }) {
    this.side = of.side
    this.store = of.store
    this.known = new Segments(of.folder, [])
    this.last = of.newest
  }

  get newest(): number {
    return this.last
  }

  set newest(eventId: number) {
    this.last = eventId
    this.locked = 0
  }

  get isDone(): boolean {
    return (this.filled >= this.newest && this.cleared === undefined) || this.locked >= MAX_LOCKED
  }

  private get filled(): number {
    return this.current === undefined ? -1 : this.place
  }

  /** True if so many runes are unindexed that indexing must not wait until appends pause. */
  get isFarBehind(): boolean {
    return !this.isDone && this.newest - this.filled > MANY
  }

  step(): void {
    try {
      const opened = this.current ?? this.open()
      if (this.cleared === undefined) this.fill(opened)
      else this.cleared = this.takeOut(opened, this.cleared)
      this.locked = 0
    } catch (error) {
      if (isLocked(error)) return void (this.locked += 1)
      // the next step opens the tables again and checks them
      this.opened = undefined
      throw error
    }
  }

  /** The prepared statements; undefined if the file is not open yet, or was recreated since they were prepared. */
  private get current(): Opened | undefined {
    return this.opened?.database === this.side.database ? this.opened : undefined
  }

  /**
   * Returns true if the index has an entry for the rune, if the index is not open yet, or if the rune is newer than the
   * last indexed position.
   */
  holds({ actor, event_id, kind, stream }: Omit<Row, "hash">): boolean {
    if (this.current === undefined || event_id > this.place) return true
    const { find, has } = this.current
    const thread = find.get(filedUnder(actor), stream, kind)?.["id"] as number | undefined
    return thread !== undefined && has.get(thread, event_id) !== undefined
  }

  /** Call this after the log's oldest runes were deleted. Later steps remove the index entries of these runes. */
  forget(): void {
    this.cleared = 0
    this.locked = 0
  }

  /** Empties the tables, because their content cannot be trusted. */
  discard(): void {
    this.side.forgetActors()
    this.opened = undefined
  }

  private open(): Opened {
    this.threads.clear()
    try {
      return this.attempt()
    } catch (error) {
      if (isLocked(error)) throw error
      this.discard()
      return this.attempt()
    }
  }

  /**
   * Opens the tables. Throws if their version differs, or if the file belongs to another store. The file records the
   * position and the hash of its last indexed rune, and this store must contain that rune.
   */
  private attempt(): Opened {
    const { database } = this.side
    const place = database.prepare("SELECT version, event_id, hash FROM filed").get() as unknown as {
      readonly version: number
      readonly event_id: number
      readonly hash: string
    }
    if (place.version !== FILED_VERSION || !this.isOurs(place)) throw new Error("the file is another store's")
    this.place = place.event_id
    this.cleared = this.segments.deleted === 0 ? undefined : 0
    this.opened = {
      database,
      page: this.store.database.prepare(
        `SELECT event_id, stream, actor, kind, hash FROM runes WHERE event_id > ? ORDER BY event_id LIMIT ${STEP}`
      ),
      find: database.prepare("SELECT id FROM threads WHERE actor = ? AND stream = ? AND kind = ?"),
      has: database.prepare(HAS),
      add: database.prepare("INSERT INTO threads (actor, stream, kind) VALUES (?, ?, ?) RETURNING id"),
      enter: database.prepare("INSERT OR IGNORE INTO entries VALUES (?, ?)"),
      setPlace: database.prepare("UPDATE filed SET event_id = ?, hash = ?"),
      threads: database.prepare(`SELECT id FROM threads WHERE id > ? ORDER BY id LIMIT ${THREADS}`),
      takeOut: database.prepare(
        `DELETE FROM entries WHERE thread = ?1 AND event_id IN
          (SELECT event_id FROM entries WHERE thread = ?1 AND event_id <= ?2 ORDER BY event_id LIMIT ?3)`
      ),
      close: database.prepare(
        "DELETE FROM threads WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entries WHERE thread = ?1)"
      )
    }
    return this.opened
  }

  private isOurs({ event_id, hash }: { readonly event_id: number; readonly hash: string }): boolean {
    if (event_id === 0) return true
    const there = this.store.database.prepare("SELECT hash FROM runes WHERE event_id = ?").get(event_id)
    return (there?.["hash"] ?? this.segments.row(event_id)?.hash) === hash
  }

  /** The store's current segments. Reloaded if the store's list of segments has changed. */
  private get segments(): Segments {
    const listed = listedIn(this.store.database)
    if (JSON.stringify(listed) !== JSON.stringify(this.known.listed)) this.known.list(listed)
    return this.known
  }

  /** Returns the runes to index. Runes that were moved out of the store are read from their segments. */
  private next({ page }: Opened): ReadonlyArray<Row> {
    const left = this.place < this.store.left ? this.segments.after(this.place) : []
    return left.length > 0 ? left : (page.all(this.place) as unknown as ReadonlyArray<Row>)
  }

  private fill(opened: Opened): void {
    const { enter, setPlace } = opened
    const rows = this.next(opened)
    const last = rows.at(-1)
    if (last === undefined) {
      this.newest = this.place
      return
    }
    try {
      this.side.write(() => {
        for (const row of rows) enter.run(this.threadOf(opened, row), row.event_id)
        setPlace.run(last.event_id, last.hash)
      })
    } catch (error) {
      // the write failed, so the cache can contain ids that are not in the file
      this.threads.clear()
      throw error
    }
    this.place = last.event_id
  }

  /**
   * Removes some entries of deleted runes. Returns the thread id up to which all such entries are removed; undefined if
   * no thread is left to check.
   */
  private takeOut({ close, takeOut, threads }: Opened, after: number): number | undefined {
    const { deleted } = this.segments
    const next = threads.all(after)
    if (next.length === 0) return undefined
    let cleared = after
    // this step can delete threads that are still in the cache
    this.threads.clear()
    this.side.write(() => {
      let room = ENTRIES
      for (const { id } of next) {
        room -= Number((takeOut.run(id!, deleted, room) as { readonly changes: number | bigint }).changes)
        if (room === 0) break
        close.run(id!)
        cleared = id as number
      }
    })
    return cleared
  }

  private threadOf({ add, find }: Opened, { actor, kind, stream }: Row): number {
    const filed = filedUnder(actor)
    const key = `${filed}\n${stream}\n${kind}`
    const known = this.threads.get(key)
    if (known !== undefined) return known
    const id = (find.get(filed, stream, kind) ?? add.get(filed, stream, kind))!["id"] as number
    if (this.threads.size >= REMEMBERED) this.threads.clear()
    this.threads.set(key, id)
    return id
  }
}
