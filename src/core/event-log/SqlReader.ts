/**
 * SqlReader: runes out of a table, through a SqlClient and nothing else.
 *
 * A stream is read by the chain of its rows, each of which names the row before it: that
 * costs the append one number, where an index would cost it a third of its speed.
 */
import { type Duration, Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import type { Selection } from "./EventLog.ts"
import type { LogReader, Page } from "./LogReader.ts"
import { fromRow, HEADER_COLUMNS, type RuneRow } from "./RuneRow.ts"
import { fromSqlError, untilItPasses } from "./StorageFailure.ts"

export const PAGE_ROWS = 256
/** Ids that one query looks at. */
const PAGE_SPAN = 10_000
/** Bytes of payload in one piece of a stream; a larger payload is a piece by itself. */
export const PAGE_BYTES = 1024 * 1024
/** Rows of a stream that one query goes back. */
const STEPS_BACK = 2_000

export interface Options {
  /** For messages. */
  readonly file: string
  /** How long a query that meets a lock is tried again. */
  readonly giveUpAfter: Duration.Duration
}

/** Where a rune of a stream lies. */
interface Place {
  readonly id: number
  readonly prev: number
  /** Of its payload; null once it was erased. */
  readonly bytes: number | null
}

const isOneOf = (sql: SqlClient.SqlClient, actors: ReadonlyArray<string>): Statement.Fragment => {
  const whole = actors.filter((name) => !name.endsWith("/"))
  const above = actors.filter((name) => name.endsWith("/"))
  return sql.or([
    ...(whole.length === 0 ? [] : [sql.in("actor", whole)]),
    ...above.map((name) => sql`substr(actor, 1, ${name.length}) = ${name}`)
  ])
}

const filters = (sql: SqlClient.SqlClient, selection: Selection): ReadonlyArray<Statement.Fragment> => [
  ...(selection.stream === undefined ? [] : [sql`stream = ${selection.stream}`]),
  ...(selection.actor === undefined ? [] : [sql`actor = ${selection.actor}`]),
  ...(selection.actors === undefined ? [] : [isOneOf(sql, selection.actors)]),
  ...(selection.kinds === undefined ? [] : [sql.in("kind", selection.kinds)]),
  ...(selection.since === undefined ? [] : [sql`at >= ${selection.since}`])
]

const queries = (sql: SqlClient.SqlClient) => ({
  page: (selection: Selection, after: number, upTo: number): Effect.Effect<Page, SqlError.SqlError> => {
    const end = Math.min(upTo, after + PAGE_SPAN)
    const where = sql.and([sql`event_id > ${after} AND event_id <= ${end}`, ...filters(sql, selection)])
    return Effect.map(
      sql<RuneRow>`SELECT * FROM runes WHERE ${where} ORDER BY event_id LIMIT ${PAGE_ROWS}`,
      (rows) => ({
        runes: rows.map(fromRow),
        cursor: rows.length < PAGE_ROWS ? end : rows[PAGE_ROWS - 1]!.event_id
      })
    )
  },

  pageBack: (selection: Selection, before: number, downTo: number, count: number) => {
    const start = Math.max(downTo, before - PAGE_SPAN)
    const limit = Math.min(count, PAGE_ROWS)
    const where = sql.and([sql`event_id > ${start} AND event_id <= ${before}`, ...filters(sql, selection)])
    return Effect.map(
      sql<RuneRow>`SELECT * FROM runes WHERE ${where} ORDER BY event_id DESC LIMIT ${limit}`,
      (rows) => ({
        runes: rows.map(fromRow),
        cursor: rows.length < limit ? start : rows[limit - 1]!.event_id - 1
      })
    )
  },

  scan: (after: number, payloadOf: ReadonlyArray<string> | "all") => {
    const payload =
      payloadOf === "all" ? sql`payload` : sql`CASE WHEN ${sql.in("kind", payloadOf)} THEN payload END AS payload`
    return Effect.map(
      sql<RuneRow>`
        SELECT ${sql.literal(HEADER_COLUMNS)}, ${payload}
        FROM runes WHERE event_id > ${after} ORDER BY event_id LIMIT ${PAGE_ROWS}`,
      (rows) => rows.map(fromRow)
    )
  },

  /** Newest first; `next` is where to go on. */
  back: (newest: number, after: number, count: number) =>
    sql<Place>`
      WITH RECURSIVE back(id, prev, bytes) AS (
        SELECT event_id, prev, octet_length(payload) FROM runes WHERE event_id = ${newest}
        UNION ALL
        SELECT event_id, runes.prev, octet_length(payload)
        FROM back JOIN runes ON event_id = back.prev WHERE back.prev > ${after}
        LIMIT ${Math.min(count, STEPS_BACK)}
      )
      SELECT id, prev, bytes FROM back`,

  at: (positions: ReadonlyArray<number>) =>
    Effect.map(
      sql<RuneRow>`
        SELECT runes.* FROM json_each(${JSON.stringify(positions)}) AS place
        CROSS JOIN runes ON runes.event_id = place.value`,
      (rows) => rows.map(fromRow)
    ),

  /** Reads the newest matching runes; a rune that does not match stays in the database, and its payload is not read. */
  newest: (positions: ReadonlyArray<number>, selection: Selection, count: number) => {
    const where = sql.and([sql`runes.event_id = place.value`, ...filters(sql, selection)])
    return Effect.map(
      sql<RuneRow>`
        SELECT runes.* FROM json_each(${JSON.stringify(positions.toReversed())}) AS place
        CROSS JOIN runes ON ${where} LIMIT ${count}`,
      (rows) => rows.map(fromRow)
    )
  },

  lastCommitted: Effect.map(sql<{ event_id: number }>`SELECT event_id FROM head`, (rows) => rows[0]?.event_id ?? 0)
})

export const make = (sql: SqlClient.SqlClient, options: Options): LogReader => {
  const query = queries(sql)
  const patiently = <A>(effect: Effect.Effect<A, SqlError.SqlError>) =>
    untilItPasses(options.giveUpAfter)(Effect.mapError(effect, (error) => fromSqlError(options.file, error)))
  /** The places of a stream, newest first. */
  const back = Effect.fnUntraced(function* (
    newest: number,
    after: number,
    count: number,
    each: (place: Place) => void
  ) {
    let left = count
    for (let next = newest; next > after && left > 0;) {
      const rows = yield* patiently(query.back(next, after, left))
      for (const place of rows) each(place)
      left -= rows.length
      next = rows.at(-1)?.prev ?? 0
      if (next > after) yield* Effect.yieldNow
    }
  })
  return {
    page: (selection, after, upTo) => patiently(query.page(selection, after, upTo)),
    pageBack: (selection, before, downTo, count) => patiently(query.pageBack(selection, before, downTo, count)),
    scan: (after, payloadOf) => patiently(query.scan(after, payloadOf)),
    positions: Effect.fnUntraced(function* (newest, after, count) {
      const found: Array<number> = []
      yield* back(newest, after, count, ({ id }) => found.push(id))
      return found.toReversed()
    }),
    pages: Effect.fnUntraced(function* (newest, after) {
      const pages: Array<Array<number>> = [[]]
      let room = PAGE_BYTES
      yield* back(newest, after, Number.MAX_SAFE_INTEGER, ({ bytes, id }) => {
        const last = pages.at(-1)!
        room -= bytes ?? 0
        if (last.length > 0 && (last.length === PAGE_ROWS || room < 0)) {
          room = PAGE_BYTES - (bytes ?? 0)
          pages.push([id])
        } else last.push(id)
      })
      return pages.toReversed().map((page) => page.toReversed())
    }),
    at: (positions) => patiently(query.at(positions)),
    newest: (positions, selection, count) => patiently(query.newest(positions, selection, count)),
    lastCommitted: patiently(query.lastCommitted)
  }
}
