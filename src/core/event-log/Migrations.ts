/**
 * Migrations: the schema of the store, version by version. A released version never changes; the next version is added
 * below it.
 *
 * A store that a newer agentd has written is refused rather than misread.
 */
import { type Definition, definitionsIn } from "./SchemaRepair.ts"
import { StorageError } from "./EventLog.ts"
import { isPassing } from "./GroupCommit.ts"
import { type Database, openStore, using } from "./Sqlite.ts"

/** SQL condition for the triggers: true if one of these columns of a rune has changed. */
const changes = (...columns: ReadonlyArray<string>): string => {
  const of = (row: string) => columns.map((column) => `${row}.${column}`).join(", ")
  return `(${of("NEW")})
        IS NOT (${of("OLD")})`
}
const HEADER = changes("event_id", "stream", "at", "kind", "actor", "visibility", "payload_hash", "hash")
const MOVE = changes("from_state", "to_state", "trigger_name", "cause")
const PLACE = changes("format", "seq", "prev", "cause_stream", "cause_seq", "moves")
const REFUSES_CHANGE = "BEGIN SELECT RAISE(ABORT, 'INV-RUNE-IMMUTABLE: an appended rune never changes'); END"
const REFUSES_DELETE = "BEGIN SELECT RAISE(ABORT, 'INV-RUNE-IMMUTABLE: an appended rune is never deleted'); END"

/**
 * The main table has no index except its primary key. The writer ensures order and uniqueness, and another index would
 * reduce the throughput by two thirds. The payload of a rune can be erased; its other columns never change.
 */
const runes = `
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
    ) STRICT;
    -- where the last commit ended: without it nobody could see that the newest runes are gone
    CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), event_id INTEGER NOT NULL) STRICT;
    INSERT INTO head (one, event_id) VALUES (1, 0);
    CREATE TRIGGER runes_are_immutable BEFORE UPDATE ON runes
    WHEN NEW.payload IS NOT NULL
      OR ${HEADER}
      OR ${MOVE}
    ${REFUSES_CHANGE};
    CREATE TRIGGER runes_are_kept BEFORE DELETE ON runes
    ${REFUSES_DELETE};`

/**
 * Introduces format 2 of runes. Existing rows keep their hashes. They get their seq, the position of the previous rune
 * of their stream, and their cause by stream and seq.
 */
const streams = `
    ALTER TABLE runes ADD COLUMN format INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE runes ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runes ADD COLUMN prev INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runes ADD COLUMN cause_stream TEXT;
    ALTER TABLE runes ADD COLUMN cause_seq INTEGER;
    ALTER TABLE runes ADD COLUMN moves TEXT;
    DROP TRIGGER runes_are_immutable;
    UPDATE runes SET seq = place.seq, prev = place.prev FROM (
      SELECT event_id, row_number() OVER stream AS seq, lag(event_id, 1, 0) OVER stream AS prev
      FROM runes WINDOW stream AS (PARTITION BY stream ORDER BY event_id)
    ) AS place WHERE runes.event_id = place.event_id;
    UPDATE runes SET cause_seq = cause.seq,
      cause_stream = CASE WHEN cause.stream = runes.stream THEN NULL ELSE cause.stream END
    FROM runes AS cause WHERE cause.event_id = runes.cause;
    CREATE TRIGGER runes_are_immutable BEFORE UPDATE ON runes
    WHEN NEW.payload IS NOT NULL
      OR ${HEADER}
      OR ${MOVE}
      OR ${PLACE}
    ${REFUSES_CHANGE};`

/**
 * Text in a payload may be erased if the table `erasing` has a row for the rune. The hash of the payload stays. The
 * erasing transaction itself fills and empties the table, which only prevents accidents and records nothing.
 */
const erasures = `
    CREATE TABLE erasing (event_id INTEGER PRIMARY KEY) STRICT;
    DROP TRIGGER runes_are_immutable;
    CREATE TRIGGER runes_are_immutable BEFORE UPDATE ON runes
    WHEN (NEW.payload IS NOT NULL AND NOT EXISTS (SELECT 1 FROM erasing WHERE event_id = NEW.event_id))
      OR ${HEADER}
      OR ${MOVE}
      OR ${PLACE}
    ${REFUSES_CHANGE};`

/** Lets runes be moved from the store to segments. Rows may be deleted only if their runes are in a listed segment. */
const segments = `
    CREATE TABLE segments (
      first INTEGER PRIMARY KEY, last INTEGER NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL
    ) STRICT;
    -- where the chain of a stream goes on whose older runes are gone
    CREATE TABLE left_heads (
      stream TEXT PRIMARY KEY, event_id INTEGER NOT NULL, seq INTEGER NOT NULL, hash TEXT NOT NULL,
      sealed INTEGER NOT NULL, guarded INTEGER NOT NULL
    ) STRICT;
    DROP TRIGGER runes_are_kept;
    CREATE TRIGGER runes_are_kept BEFORE DELETE ON runes
    WHEN OLD.event_id > (SELECT coalesce(max(last), 0) FROM segments)
    ${REFUSES_DELETE};`

const migrations: ReadonlyArray<readonly [name: string, sql: string]> = [
  ["runes", runes],
  ["streams", streams],
  ["erasures", erasures],
  ["segments", segments]
]

export const SCHEMA_VERSION = migrations.length

/** Name of the table that has a row for each schema version of the store. */
export const TABLE = "schema_versions"

const VERSIONS = `CREATE TABLE IF NOT EXISTS "${TABLE}" (
  migration_id integer PRIMARY KEY NOT NULL,
  created_at datetime NOT NULL DEFAULT current_timestamp,
  name VARCHAR(255) NOT NULL
)`

/** Returns the first value of a query's result as a number; 0 if there is none. */
export const numberIn = (database: Database, sql: string): number =>
  Number(Object.values(database.prepare(sql).get() ?? {})[0] ?? 0)

/** The schema version of the store; 0 for an empty file. */
export const versionIn = (database: Database): number =>
  numberIn(database, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '${TABLE}'`) === 0
    ? 0
    : numberIn(database, `SELECT max(migration_id) FROM ${TABLE}`)

const refused = (reason: string, message: string, remedy: string) => new StorageError({ reason, message, remedy })

/** Returns the store's schema version. Throws if this agentd cannot read it. */
const check = (database: Database, file: string): number => {
  const version = versionIn(database)
  if (version > SCHEMA_VERSION) {
    throw refused(
      "newer-schema",
      `${file} has schema ${version}, written by a newer agentd; this one knows up to ${SCHEMA_VERSION}.`,
      "Install the newer agentd again, or name another state directory with --state."
    )
  }
  return version
}

/**
 * The store's schema version, if it is older than the version of this agentd; else, or if the store is empty,
 * undefined. A store with an older version must be copied before it is changed.
 */
export const olderVersion = (database: Database, file: string): number | undefined => {
  const version = check(database, file)
  return version > 0 && version < SCHEMA_VERSION ? version : undefined
}

/** For a reader, which cannot migrate a store: throws if the store does not have the current schema version. */
export const requireCurrent = (database: Database, file: string): void => {
  const version = check(database, file)
  if (version === SCHEMA_VERSION) return
  throw refused(
    "older-schema",
    `${file} has schema ${version}; this agentd reads ${SCHEMA_VERSION}.`,
    "Start the daemon once: it brings the store up to date."
  )
}

/**
 * Maximum number of used bytes in a store that is rewritten so that its file can shrink later. The rewrite takes a
 * second or two.
 */
const SMALL = 256 * 1024 * 1024

/**
 * Rewrites the file, so that it can shrink later. If more than `SMALL` bytes are used, the file is not rewritten, and
 * its free space is reused instead. A file with the current schema is rewritten only if at least half of it is free.
 */
const giveBack = (database: Database, version: number): void => {
  if (numberIn(database, "PRAGMA auto_vacuum") === 2) return
  const [pages, free] = [numberIn(database, "PRAGMA page_count"), numberIn(database, "PRAGMA freelist_count")]
  if ((pages - free) * 4096 > SMALL || (version === SCHEMA_VERSION && free * 2 < pages)) return
  database.exec("PRAGMA auto_vacuum = INCREMENTAL")
  try {
    database.exec("VACUUM")
  } catch {
    // if the disk has no space for the copy, the file is not changed
  }
}

/** Migrates the store to the current schema version. If that fails, throws and leaves the schema unchanged. */
export const migrate = (database: Database, file: string): void => {
  const version = check(database, file)
  giveBack(database, version)
  if (version === SCHEMA_VERSION) return
  database.exec("BEGIN IMMEDIATE")
  try {
    database.exec(VERSIONS)
    const note = database.prepare(`INSERT INTO ${TABLE} (migration_id, name) VALUES (?, ?)`)
    for (const [index, [name, sql]] of migrations.entries()) {
      if (index < version) continue
      note.run(index + 1, name)
      database.exec(sql)
    }
    database.exec("COMMIT")
  } catch (cause) {
    if (database.isTransaction) database.exec("ROLLBACK")
    if (isPassing(cause)) throw cause
    throw refused(
      "migration",
      `${file} could not be brought to schema ${SCHEMA_VERSION}: ${cause instanceof Error ? cause.message : String(cause)}`,
      "Nothing was changed. Report this; the agentd that wrote the store can still read it."
    )
  }
}

/** Returns the definitions of tables and triggers in a new store. */
export const definitions = (): ReadonlyArray<Definition> =>
  using(openStore({ file: ":memory:" }), (database) => {
    migrate(database, ":memory:")
    return definitionsIn(database)
  })
