/**
 * ActorIndex: a file beside the store that says which runes an actor has, by kind, so that the newest
 * runes of one agent are found in a long log without an index on the table that is appended to.
 *
 * The file is filled by the log's thread in small steps, mostly while nobody appends, and has a position of its
 * own: what lies beyond the position is found in the log itself. Nothing in the file is the truth: whoever
 * reads by it looks at the runes. What it says of runes that a person's setting has deleted is taken out in steps. In
 * doubt the file is discarded, and filled anew; while somebody else has it locked, it waits.
 */
import { type Chore, STEP } from "./Chore.ts"
import { isLocked } from "./GroupCommit.ts"
import { GENESIS } from "./HashChain.ts"
import { listedIn, Segments } from "./Segments.ts"
import { type Database, nodeSqlite, type Sqlite, type Statement } from "./Sqlite.ts"
import type { SqliteStore } from "./SqliteStore.ts"

export const actorFileOf = (file: string): string => `${file}.actors`

const VERSION = 1

/** Runes that wait to be filled in: beyond them it is done between appends, too. */
const MANY = 20_000

/** Steps in a row that may find the file locked: somebody who begins to read it locks it for a moment. Then it waits for the next append. */
const MAX_LOCKED = 20

/** Threads that a step looks at for deleted runes, and entries that it takes out. */
const THREADS = 64
const ENTRIES = 1_000

/** Threads whose numbers are remembered. */
const REMEMBERED = 4_096

const SCHEMA = `
  PRAGMA busy_timeout=0; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
  CREATE TABLE IF NOT EXISTS place (
    one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, event_id INTEGER NOT NULL, hash TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS threads (
    id INTEGER PRIMARY KEY, actor TEXT NOT NULL, stream TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE (actor, stream, kind)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS threads_by_kind ON threads (kind, stream);
  CREATE TABLE IF NOT EXISTS entries (
    thread INTEGER NOT NULL, event_id INTEGER NOT NULL, PRIMARY KEY (thread, event_id)
  ) STRICT, WITHOUT ROWID;
  INSERT OR IGNORE INTO place VALUES (1, ${VERSION}, 0, '${GENESIS}')`

/** Actors below another (`tool/builder/7`) are many: they are filed together (`tool/builder/`). */
export const filedUnder = (actor: string): string => {
  const end = actor.indexOf("/", actor.indexOf("/") + 1)
  return end === -1 || !actor.includes("/") ? actor : actor.slice(0, end + 1)
}

const HAS = "SELECT 1 FROM entries WHERE thread = ? AND event_id = ?"

/** Whether the file knows of each rune up to its place; what lies beyond the place is not asked. */
export class FiledCheck {
  private readonly threads = new Map<string, number>()
  private readonly find: Statement
  private readonly count: Statement
  private readonly place: number
  /** From the first rune that the log still has. */
  private entries = 0
  private seen = 0
  private isWrong = false

  constructor(database: Database) {
    this.find = database.prepare(HAS)
    this.place = (database.prepare("SELECT event_id FROM place").get()?.["event_id"] ?? 0) as number
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

export class ActorIndex implements Chore {
  readonly chore = "the file that says which runes an actor has"
  private readonly file: string
  private readonly store: SqliteStore
  private readonly known: Segments
  private readonly sqlite: Sqlite
  private opened: Opened | undefined
  private readonly threads = new Map<string, number>()
  /** The newest rune that is filled in; -1 before the file is open. */
  private place = -1
  /** The last thread that says nothing of deleted runes; undefined: none says anything of them. */
  private cleared: number | undefined
  /** So many steps in a row found the file locked. */
  private locked = 0
  private last: number

  constructor(of: {
    readonly file: string
    readonly store: SqliteStore
    /** Of the segments. */
    readonly folder: string
    readonly newest: number
    readonly sqlite?: Sqlite
  }) {
    this.file = of.file
    this.store = of.store
    this.known = new Segments(of.folder, [])
    this.last = of.newest
    this.sqlite = of.sqlite ?? nodeSqlite
  }

  get newest(): number {
    return this.last
  }

  set newest(eventId: number) {
    this.last = eventId
    this.locked = 0
  }

  get isDone(): boolean {
    return (this.place >= this.newest && this.cleared === undefined) || this.locked >= MAX_LOCKED
  }

  /** Whether so much waits that it cannot wait for a rest. */
  get isFarBehind(): boolean {
    return !this.isDone && this.newest - this.place > MANY
  }

  step(): void {
    try {
      const opened = (this.opened ??= this.open())
      if (this.cleared === undefined) this.fill(opened)
      else this.cleared = this.takeOut(opened, this.cleared)
      this.locked = 0
    } catch (error) {
      if (isLocked(error)) return void (this.locked += 1)
      // the next begins with a file that is opened anew, or made anew
      this.close()
      throw error
    }
  }

  /** Whether the file knows of the rune, where it has come so far. */
  holds({ actor, event_id, kind, stream }: Omit<Row, "hash">): boolean {
    if (this.opened === undefined || event_id > this.place) return true
    const { find, has } = this.opened
    const thread = find.get(filedUnder(actor), stream, kind)?.["id"] as number | undefined
    return thread !== undefined && has.get(thread, event_id) !== undefined
  }

  /** The oldest runes are deleted. */
  forget(): void {
    this.cleared = 0
    this.locked = 0
  }

  /** Empties the file: what is there is not to be trusted. */
  discard(): void {
    this.close()
    for (const ending of ["", "-wal", "-shm"]) this.sqlite.remove(`${this.file}${ending}`)
    this.threads.clear()
    this.place = -1
  }

  close(): void {
    const { opened } = this
    this.opened = undefined
    if (opened?.database.isOpen === true) opened.database.close()
  }

  private open(): Opened {
    try {
      return this.attempt()
    } catch (error) {
      if (isLocked(error)) throw error
      this.discard()
      return this.attempt()
    }
  }

  /** Opens the file, whose place must name a rune of this very store. */
  private attempt(): Opened {
    const database = this.sqlite.open(this.file)
    try {
      database.exec(SCHEMA)
      const place = database.prepare("SELECT version, event_id, hash FROM place").get() as unknown as {
        readonly version: number
        readonly event_id: number
        readonly hash: string
      }
      if (place.version !== VERSION || !this.isOurs(place)) throw new Error("the file is another store's")
      this.place = place.event_id
      this.cleared = this.segments.deleted === 0 ? undefined : 0
      return {
        database,
        page: this.store.database.prepare(
          `SELECT event_id, stream, actor, kind, hash FROM runes WHERE event_id > ? ORDER BY event_id LIMIT ${STEP}`
        ),
        find: database.prepare("SELECT id FROM threads WHERE actor = ? AND stream = ? AND kind = ?"),
        has: database.prepare(HAS),
        add: database.prepare("INSERT INTO threads (actor, stream, kind) VALUES (?, ?, ?) RETURNING id"),
        enter: database.prepare("INSERT OR IGNORE INTO entries VALUES (?, ?)"),
        setPlace: database.prepare("UPDATE place SET event_id = ?, hash = ?"),
        threads: database.prepare(`SELECT id FROM threads WHERE id > ? ORDER BY id LIMIT ${THREADS}`),
        takeOut: database.prepare(
          `DELETE FROM entries WHERE thread = ?1 AND event_id IN
            (SELECT event_id FROM entries WHERE thread = ?1 AND event_id <= ?2 ORDER BY event_id LIMIT ?3)`
        ),
        close: database.prepare(
          "DELETE FROM threads WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entries WHERE thread = ?1)"
        )
      }
    } catch (error) {
      database.close()
      throw error
    }
  }

  private isOurs({ event_id, hash }: { readonly event_id: number; readonly hash: string }): boolean {
    if (event_id === 0) return true
    const there = this.store.database.prepare("SELECT hash FROM runes WHERE event_id = ?").get(event_id)
    return (there?.["hash"] ?? this.segments.row(event_id)?.hash) === hash
  }

  /** As they are now; listed anew where the store lists others. */
  private get segments(): Segments {
    const listed = listedIn(this.store.database)
    if (JSON.stringify(listed) !== JSON.stringify(this.known.listed)) this.known.list(listed)
    return this.known
  }

  /** The next runes: those that have left the store lie in segments. */
  private next({ page }: Opened): ReadonlyArray<Row> {
    const left = this.place < this.store.left ? this.segments.after(this.place) : []
    return left.length > 0 ? left : (page.all(this.place) as unknown as ReadonlyArray<Row>)
  }

  private fill(opened: Opened): void {
    const { database, enter, setPlace } = opened
    const rows = this.next(opened)
    const last = rows.at(-1)
    if (last === undefined) {
      this.newest = this.place
      return
    }
    database.exec("BEGIN IMMEDIATE")
    try {
      for (const row of rows) enter.run(this.threadOf(opened, row), row.event_id)
      setPlace.run(last.event_id, last.hash)
      database.exec("COMMIT")
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK")
      // some were never written
      this.threads.clear()
      throw error
    }
    this.place = last.event_id
  }

  /** Entries of deleted runes go, some at a time. Answers the last thread that has none. */
  private takeOut({ close, database, takeOut, threads }: Opened, after: number): number | undefined {
    const { deleted } = this.segments
    const next = threads.all(after)
    if (next.length === 0) return undefined
    let cleared = after
    database.exec("BEGIN IMMEDIATE")
    try {
      let room = ENTRIES
      for (const { id } of next) {
        room -= Number((takeOut.run(id!, deleted, room) as { readonly changes: number | bigint }).changes)
        if (room === 0) break
        close.run(id!)
        cleared = id as number
      }
      database.exec("COMMIT")
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK")
      throw error
    } finally {
      // some are no more
      this.threads.clear()
    }
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
