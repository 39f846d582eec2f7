/**
 * SideFile: a file next to a store with data derived from the store's runes. The file has the newest rune of each
 * stream, snapshots and the positions of subscribers (all three for `StreamIndex`), and the index of runes by actor
 * (`ActorIndex`). If its content is in doubt, it is discarded and rebuilt from the runes.
 *
 * Guarantees: a write is complete or has no effect. A write does not wait for the disk, so after a crash the file can
 * lack the last writes. Deleted content is overwritten. At run time this module uses no npm packages, because the log's
 * threads load it.
 */
import { isLocked } from "./GroupCommit.ts"
import { GENESIS } from "./HashChain.ts"
import { type Database, nodeSqlite, type Sqlite } from "./Sqlite.ts"

export const sideFileOf = (file: string): string => `${file}.index`

/** Path of the separate index of actors that older versions of agentd wrote. */
export const actorFileOf = (file: string): string => `${file}.actors`

/** Version of the tables of streams, snapshots and subscribers. */
export const VERSION = 2

/** Version of the tables of actors. */
export const FILED_VERSION = 1

const ACTORS = `
  CREATE TABLE IF NOT EXISTS filed (
    one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, event_id INTEGER NOT NULL, hash TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS threads (
    id INTEGER PRIMARY KEY, actor TEXT NOT NULL, stream TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE (actor, stream, kind)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS threads_by_kind ON threads (kind, stream);
  CREATE TABLE IF NOT EXISTS entries (
    thread INTEGER NOT NULL, event_id INTEGER NOT NULL, PRIMARY KEY (thread, event_id)
  ) STRICT, WITHOUT ROWID;
  INSERT OR IGNORE INTO filed VALUES (1, ${FILED_VERSION}, 0, '${GENESIS}');`

const SCHEMA = `
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
  INSERT OR IGNORE INTO place VALUES (1, ${VERSION}, 0, '${GENESIS}', 0);`

const TABLES = "SELECT group_concat(name) AS names FROM sqlite_master WHERE name IN ('place', 'filed')"

const open = (sqlite: Sqlite, file: string): Database => {
  const database = sqlite.open(file)
  try {
    database.exec("PRAGMA busy_timeout=0; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON")
    const isOlder = database.prepare(TABLES).get()?.["names"] === "place"
    database.exec(`BEGIN IMMEDIATE; ${SCHEMA} ${ACTORS} COMMIT`)
    // an older agentd did not overwrite deleted content: remove it now
    if (isOlder) database.exec("VACUUM")
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

export class SideFile {
  private readonly file: string
  private readonly sqlite: Sqlite
  database: Database
  /** True if the file cannot be written. It stays unchanged until it is replaced (`renew`) or until the next start. */
  isBroken = false

  constructor(file: string, sqlite = nodeSqlite) {
    this.file = file
    this.sqlite = sqlite
    try {
      this.database = open(sqlite, file)
    } catch {
      this.database = this.anew()
    }
  }

  /** Replaces the file with an empty one. */
  renew(): void {
    this.close()
    this.database = this.anew()
    this.isBroken = false
  }

  /** Empties the tables of actors, or the whole file if that fails. Throws if the file is locked. */
  forgetActors(): void {
    try {
      this.write(() => this.database.exec(`DROP TABLE filed; DROP TABLE threads; DROP TABLE entries; ${ACTORS}`))
    } catch (error) {
      if (isLocked(error)) throw error
      this.renew()
    }
  }

  /** Writes in one transaction: if this method throws, nothing was written. */
  write(write: () => void): void {
    this.database.exec("BEGIN IMMEDIATE")
    try {
      write()
      this.database.exec("COMMIT")
    } catch (error) {
      if (this.database.isTransaction) this.database.exec("ROLLBACK")
      throw error
    }
  }

  /** Tries to write. Returns false if another connection has locked the file, or if the file is broken. */
  attempt(write: () => void): boolean {
    if (this.isBroken) return false
    try {
      this.write(write)
      return true
    } catch (error) {
      this.isBroken = !isLocked(error)
      return false
    }
  }

  close(): void {
    // if the file could not be rebuilt, the database is already closed
    if (this.database.isOpen) this.database.close()
  }

  private anew(): Database {
    for (const ending of ["", "-wal", "-shm"]) this.sqlite.remove(`${this.file}${ending}`)
    return open(this.sqlite, this.file)
  }
}
