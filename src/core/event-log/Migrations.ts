/**
 * Migrations: the schema of the store, version by version. A version that was
 * released never changes; the next one is added below it.
 *
 * A store that a newer agentd has written is refused rather than misread.
 */
import { Effect } from "effect"
import { Migrator, SqlClient, type SqlError } from "effect/sql"
import { StorageError } from "./EventLog.ts"

/**
 * The hot table has no index beside its key: the writer owns order and
 * uniqueness, and one more index would cost two thirds of the throughput. A
 * payload may be erased; nothing else of a rune may change.
 */
const runes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    CREATE TABLE runes (
      event_id INTEGER PRIMARY KEY,
      stream TEXT NOT NULL,
      at INTEGER NOT NULL,
      kind TEXT NOT NULL,
      actor TEXT NOT NULL,
      from_state TEXT,
      to_state TEXT,
      trigger_name TEXT,
      cause INTEGER,
      visibility TEXT NOT NULL,
      payload TEXT,
      payload_hash TEXT NOT NULL,
      hash TEXT NOT NULL
    ) STRICT`
  // Where the last commit ended: without it nobody could see that the newest runes are gone.
  yield* sql`CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), event_id INTEGER NOT NULL) STRICT`
  yield* sql`INSERT INTO head (one, event_id) VALUES (1, 0)`
  yield* sql`
    CREATE TRIGGER runes_are_immutable BEFORE UPDATE ON runes
    WHEN NEW.payload IS NOT NULL
      OR (NEW.event_id, NEW.stream, NEW.at, NEW.kind, NEW.actor, NEW.visibility, NEW.payload_hash, NEW.hash)
        IS NOT (OLD.event_id, OLD.stream, OLD.at, OLD.kind, OLD.actor, OLD.visibility, OLD.payload_hash, OLD.hash)
      OR (NEW.from_state, NEW.to_state, NEW.trigger_name, NEW.cause)
        IS NOT (OLD.from_state, OLD.to_state, OLD.trigger_name, OLD.cause)
    BEGIN SELECT RAISE(ABORT, 'INV-RUNE-IMMUTABLE: an appended rune never changes'); END`
  yield* sql`
    CREATE TRIGGER runes_are_kept BEFORE DELETE ON runes
    BEGIN SELECT RAISE(ABORT, 'INV-RUNE-IMMUTABLE: an appended rune is never deleted'); END`
})

/**
 * Format 2 of runes. Rows that are there keep their hashes, and are given their seq, the
 * row before them in their stream, and their cause by stream and seq.
 */
const streams = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const column of [
    "format INTEGER NOT NULL DEFAULT 1",
    "seq INTEGER NOT NULL DEFAULT 0",
    "prev INTEGER NOT NULL DEFAULT 0",
    "cause_stream TEXT",
    "cause_seq INTEGER",
    "moves TEXT"
  ]) {
    yield* sql`ALTER TABLE runes ADD COLUMN ${sql.literal(column)}`
  }
  yield* sql`DROP TRIGGER runes_are_immutable`
  yield* sql`
    UPDATE runes SET seq = place.seq, prev = place.prev FROM (
      SELECT event_id, row_number() OVER stream AS seq, lag(event_id, 1, 0) OVER stream AS prev
      FROM runes WINDOW stream AS (PARTITION BY stream ORDER BY event_id)
    ) AS place WHERE runes.event_id = place.event_id`
  yield* sql`
    UPDATE runes SET cause_seq = cause.seq,
      cause_stream = CASE WHEN cause.stream = runes.stream THEN NULL ELSE cause.stream END
    FROM runes AS cause WHERE cause.event_id = runes.cause`
  yield* sql`
    CREATE TRIGGER runes_are_immutable BEFORE UPDATE ON runes
    WHEN NEW.payload IS NOT NULL
      OR (NEW.event_id, NEW.stream, NEW.at, NEW.kind, NEW.actor, NEW.visibility, NEW.payload_hash, NEW.hash)
        IS NOT (OLD.event_id, OLD.stream, OLD.at, OLD.kind, OLD.actor, OLD.visibility, OLD.payload_hash, OLD.hash)
      OR (NEW.from_state, NEW.to_state, NEW.trigger_name, NEW.cause)
        IS NOT (OLD.from_state, OLD.to_state, OLD.trigger_name, OLD.cause)
      OR (NEW.format, NEW.seq, NEW.prev, NEW.cause_stream, NEW.cause_seq, NEW.moves)
        IS NOT (OLD.format, OLD.seq, OLD.prev, OLD.cause_stream, OLD.cause_seq, OLD.moves)
    BEGIN SELECT RAISE(ABORT, 'INV-RUNE-IMMUTABLE: an appended rune never changes'); END`
})

/** Texts of a payload may be erased, where the row of the erasure says so: the hash of the payload stays. */
const erasures = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // filled and emptied within the transaction that erases: a guard against accidents, and no record
  yield* sql`CREATE TABLE erasing (event_id INTEGER PRIMARY KEY) STRICT`
  yield* sql`DROP TRIGGER runes_are_immutable`
  yield* sql`
    CREATE TRIGGER runes_are_immutable BEFORE UPDATE ON runes
    WHEN (NEW.payload IS NOT NULL AND NOT EXISTS (SELECT 1 FROM erasing WHERE event_id = NEW.event_id))
      OR (NEW.event_id, NEW.stream, NEW.at, NEW.kind, NEW.actor, NEW.visibility, NEW.payload_hash, NEW.hash)
        IS NOT (OLD.event_id, OLD.stream, OLD.at, OLD.kind, OLD.actor, OLD.visibility, OLD.payload_hash, OLD.hash)
      OR (NEW.from_state, NEW.to_state, NEW.trigger_name, NEW.cause)
        IS NOT (OLD.from_state, OLD.to_state, OLD.trigger_name, OLD.cause)
      OR (NEW.format, NEW.seq, NEW.prev, NEW.cause_stream, NEW.cause_seq, NEW.moves)
        IS NOT (OLD.format, OLD.seq, OLD.prev, OLD.cause_stream, OLD.cause_seq, OLD.moves)
    BEGIN SELECT RAISE(ABORT, 'INV-RUNE-IMMUTABLE: an appended rune never changes'); END`
})

/** Runes leave the store for segments: only those of a segment that is listed may be deleted. */
const segments = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    CREATE TABLE segments (
      first INTEGER PRIMARY KEY, last INTEGER NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL
    ) STRICT`
  // where the chain of a stream goes on whose older runes are gone
  yield* sql`
    CREATE TABLE left_heads (
      stream TEXT PRIMARY KEY, event_id INTEGER NOT NULL, seq INTEGER NOT NULL, hash TEXT NOT NULL,
      sealed INTEGER NOT NULL, guarded INTEGER NOT NULL
    ) STRICT`
  yield* sql`DROP TRIGGER runes_are_kept`
  yield* sql`
    CREATE TRIGGER runes_are_kept BEFORE DELETE ON runes
    WHEN OLD.event_id > (SELECT coalesce(max(last), 0) FROM segments)
    BEGIN SELECT RAISE(ABORT, 'INV-RUNE-IMMUTABLE: an appended rune is never deleted'); END`
})

const migrations: ReadonlyArray<Migrator.ResolvedMigration> = [
  [1, "runes", Effect.succeed(runes)],
  [2, "streams", Effect.succeed(streams)],
  [3, "erasures", Effect.succeed(erasures)],
  [4, "segments", Effect.succeed(segments)]
]

/** The newest version that this agentd knows. */
export const SCHEMA_VERSION = migrations.length

/** Has a row for each version. */
export const TABLE = "schema_versions"

/** The version of the store as it is; 0 for an empty file. */
const currentVersion = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const tables = yield* sql`SELECT name FROM sqlite_master WHERE type = 'table' AND name = ${TABLE}`
  if (tables.length === 0) return 0
  const rows = yield* sql<{ version: number | null }>`SELECT max(migration_id) AS version FROM ${sql(TABLE)}`
  return rows[0]?.version ?? 0
})

const refuse = (reason: string, message: string, remedy: string) =>
  Effect.fail(new StorageError({ reason, message, remedy }))

/** The store's version; fails for one that this agentd cannot read. */
const check = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, file: string) {
  const version = yield* currentVersion(sql)
  if (version > SCHEMA_VERSION) {
    return yield* refuse(
      "newer-schema",
      `${file} has schema ${version}, written by a newer agentd; this one knows up to ${SCHEMA_VERSION}.`,
      "Install the newer agentd again, or name another state folder with --state."
    )
  }
  return version
})

/** The store's version, where it is older than this agentd's and not empty: what is changed has to be kept before. */
export const olderVersion = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, file: string) {
  const version = yield* check(sql, file)
  return version > 0 && version < SCHEMA_VERSION ? version : undefined
})

/** For a reader, which changes nothing. */
export const requireCurrent = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, file: string) {
  const version = yield* check(sql, file)
  if (version === SCHEMA_VERSION) return
  return yield* refuse(
    "older-schema",
    `${file} has schema ${version}; this agentd reads ${SCHEMA_VERSION}.`,
    "Start the daemon once: it brings the store up to date."
  )
})

/** Bytes that are copied for it, a second or two. */
const SMALL = 256 * 1024 * 1024

/**
 * The file can shrink. A large one that an older agentd has made is left as it is, its room is used again, until a start
 * finds most of it empty.
 */
const givesBack = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, version: number) {
  const [way] = yield* sql<{ readonly auto_vacuum: number }>`PRAGMA auto_vacuum`
  if (way?.auto_vacuum === 2) return
  const [all] = yield* sql<{ readonly page_count: number }>`PRAGMA page_count`
  const [empty] = yield* sql<{ readonly freelist_count: number }>`PRAGMA freelist_count`
  const [pages, free] = [all?.page_count ?? 0, empty?.freelist_count ?? 0]
  if ((pages - free) * 4096 > SMALL || (version === SCHEMA_VERSION && free * 2 < pages)) return
  yield* sql`PRAGMA auto_vacuum = INCREMENTAL`
  // without room for the copy it stays as it is
  yield* Effect.ignore(sql`VACUUM`)
})

/** Brings the store up to date, or changes nothing. */
export const migrate = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  file: string
): Effect.fn.Return<void, StorageError | SqlError.SqlError> {
  const version = yield* check(sql, file)
  yield* givesBack(sql, version)
  if (version === SCHEMA_VERSION) return
  yield* Migrator.make({})({ loader: Effect.succeed(migrations), table: TABLE }).pipe(
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.catchTag("MigrationError", (error) =>
      refuse(
        "migration",
        `${file} could not be brought to schema ${SCHEMA_VERSION}: ${error.message}`,
        "Nothing was changed. Report this; the agentd that wrote the store can still read it."
      )
    )
  )
})
