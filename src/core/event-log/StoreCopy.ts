/**
 * StoreCopy: copies the whole database of a store while a daemon writes to it, and reads facts about a copy.
 *
 * Guarantees: the copy is a consistent snapshot of the store, and contains everything that was durable before the copy
 * began. The store is only read. If a copy is interrupted, its thread is stopped.
 */
import { Effect } from "effect"
import { Worker } from "node:worker_threads"
import type { CopyData, FromCopy } from "./CopyThread.ts"
import type { StorageError } from "./EventLog.ts"
import { errorOf } from "./GroupCommit.ts"
import * as Migrations from "./Migrations.ts"
import { type Listed, listedIn } from "./Segments.ts"
import { type Database, nodeSqlite, openStore, using } from "./Sqlite.ts"
import { storageError } from "./StorageFailure.ts"
import { copyThread } from "./ThreadFile.ts"

/** Copies a store. The file `into` must not exist yet. */
export const copy = (file: string, into: string): Effect.Effect<void, StorageError> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const workerData: CopyData = { file, into }
      return new Worker(copyThread(), { workerData, name: "copy" })
    }),
    (worker) =>
      Effect.callback<void, StorageError>((resume) => {
        worker.on("error", (cause) => resume(Effect.fail(storageError(file, cause))))
        worker.on("message", (message: FromCopy) =>
          resume(message._tag === "Copied" ? Effect.void : Effect.fail(storageError(file, errorOf(message.failure))))
        )
      }),
    (worker) => Effect.promise(() => worker.terminate())
  )

export interface Facts {
  /** Schema version; 0 for an empty file. */
  readonly schema: number
  /** Position of the newest rune; 0 if the copy has no runes. */
  readonly head: number
  /** When the newest rune was appended, in ms since the epoch; 0 if that is not known. */
  readonly at: number
  readonly segments: ReadonlyArray<Listed>
}

const factsIn = (database: Database): Facts => {
  const one = (sql: string) => Migrations.numberIn(database, sql)
  const has = (table: string) =>
    one(`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '${table}'`) > 0
  return {
    schema: Migrations.versionIn(database),
    head: has("head") ? one("SELECT event_id FROM head") : 0,
    at: has("runes") ? one("SELECT at FROM runes ORDER BY event_id DESC LIMIT 1") : 0,
    segments: has("segments") ? listedIn(database) : []
  }
}

export const facts = (file: string): Effect.Effect<Facts, StorageError> =>
  Effect.try({
    try: () => using(nodeSqlite.open(file, { readOnly: true }), factsIn),
    catch: (cause) => storageError(file, cause)
  })

/** Migrates a copy of an older agentd's store to the current schema. Fails if the store is from a newer agentd. */
export const bringUpToDate = (file: string): Effect.Effect<void, StorageError> =>
  Effect.try({
    try: () => using(openStore({ file }), (database) => Migrations.migrate(database, file)),
    catch: (cause) => storageError(file, cause)
  })
