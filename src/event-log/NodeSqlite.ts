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
import { type Database, nodeSqlite, type Sqlite, type Statement as Prepared, type Value } from "./Sqlite.ts"

export interface Config {
  readonly file: string
  readonly readOnly?: boolean
  /** The file grows no larger than this. */
  readonly maxBytes?: number
  /** Left out: `node:sqlite`. */
  readonly sqlite?: Sqlite
}

/** Statements kept prepared. */
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

const connect = (database: Database): SqlConnection.Connection => {
  const prepared = new Map<string, Prepared>()
  const prepare = (sql: string) => {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const statement = database.prepare(sql)
    if (prepared.size >= MAX_PREPARED) prepared.delete(prepared.keys().next().value!)
    prepared.set(sql, statement)
    return statement
  }
  const run = (
    sql: string,
    parameters: ReadonlyArray<unknown>,
    options: { readonly arrays?: boolean; readonly raw?: boolean; readonly unprepared?: boolean } = {}
    // oxlint-disable-next-line no-explicit-any -- SqlConnection's own rows are `any`
  ): Effect.Effect<any, SqlError.SqlError> =>
    Effect.try({
      try: () => {
        const statement = options.unprepared === true ? database.prepare(sql) : prepare(sql)
        statement.setReturnArrays(options.arrays === true)
        if (statement.columns().length > 0) return statement.all(...parameters.map(bind))
        const result = statement.run(...parameters.map(bind))
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
