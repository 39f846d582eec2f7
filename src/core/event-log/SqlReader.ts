/**
 * SqlReader: reads runes from a store's table.
 *
 * Each row names the previous row of its stream, and a stream is read by following these links. A link makes a row only
 * one number larger; an index would make appends a third slower.
 */
import { type Duration, Effect } from "effect"
import type { Selection } from "./EventLog.ts"
import type { LogReader, Page } from "./LogReader.ts"
import { COLUMNS, fromRow, type RowValues, rowOfValues } from "./RuneRow.ts"
import type { Database, Statement, Value } from "./Sqlite.ts"
import { storageError, untilItPasses } from "./StorageFailure.ts"
import type { StoredRune } from "./StoredRune.ts"

export const PAGE_ROWS = 256
/** Maximum range of eventIds that one query scans. */
const PAGE_SPAN = 10_000
/** Maximum payload bytes in one piece of a stream. A payload that exceeds it is a piece by itself. */
export const PAGE_BYTES = 1024 * 1024
/** Maximum number of rows that one query reads when it follows a stream backwards. */
const STEPS_BACK = 2_000
/** Maximum number of prepared statements in the cache. */
const MAX_PREPARED = 128

export interface Options {
  /** Path of the store, for error messages. */
  readonly file: string
  /** How long a query is retried if the store is locked. */
  readonly giveUpAfter: Duration.Duration
}

/** Position of a rune, and position of the previous rune of its stream. */
interface Place {
  readonly id: number
  readonly prev: number
  /** Size of the rune's payload in bytes; null if the store has no payload for it. */
  readonly bytes: number | null
}

type Condition = readonly [sql: string, ...values: ReadonlyArray<Value>]

const among = (column: string, values: ReadonlyArray<string>): Condition => [
  `${column} IN (${values.map(() => "?").join(",")})`,
  ...values
]

/** Returns an SQL condition: the actor is one of these. `tool/builder/` matches all actors below it. */
const isOneOf = (actors: ReadonlyArray<string>): Condition => {
  const whole = among(
    "actor",
    actors.filter((name) => !name.endsWith("/"))
  )
  const above = actors.filter((name) => name.endsWith("/"))
  const conditions = [whole[0], ...above.map((name) => `substr(actor, 1, ${name.length}) = ?`)]
  return [`(${conditions.join(" OR ")})`, ...whole.slice(1), ...above]
}

const filters = ({ actor, actors, kinds, since, stream }: Selection): ReadonlyArray<Condition> => [
  ...(stream === undefined ? [] : [["stream = ?", stream] as const]),
  ...(actor === undefined ? [] : [["actor = ?", actor] as const]),
  ...(actors === undefined ? [] : [isOneOf(actors)]),
  ...(kinds === undefined ? [] : [among("kind", kinds)]),
  ...(since === undefined ? [] : [["at >= ?", since] as const])
]

const together = (conditions: ReadonlyArray<Condition>): Condition => [
  conditions.map(([sql]) => sql).join(" AND "),
  ...conditions.flatMap(([, ...values]) => values)
]

/** Rows are read as arrays of values, because `node:sqlite` takes twice as long to create row objects. */
const RUNES = `SELECT ${COLUMNS.map((column) => `runes.${column}`).join(", ")} FROM`

const BACK = `
  WITH RECURSIVE back(id, prev, bytes) AS (
    SELECT event_id, prev, octet_length(payload) FROM runes WHERE event_id = ?
    UNION ALL
    SELECT event_id, runes.prev, octet_length(payload)
    FROM back JOIN runes ON event_id = back.prev WHERE back.prev > ?
    LIMIT ?
  )
  SELECT id, prev, bytes FROM back`

class Queries {
  private readonly database: Database
  private readonly prepared = new Map<string, Statement>()

  constructor(database: Database) {
    this.database = database
  }

  page(selection: Selection, after: number, upTo: number): Page {
    const end = Math.min(upTo, after + PAGE_SPAN)
    const [where, ...values] = together([["event_id > ? AND event_id <= ?", after, end], ...filters(selection)])
    const runes = this.runes(`runes WHERE ${where} ORDER BY event_id LIMIT ${PAGE_ROWS}`, values)
    return { runes, cursor: runes.length < PAGE_ROWS ? end : runes.at(-1)!.eventId }
  }

  pageBack(selection: Selection, before: number, downTo: number, count: number): Page {
    const start = Math.max(downTo, before - PAGE_SPAN)
    const limit = Math.min(count, PAGE_ROWS)
    const [where, ...values] = together([["event_id > ? AND event_id <= ?", start, before], ...filters(selection)])
    const runes = this.runes(`runes WHERE ${where} ORDER BY event_id DESC LIMIT ?`, [...values, limit])
    return { runes, cursor: runes.length < limit ? start : runes.at(-1)!.eventId - 1 }
  }

  /** Positions of a stream's runes, from its rune `newest` back to the position `after`, newest first. */
  back(newest: number, after: number, count: number): ReadonlyArray<Place> {
    const rows = this.statement(BACK).all(newest, after, Math.min(count, STEPS_BACK)) as unknown as ReadonlyArray<
      readonly [id: number, prev: number, bytes: number | null]
    >
    return rows.map(([id, prev, bytes]) => ({ id, prev, bytes }))
  }

  at(positions: ReadonlyArray<number>): ReadonlyArray<StoredRune> {
    return this.runes("json_each(?) AS place CROSS JOIN runes ON runes.event_id = place.value", [
      JSON.stringify(positions)
    ])
  }

  /** Reads the newest matching runes. Other runes are skipped in the database, so their payloads are not read. */
  newest(positions: ReadonlyArray<number>, selection: Selection, count: number): ReadonlyArray<StoredRune> {
    const [where, ...values] = together([["runes.event_id = place.value"], ...filters(selection)])
    return this.runes(`json_each(?) AS place CROSS JOIN runes ON ${where} LIMIT ?`, [
      JSON.stringify(positions.toReversed()),
      ...values,
      count
    ])
  }

  get lastCommitted(): number {
    const [row] = this.statement("SELECT event_id FROM head").all() as unknown as ReadonlyArray<readonly [number]>
    return row?.[0] ?? 0
  }

  private runes(from: string, values: ReadonlyArray<Value>): ReadonlyArray<StoredRune> {
    const rows = this.statement(`${RUNES} ${from}`).all(...values) as unknown as ReadonlyArray<RowValues>
    return rows.map((row) => fromRow(rowOfValues(row)))
  }

  private statement(sql: string): Statement {
    const known = this.prepared.get(sql)
    if (known !== undefined) return known
    const statement = this.database.prepare(sql)
    statement.setReturnArrays(true)
    if (this.prepared.size >= MAX_PREPARED) this.prepared.delete(this.prepared.keys().next().value!)
    this.prepared.set(sql, statement)
    return statement
  }
}

export const make = (database: Database, { file, giveUpAfter }: Options): LogReader => {
  const query = new Queries(database)
  const patiently = <A>(read: () => A) =>
    untilItPasses(giveUpAfter)(Effect.try({ try: read, catch: (cause) => storageError(file, cause) }))
  /** Calls `each` with the positions of a stream's runes, newest first. */
  const back = Effect.fnUntraced(function* (
    newest: number,
    after: number,
    count: number,
    each: (place: Place) => void
  ) {
    let left = count
    for (let next = newest; next > after && left > 0;) {
      const rows = yield* patiently(() => query.back(next, after, left))
      for (const place of rows) each(place)
      left -= rows.length
      next = rows.at(-1)?.prev ?? 0
      if (next > after) yield* Effect.yieldNow
    }
  })
  return {
    page: (selection, after, upTo) => patiently(() => query.page(selection, after, upTo)),
    pageBack: (selection, before, downTo, count) => patiently(() => query.pageBack(selection, before, downTo, count)),
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
    at: (positions) => patiently(() => query.at(positions)),
    newest: (positions, selection, count) => patiently(() => query.newest(positions, selection, count)),
    lastCommitted: patiently(() => query.lastCommitted)
  }
}
