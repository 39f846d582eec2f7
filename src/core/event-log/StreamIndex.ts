/**
 * StreamIndex: stores the newest rune of each stream, the snapshots, and the positions of subscribers in the side file
 * next to the store. Without this file, a start would have to read the whole store.
 *
 * The tables are written when the store is idle, and record the position up to which they are valid. After a crash they
 * are consistent but can lack the newest runes, which are then read from the store.
 */
import { ChainWalk } from "./ChainWalk.ts"
import type { Problem } from "./EventLog.ts"
import { hashPayload } from "./HashChain.ts"
import { fromRow, HEADER_COLUMNS, type RuneRow } from "./RuneRow.ts"
import { sealOf, type SnapshotOrder, type SnapshotRow } from "./Snapshot.ts"
import { type SideFile, VERSION } from "./SideFile.ts"
import type { Database, Value } from "./Sqlite.ts"
import type { Head } from "./SegmentFile.ts"
import { emptyWal, type SqliteStore } from "./SqliteStore.ts"

/** Number of newest runes whose chains are checked before the store is used. */
const WINDOW = 5_000
const PAGE = 1_000
/** Number of pages after which a long walk saves its results, so that an interrupted start can continue there. */
const KEEP_EVERY = 100
/** Maximum number of changed streams since the last flush. Above it, the next flush does not wait for an idle store. */
export const MANY_CHANGED = 4_096
/** Maximum number of runes since the last flush. Above it, the next flush does not wait for an idle store. */
export const MANY_RUNES = 16_384

interface Place {
  readonly version: number
  readonly event_id: number
  readonly hash: string
  /** Number of rows in the table of streams. */
  readonly streams: number
}

/** Checksum (seal) of a stream's head. A damaged head would make the stream continue from a wrong rune. */
const sealOfHead = (stream: string, { eventId, guarded, hash, isSealed, seq }: Head): string =>
  hashPayload(JSON.stringify([stream, eventId, seq, hash, isSealed, guarded])).slice(0, 16)

/** Reads the heads. Throws if one of them is damaged. */
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

/** Returns the problems of the side file. An older version is no problem, because the next start discards the file. */
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

export class StreamIndex {
  private readonly side: SideFile
  private readonly changed = new Set<string>()
  private runes = 0

  constructor(side: SideFile) {
    this.side = side
  }

  /** Updates the store's heads and the side file to the newest rune. Returns problems found in the newest runes. */
  restore(store: SqliteStore): ReadonlyArray<Problem> {
    const place = this.load(store)
    if (place === undefined) {
      store.heads.clear()
      for (const { stream, ...head } of store.leftHeads) {
        store.heads.set(stream, head)
        this.changed.add(stream)
      }
      this.side.renew()
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
    if (this.changed.size === 0 || this.side.isBroken) return "none"
    return this.changed.size > MANY_CHANGED || this.runes > MANY_RUNES ? "much" : "some"
  }

  /** Writes the changes. If that fails, the file is only outdated, because it records up to which rune it is valid. */
  flush(store: SqliteStore): void {
    if (this.changed.size === 0) return
    const isWritten = this.side.attempt(() => {
      const setHead = this.database.prepare("INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?, ?, ?, ?)")
      let place: Head | undefined
      for (const stream of this.changed) {
        const head = store.heads.get(stream)!
        const { eventId, guarded, hash, isSealed, seq } = head
        setHead.run(stream, eventId, seq, hash, Number(isSealed), guarded, sealOfHead(stream, head))
        if (place === undefined || head.eventId > place.eventId) place = head
      }
      this.database
        .prepare("UPDATE place SET event_id = ?, hash = ?, streams = ?")
        .run(place!.eventId, place!.hash, store.heads.size)
    })
    if (!isWritten) return
    this.changed.clear()
    this.runes = 0
  }

  /** Writes everything except the snapshots into a new file. New snapshots are saved over time. */
  renew(store: SqliteStore): void {
    this.side.renew()
    for (const stream of store.heads.keys()) this.changed.add(stream)
    this.flush(store)
  }

  /**
   * Saves a snapshot, after the heads of the streams. Discards a snapshot whose eventId is not a rune of its stream.
   */
  keep(store: SqliteStore, { eventId, name, state, stream, version }: SnapshotOrder): void {
    this.flush(store)
    const rune = store.database.prepare("SELECT stream, seq, hash FROM runes WHERE event_id = ?").get(eventId) as
      | { readonly stream: string; readonly seq: number; readonly hash: string }
      | undefined
    if (rune === undefined || rune.stream !== stream) return
    const { hash, seq } = rune
    const seal = sealOf({ stream, name, version, eventId, seq, hash, state })
    this.write("snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?)", stream, name, version, eventId, seq, hash, seal, state)
  }

  /** Saves the position of a subscriber, if the store has a rune at that position. */
  keepPosition({ database }: SqliteStore, name: string, eventId: number): void {
    const rune = database.prepare("SELECT hash FROM runes WHERE event_id = ?").get(eventId)
    if (rune !== undefined) this.write("subscribers VALUES (?, ?, ?)", name, eventId, rune["hash"]!)
  }

  /** Deletes all snapshots of the stream, from the file and from its write-ahead log. */
  forget(store: SqliteStore, stream: string): void {
    if (this.side.isBroken) return this.renew(store)
    this.database.prepare("DELETE FROM snapshots WHERE stream = ?").run(stream)
    emptyWal(this.database)
  }

  private get database(): Database {
    return this.side.database
  }

  private write(row: string, ...values: ReadonlyArray<Value>): void {
    this.side.attempt(() => void this.database.prepare(`INSERT OR REPLACE INTO ${row}`).run(...values))
  }

  /**
   * Returns the position up to which the file is valid. Undefined if the file cannot be trusted: its position must name
   * a rune of this store.
   */
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
    // the file cannot be continued if it lacks runes that were already moved out of the store
    if (place === undefined || place.version !== VERSION || place.event_id < store.left) return undefined
    if (place.event_id === 0) return 0
    const there = store.database.prepare("SELECT hash FROM runes WHERE event_id = ?").get(place.event_id) as
      | { readonly hash: string }
      | undefined
    return there?.hash === place.hash ? place.event_id : undefined
  }

  /** Reads and checks the newest runes and all runes that the file lacks. */
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
