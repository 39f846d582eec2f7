/**
 * NodeSqlite: a SqlClient over node:sqlite, for there is no release of
 * `@effect/sql-sqlite-node` that fits effect 4.1.
 *
 * One connection behind a semaphore. WAL with `synchronous=FULL`: what is
 * committed survives a power cut. It never waits for a lock inside SQLite, since
 * that would stop the whole process: whoever meets a lock tries again later. The
 * WAL is not checkpointed by a commit; the owner does that when it has time.
 */
import { Effect, Semaphore, Stream } from "effect"
import { SqlClient, type SqlConnection, SqlError, Statement } from "effect/sql"
import {
  type Database,
  nodeSqlite,
  type Output,
  type Sqlite,
  type Statement as Prepared,
  type Value
} from "./Sqlite.ts"

export interface Config {
  readonly file: string
  readonly readOnly?: boolean
  /** The file grows no larger than this. */
  readonly maxBytes?: number
  /** Left out: `node:sqlite`. */
  readonly sqlite?: Sqlite
}

const MAX_PREPARED = 128

const PAGE_BYTES = 4096

const pragmas = ({ readOnly, maxBytes }: Config): string =>
  [
    "PRAGMA busy_timeout=0",
    ...(readOnly === true
      ? ["PRAGMA query_only=ON"]
      : [
          `PRAGMA page_size=${PAGE_BYTES}`,
          "PRAGMA journal_mode=WAL",
          "PRAGMA synchronous=FULL",
          "PRAGMA wal_autocheckpoint=0",
          ...(maxBytes === undefined ? [] : [`PRAGMA max_page_count=${Math.ceil(maxBytes / PAGE_BYTES)}`])
        ])
  ].join(";")

/** SqlError reads the number of an SQLite error from `errno`; node:sqlite calls it `errcode`. */
const sqlError = (cause: unknown, operation: string): SqlError.SqlError => {
  if (cause instanceof Error && "errcode" in cause && !("errno" in cause)) {
    Object.assign(cause, { errno: cause.errcode })
  }
  const message = `sqlite: ${operation} failed`
  return new SqlError.SqlError({ reason: SqlError.classifySqliteError(cause, { message, operation }) })
}

/** node:sqlite binds neither booleans nor undefined. */
const bind = (parameter: unknown): Value =>
  parameter === undefined ? null : typeof parameter === "boolean" ? Number(parameter) : (parameter as Value)

const open = (config: Config) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const database = (config.sqlite ?? nodeSqlite).open(config.file, { readOnly: config.readOnly === true })
        try {
          database.exec(pragmas(config))
          return database
        } catch (error) {
          database.close()
          throw error
        }
      },
      catch: (cause) => sqlError(cause, "open")
    }),
    (database) => Effect.sync(() => database.close())
  )

type Values = ReadonlyArray<Output[string]>

/** A statement, and what it answers with: to ask for its columns costs more than many an answer. */
class Query {
  private readonly statement: Prepared
  private columns: ReadonlyArray<string>

  constructor(statement: Prepared) {
    statement.setReturnArrays(true)
    this.statement = statement
    this.columns = namesOf(statement)
  }

  get hasRows(): boolean {
    return this.columns.length > 0
  }

  run(parameters: Array<Value>): unknown {
    return this.statement.run(...parameters)
  }

  values(parameters: Array<Value>): ReadonlyArray<Values> {
    return this.statement.all(...parameters) as ReadonlyArray<unknown> as ReadonlyArray<Values>
  }

  /** Objects of one shape, made of arrays: those of node:sqlite are dictionaries, which cost twice as much. */
  objects(parameters: Array<Value>): ReadonlyArray<Output> {
    const rows = this.values(parameters)
    // a table may have been altered since
    if (rows.length > 0 && rows[0]!.length !== this.columns.length) this.columns = namesOf(this.statement)
    return rows.map((values) => objectOf(this.columns, values))
  }
}

const namesOf = (statement: Prepared): ReadonlyArray<string> => statement.columns().map(({ name }) => name)

const objectOf = (columns: ReadonlyArray<string>, values: Values): Output => {
  const row: { [column: string]: Values[number] } = {}
  for (let index = 0; index < columns.length; index++) row[columns[index]!] = values[index]!
  return row
}

const connect = (database: Database): SqlConnection.Connection => {
  const prepared = new Map<string, Query>()
  const prepare = (sql: string) => {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const query = new Query(database.prepare(sql))
    if (prepared.size >= MAX_PREPARED) prepared.delete(prepared.keys().next().value!)
    prepared.set(sql, query)
    return query
  }
  const run = (
    sql: string,
    parameters: ReadonlyArray<unknown>,
    options: { readonly arrays?: boolean; readonly raw?: boolean; readonly unprepared?: boolean } = {}
    // oxlint-disable-next-line no-explicit-any -- SqlConnection's own rows are `any`
  ): Effect.Effect<any, SqlError.SqlError> =>
    Effect.try({
      try: () => {
        const query = options.unprepared === true ? new Query(database.prepare(sql)) : prepare(sql)
        const bound = parameters.map(bind)
        if (query.hasRows) return options.arrays === true ? query.values(bound) : query.objects(bound)
        const result = query.run(bound)
        return options.raw === true ? result : []
      },
      catch: (cause) => sqlError(cause, "execute")
    })
  return {
    execute: (sql, parameters, transform) =>
      transform === undefined ? run(sql, parameters) : Effect.map(run(sql, parameters), transform),
    executeRaw: (sql, parameters) => run(sql, parameters, { raw: true }),
    executeValues: (sql, parameters) => run(sql, parameters, { arrays: true }),
    executeValuesUnprepared: (sql, parameters) => run(sql, parameters, { arrays: true, unprepared: true }),
    executeUnprepared: (sql, parameters, transform) =>
      transform === undefined
        ? run(sql, parameters, { unprepared: true })
        : Effect.map(run(sql, parameters, { unprepared: true }), transform),
    executeStream: (sql, parameters) => Stream.unwrap(Effect.map(run(sql, parameters), Stream.fromIterable))
  }
}

export const make = Effect.fnUntraced(function* (config: Config) {
  const database = yield* open(config)
  return yield* SqlClient.make({
    ...SqlClient.makeSqliteAcquirers({
      connection: Effect.succeed(connect(database)),
      semaphore: yield* Semaphore.make(1),
      isTransaction: () => database.isTransaction
    }),
    driver: "node:sqlite",
    compiler: Statement.makeCompilerSqlite(),
    beginTransaction: "BEGIN IMMEDIATE",
    prepareTransactionControls: true,
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    spanAttributes: [["db.system.name", "sqlite"]]
  })
})
