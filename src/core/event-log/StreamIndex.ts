/**
 * StreamIndex: a file beside the store with what a start would else read the whole store
 * for: the newest rune of each stream, the snapshots, and how far each subscriber has
 * come. Nothing in the file is the truth: in doubt it is discarded, and made anew from the runes.
 *
 * The file has a position of its own and is written when the store rests, without a wait
 * for the disk: after a crash it is whole and at worst a little behind, and what it lacks
 * is read from the runes.
 */
import { ChainWalk } from "./ChainWalk.ts"
import type { Problem } from "./EventLog.ts"
import { GENESIS, hashPayload } from "./HashChain.ts"
import { fromRow, HEADER_COLUMNS, type RuneRow } from "./RuneRow.ts"
import { sealOf, type SnapshotOrder, type SnapshotRow } from "./Snapshot.ts"
import { type Database, nodeSqlite, type Sqlite, type Statement } from "./Sqlite.ts"
import type { Head } from "./SegmentFile.ts"
import { emptyWal, type SqliteStore } from "./SqliteStore.ts"

export const indexFileOf = (file: string): string => `${file}.index`

export const VERSION = 2
/** The newest runes whose chains are checked before the store is used. */
const WINDOW = 5_000
const PAGE = 1_000
/** Pages after which a long walk keeps what it has found: a start that is cut off goes on from there. */
const KEEP_EVERY = 100
/** Streams that changed since the last flush: beyond them it does not wait for a rest. */
export const MANY_CHANGED = 4_096
/** Runes since the last flush, likewise. */
export const MANY_RUNES = 16_384

const SCHEMA = `
  PRAGMA busy_timeout=0; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
  CREATE TABLE IF NOT EXISTS place (
    one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, event_id INTEGER NOT NULL, hash TEXT NOT NULL,
    streams INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS streams (
    stream TEXT PRIMARY KEY, event_id INTEGER NOT NULL, seq INTEGER NOT NULL, hash TEXT NOT NULL,
    sealed INTEGER NOT NULL, guarded INTEGER NOT NULL, seal TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS snapshots (
    stream TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, event_id INTEGER NOT NULL, seq INTEGER NOT NULL,
    hash TEXT NOT NULL, seal TEXT NOT NULL, state BLOB NOT NULL, PRIMARY KEY (stream, name)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS subscribers (
    name TEXT PRIMARY KEY, event_id INTEGER NOT NULL, hash TEXT NOT NULL
  ) STRICT;
  INSERT OR IGNORE INTO place VALUES (1, ${VERSION}, 0, '${GENESIS}', 0)`

interface Place {
  readonly version: number
  readonly event_id: number
  readonly hash: string
  /** Rows of the table of streams. */
  readonly streams: number
}

/** A head that was damaged would let the stream go on from elsewhere: each is bound to its own bytes. */
const sealOfHead = (stream: string, { eventId, guarded, hash, isSealed, seq }: Head): string =>
  hashPayload(JSON.stringify([stream, eventId, seq, hash, isSealed, guarded])).slice(0, 16)

/** Throws where one of them is not as it was written. */
const headsIn = (database: Database): ReadonlyArray<readonly [stream: string, head: Head]> => {
  const rows = database.prepare("SELECT * FROM streams").all() as unknown as ReadonlyArray<
    Omit<Head, "eventId" | "isSealed"> & {
      readonly stream: string
      readonly event_id: number
      readonly sealed: number
      readonly seal: string
    }
  >
  return rows.map(({ event_id, guarded, hash, seal, sealed, seq, stream }) => {
    const head = { eventId: event_id, seq, hash, isSealed: sealed === 1, guarded }
    if (sealOfHead(stream, head) !== seal) throw new Error(`the head of ${stream} is not as it was written`)
    return [stream, head]
  })
}

/** Problems of the file; one of another version is discarded by the next start. */
export const problemsOf = (database: Database): ReadonlyArray<string> => {
  const place = database.prepare("SELECT version, event_id, hash, streams FROM place").get() as unknown as
    | Place
    | undefined
  if (place !== undefined && place.version < VERSION) return []
  if (place?.version !== VERSION || headsIn(database).length !== place.streams) return ["it lacks streams"]
  return database
    .prepare("SELECT * FROM snapshots")
    .all()
    .flatMap((row) => {
      const { event_id: eventId, seal, ...rest } = row as unknown as SnapshotRow & { readonly event_id: number }
      return sealOf({ ...rest, eventId }) === seal ? [] : [`the snapshot ${rest.name} of ${rest.stream} was changed`]
    })
}

const endings = ["", "-wal", "-shm"]

interface Opened {
  readonly database: Database
  readonly setHead: Statement
  readonly setPlace: Statement
  readonly setSnapshot: Statement
  readonly setPosition: Statement
}

const open = (sqlite: Sqlite, file: string): Opened => {
  const database = sqlite.open(file)
  try {
    database.exec(SCHEMA)
    return {
      database,
      setHead: database.prepare("INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?, ?, ?, ?)"),
      setPlace: database.prepare("UPDATE place SET event_id = ?, hash = ?, streams = ?"),
      setSnapshot: database.prepare("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
      setPosition: database.prepare("INSERT OR REPLACE INTO subscribers VALUES (?, ?, ?)")
    }
  } catch (error) {
    database.close()
    throw error
  }
}

/** An empty one in its place. */
const anew = (sqlite: Sqlite, file: string): Opened => {
  for (const ending of endings) sqlite.remove(`${file}${ending}`)
  return open(sqlite, file)
}

export class StreamIndex {
  private readonly file: string
  private readonly sqlite: Sqlite
  private opened: Opened
  private readonly changed = new Set<string>()
  private runes = 0
  /** True where the index cannot be written: it stays as it is until the next start. */
  private isBroken = false

  constructor(file: string, sqlite = nodeSqlite) {
    this.file = file
    this.sqlite = sqlite
    try {
      this.opened = open(sqlite, file)
    } catch {
      this.opened = anew(sqlite, file)
    }
  }

  /** Brings the store's heads and the file up to the newest rune. What is wrong with the newest runes is the answer. */
  restore(store: SqliteStore): ReadonlyArray<Problem> {
    const place = this.load(store)
    if (place === undefined) {
      store.heads.clear()
      for (const { stream, ...head } of store.leftHeads) {
        store.heads.set(stream, head)
        this.changed.add(stream)
      }
      this.discard()
    }
    const problems = this.walk(store, place ?? store.left)
    this.flush(store)
    return problems
  }

  committed(streams: Iterable<string>, runes: number): void {
    for (const stream of streams) this.changed.add(stream)
    this.runes += runes
  }

  get backlog(): "none" | "some" | "much" {
    if (this.changed.size === 0 || this.isBroken) return "none"
    return this.changed.size > MANY_CHANGED || this.runes > MANY_RUNES ? "much" : "some"
  }

  /** Writes what changed. A file that does not take it is left behind: its place says how far it is good. */
  flush(store: SqliteStore): void {
    if (this.changed.size === 0 || this.isBroken) return
    this.attempt(() => {
      let place: Head | undefined
      for (const stream of this.changed) {
        const head = store.heads.get(stream)!
        const { eventId, guarded, hash, isSealed, seq } = head
        this.opened.setHead.run(stream, eventId, seq, hash, Number(isSealed), guarded, sealOfHead(stream, head))
        if (place === undefined || head.eventId > place.eventId) place = head
      }
      this.opened.setPlace.run(place!.eventId, place!.hash, store.heads.size)
    })
    this.changed.clear()
    this.runes = 0
  }

  /** Snapshots are kept behind the runes that they speak of; one that names no rune of its stream is dropped. */
  keep(store: SqliteStore, { eventId, name, state, stream, version }: SnapshotOrder): void {
    this.flush(store)
    if (this.isBroken) return
    const rune = store.database.prepare("SELECT stream, seq, hash FROM runes WHERE event_id = ?").get(eventId) as
      | { readonly stream: string; readonly seq: number; readonly hash: string }
      | undefined
    if (rune === undefined || rune.stream !== stream) return
    const { hash, seq } = rune
    const seal = sealOf({ stream, name, version, eventId, seq, hash, state })
    this.attempt(() => this.opened.setSnapshot.run(stream, name, version, eventId, seq, hash, seal, state))
  }

  /** How far a subscriber has come: a rune that is in the store. */
  keepPosition({ database }: SqliteStore, name: string, eventId: number): void {
    if (this.isBroken) return
    const rune = database.prepare("SELECT hash FROM runes WHERE event_id = ?").get(eventId) as
      | { readonly hash: string }
      | undefined
    if (rune !== undefined) this.attempt(() => this.opened.setPosition.run(name, eventId, rune.hash))
  }

  /** No snapshot of the stream, nor any page that once held one, is left. */
  forget(stream: string): void {
    if (this.isBroken) return this.discard()
    this.database.prepare("DELETE FROM snapshots WHERE stream = ?").run(stream)
    this.database.exec("VACUUM")
    emptyWal(this.database)
  }

  close(): void {
    // no longer open where the file could not be made anew
    if (this.database.isOpen) this.database.close()
  }

  private get database(): Database {
    return this.opened.database
  }

  private discard(): void {
    if (this.database.isOpen) this.database.close()
    this.opened = anew(this.sqlite, this.file)
  }

  private attempt(write: () => void): void {
    try {
      this.database.exec("BEGIN IMMEDIATE")
      write()
      this.database.exec("COMMIT")
    } catch {
      this.isBroken = true
      if (this.database.isTransaction) this.database.exec("ROLLBACK")
    }
  }

  /** How far the file is good: its place must name a rune of this very store. Undefined in doubt. */
  private load(store: SqliteStore): number | undefined {
    let place: Place | undefined
    try {
      place = this.database.prepare("SELECT version, event_id, hash, streams FROM place").get() as unknown as
        | Place
        | undefined
      for (const [stream, head] of headsIn(this.database)) store.heads.set(stream, head)
      if (store.heads.size !== place?.streams) return undefined
    } catch {
      return undefined
    }
    // behind what has left the store there is nothing to go on from
    if (place === undefined || place.version !== VERSION || place.event_id < store.left) return undefined
    if (place.event_id === 0) return 0
    const there = store.database.prepare("SELECT hash FROM runes WHERE event_id = ?").get(place.event_id) as
      | { readonly hash: string }
      | undefined
    return there?.hash === place.hash ? place.event_id : undefined
  }

  /** Over the newest runes, and all that the file lacks. */
  private walk(store: SqliteStore, place: number): ReadonlyArray<Problem> {
    const { database } = store
    const newest = database.prepare("SELECT max(event_id) AS last FROM runes").get() as { readonly last: number | null }
    let cursor = Math.max(store.left, Math.min(place, (newest.last ?? 0) - WINDOW))
    const page = database.prepare(
      `SELECT ${HEADER_COLUMNS}, NULL AS payload FROM runes WHERE event_id > ? ORDER BY event_id LIMIT ${PAGE}`
    )
    const walk = new ChainWalk({ after: cursor, before: (rune) => store.linkBefore(rune) })
    for (let pages = 1; ; pages++) {
      const rows = page.all(cursor) as unknown as ReadonlyArray<RuneRow>
      if (rows.length === 0) return walk.problems
      for (const row of rows) {
        const rune = fromRow(row)
        walk.next(rune)
        if (rune.eventId > place) {
          store.restore(rune.stream, rune.kind, rune)
          this.changed.add(rune.stream)
        }
      }
      cursor = rows[rows.length - 1]!.event_id
      if (pages % KEEP_EVERY === 0) this.flush(store)
    }
  }
}
