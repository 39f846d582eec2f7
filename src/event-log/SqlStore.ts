/**
 * SqlStore: runes in a table, through a SqlClient and nothing else.
 *
 * A group is one transaction. Reading is done in pieces: a query looks at a
 * bounded range of ids and returns a bounded number of rows, so that no reader
 * holds anything open and a rare filter stops nobody for long.
 */
import { Array as Arr, type Duration, Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import type { Visibility } from "./Rune.ts"
import type { Selection } from "./EventLog.ts"
import { fromSqlError, untilItPasses } from "./StorageFailure.ts"
import type { Page, Store, StoredRune } from "./Store.ts"

/** Rows of one page. */
const PAGE_ROWS = 256
/** Ids that one query looks at. */
const PAGE_SPAN = 10_000
/**
 * Pages of the write-ahead log after which it is folded into the file: when
 * nobody writes, and whatever happens. A page costs about 10 µs, during which
 * nothing is appended.
 */
const SOME_PAGES = 250
const MUCH_PAGES = 1_000
const PAGE_BYTES = 4096
/** What a commit writes besides the runes' own bytes, in pages and per rune in bytes. */
const COMMIT_PAGES = 3
const RUNE_BYTES = 350

/** Rows of one INSERT at most: powers of two, so that few statements are ever prepared. */
const MAX_INSERT = 256

export interface Options {
  /** For messages. */
  readonly file: string
  /** How long a write that may pass is tried again. */
  readonly giveUpAfter: Duration.Duration
}

type Row = {
  readonly event_id: number
  readonly stream: string
  readonly at: number
  readonly kind: string
  readonly actor: string
  readonly from_state: string | null
  readonly to_state: string | null
  readonly trigger_name: string | null
  readonly cause: number | null
  readonly visibility: Visibility
  readonly payload: string | null
  readonly payload_hash: string
  readonly hash: string
}

const toRow = (rune: StoredRune): Row => ({
  event_id: rune.eventId,
  stream: rune.stream,
  at: rune.at,
  kind: rune.kind,
  actor: rune.actor,
  from_state: rune.from,
  to_state: rune.to,
  trigger_name: rune.trigger,
  cause: rune.cause,
  visibility: rune.visibility,
  payload: rune.payload,
  payload_hash: rune.payloadHash,
  hash: rune.hash
})

const fromRow = (row: Row): StoredRune => ({
  eventId: row.event_id,
  stream: row.stream,
  at: row.at,
  kind: row.kind,
  actor: row.actor,
  from: row.from_state,
  to: row.to_state,
  trigger: row.trigger_name,
  cause: row.cause,
  visibility: row.visibility,
  payload: row.payload,
  payloadHash: row.payload_hash,
  hash: row.hash
})

/** The largest power of two up to what is left. */
const chunks = (rows: ReadonlyArray<Row>): ReadonlyArray<Arr.NonEmptyArray<Row>> => {
  const all: Array<Arr.NonEmptyArray<Row>> = []
  for (let start = 0; start < rows.length;) {
    const size = Math.min(MAX_INSERT, 2 ** Math.floor(Math.log2(rows.length - start)))
    const chunk = rows.slice(start, start + size)
    if (Arr.isArrayNonEmpty(chunk)) all.push(chunk)
    start += size
  }
  return all
}

const pagesOf = (runes: ReadonlyArray<StoredRune>): number => {
  let bytes = 0
  for (const rune of runes) bytes += RUNE_BYTES + (rune.payload?.length ?? 0)
  return COMMIT_PAGES + Math.ceil(bytes / PAGE_BYTES)
}

const filters = (sql: SqlClient.SqlClient, selection: Selection): ReadonlyArray<Statement.Fragment> => [
  ...(selection.stream === undefined ? [] : [sql`stream = ${selection.stream}`]),
  ...(selection.actor === undefined ? [] : [sql`actor = ${selection.actor}`]),
  ...(selection.kinds === undefined ? [] : [sql.in("kind", selection.kinds)]),
  ...(selection.since === undefined ? [] : [sql`at >= ${selection.since}`])
]

/** The queries, as the database answers them. */
const queries = (sql: SqlClient.SqlClient) => ({
  insert: (runes: ReadonlyArray<StoredRune>) =>
    sql.withTransaction(
      Effect.gen(function* () {
        for (const rows of chunks(runes.map(toRow))) yield* sql`INSERT INTO runes ${sql.insert(rows)}`
        yield* sql`UPDATE head SET event_id = ${runes[runes.length - 1]!.eventId}`
      })
    ),

  page: (selection: Selection, after: number, upTo: number): Effect.Effect<Page, SqlError.SqlError> => {
    const end = Math.min(upTo, after + PAGE_SPAN)
    const where = sql.and([sql`event_id > ${after} AND event_id <= ${end}`, ...filters(sql, selection)])
    return Effect.map(sql<Row>`SELECT * FROM runes WHERE ${where} ORDER BY event_id LIMIT ${PAGE_ROWS}`, (rows) => ({
      runes: rows.map(fromRow),
      cursor: rows.length < PAGE_ROWS ? end : rows[PAGE_ROWS - 1]!.event_id
    }))
  },

  pageBack: (selection: Selection, before: number, downTo: number, count: number) => {
    const start = Math.max(downTo, before - PAGE_SPAN)
    const limit = Math.min(count, PAGE_ROWS)
    const where = sql.and([sql`event_id > ${start} AND event_id <= ${before}`, ...filters(sql, selection)])
    return Effect.map(sql<Row>`SELECT * FROM runes WHERE ${where} ORDER BY event_id DESC LIMIT ${limit}`, (rows) => ({
      runes: rows.map(fromRow),
      cursor: rows.length < limit ? start : rows[limit - 1]!.event_id - 1
    }))
  },

  scan: (after: number, payloadOf: ReadonlyArray<string> | "all") => {
    const payload =
      payloadOf === "all" ? sql`payload` : sql`CASE WHEN ${sql.in("kind", payloadOf)} THEN payload END AS payload`
    return Effect.map(
      sql<Row>`
        SELECT event_id, stream, at, kind, actor, from_state, to_state, trigger_name, cause, visibility,
          ${payload}, payload_hash, hash
        FROM runes WHERE event_id > ${after} ORDER BY event_id LIMIT ${PAGE_ROWS}`,
      (rows) => rows.map(fromRow)
    )
  },

  erase: (stream: string, after: number, upTo: number) =>
    Effect.asVoid(
      sql`UPDATE runes SET payload = NULL
        WHERE event_id > ${after} AND event_id <= ${upTo} AND stream = ${stream} AND payload IS NOT NULL`
    ),

  lastCommitted: Effect.map(sql<{ event_id: number }>`SELECT event_id FROM head`, (rows) => rows[0]?.event_id ?? 0),

  checkpoint: sql.onDialectOrElse({
    sqlite: () => Effect.asVoid(sql`PRAGMA wal_checkpoint(PASSIVE)`),
    orElse: () => Effect.void
  })
})

export const make = (sql: SqlClient.SqlClient, options: Options): Store => {
  const query = queries(sql)
  const patiently = <A>(effect: Effect.Effect<A, SqlError.SqlError>) =>
    untilItPasses(options.giveUpAfter)(Effect.mapError(effect, (error) => fromSqlError(options.file, error)))
  /** Pages that the write-ahead log has grown by since it was last folded in. */
  let pages = 0
  return {
    persist: (runes) => Effect.tap(patiently(query.insert(runes)), () => Effect.sync(() => (pages += pagesOf(runes)))),
    page: (selection, after, upTo) => patiently(query.page(selection, after, upTo)),
    pageBack: (selection, before, downTo, count) => patiently(query.pageBack(selection, before, downTo, count)),
    scan: (after, payloadOf) => patiently(query.scan(after, payloadOf)),
    erase: (stream, after, upTo) => patiently(query.erase(stream, after, upTo)),
    lastCommitted: patiently(query.lastCommitted),
    backlog: () => (pages < SOME_PAGES ? "none" : pages < MUCH_PAGES ? "some" : "much"),
    tidy: Effect.suspend(() => {
      pages = 0
      return Effect.ignore(query.checkpoint)
    })
  }
}
