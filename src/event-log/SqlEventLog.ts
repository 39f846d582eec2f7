/**
 * SqlEventLog: the rune log in an SQLite file.
 *
 * Opening it brings the schema up to date, restores the ledger in one pass over
 * the headers, and halts each stream whose chain does not hold. What is wrong
 * with the file is said in a StorageError with a remedy.
 */
import { Duration, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Reactivity } from "effect/reactivity"
import { closeSync, mkdirSync, openSync } from "node:fs"
import { dirname, join } from "node:path"
import { FOLDER } from "./Archive.ts"
import { defaultLimits, type Limits } from "./EventDraft.ts"
import * as InvariantGuard from "./InvariantGuard.ts"
import * as AdmissionState from "./AdmissionState.ts"
import * as Migrations from "./Migrations.ts"
import * as NodeSqlite from "./NodeSqlite.ts"
import { Redact } from "./Redact.ts"
import { EventLog, StorageError } from "./EventLog.ts"
import * as SqlStore from "./SqlStore.ts"
import { fromSqlError, untilItPasses } from "./StorageFailure.ts"
import type { Store, StoredRune } from "./Store.ts"
import * as StoreEventLog from "./StoreEventLog.ts"
import { archivedBy, Walk } from "./Verify.ts"

export interface Options extends Partial<Limits> {
  /** Absolute. Made with its folder where it is not there, readable for this user alone. */
  readonly file: string
  /** The store grows no larger than this; then it is full. */
  readonly maxBytes?: number
  /** How long a write that meets a lock or a full disk is tried again before the log gives up. */
  readonly giveUpAfter?: Duration.Input
}

/** Where the archives of a store are. */
const archiveOf = (file: string): string => join(dirname(file), FOLDER)

const makeFile = (file: string) =>
  Effect.try({
    try: () => {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      closeSync(openSync(file, "a", 0o600))
    },
    catch: (cause) =>
      new StorageError({
        reason: "cannot-open",
        message: `${file} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`,
        remedy: "Make the file and its folder writable for this user, or name another state folder with --state."
      })
  })

/** Each page of a pass over all headers, oldest first. */
const passOver = Effect.fnUntraced(function* (store: Store, each: (rune: StoredRune) => void) {
  let head = 0
  while (true) {
    const runes = yield* store.scan(head, InvariantGuard.kinds)
    if (runes.length === 0) return
    runes.forEach(each)
    head = runes[runes.length - 1]!.eventId
    yield* Effect.yieldNow
  }
})

/** The ledger as the store's runes left it. A stream whose chain does not hold is halted. */
const restore = Effect.fnUntraced(function* (store: Store) {
  const walk = new Walk()
  let ledger = AdmissionState.empty
  const streams = new Set<string>()
  yield* passOver(store, (rune) => {
    walk.next(rune)
    const archived = archivedBy(rune)
    if (archived !== undefined) streams.add(archived)
    ledger = AdmissionState.restore(ledger, rune)
  })
  for (const { stream, rule, message, eventId } of walk.problems) {
    if (rule !== "INV-HASH-VALID") continue
    yield* Effect.logError(`runes: stream ${stream} is halted at rune ${eventId}: ${message}`)
    ledger = AdmissionState.halt(ledger, stream, {
      rule,
      message: `its chain is broken at rune ${eventId}: ${message}; \`agentd verify\` says more`
    })
  }
  // Ids that were given out once are never given out again, even if their runes are gone.
  return { ledger: { ...ledger, head: Math.max(ledger.head, yield* store.lastCommitted) }, streams }
})

const inOurWords = (file: string) =>
  Effect.mapError((error: SqlError.SqlError | StorageError) =>
    error instanceof StorageError ? error : fromSqlError(file, error)
  )

const writable = Effect.fnUntraced(function* (options: Options) {
  const { file } = options
  const giveUpAfter = Duration.fromInputUnsafe(options.giveUpAfter ?? "10 seconds")
  yield* makeFile(file)
  const sql = yield* untilItPasses(giveUpAfter)(inOurWords(file)(NodeSqlite.make(options)))
  yield* untilItPasses(giveUpAfter)(inOurWords(file)(Migrations.migrate(sql, file)))
  const store = SqlStore.make(sql, { file, giveUpAfter })
  const redact = yield* Redact
  const { ledger, streams } = yield* restore(store)
  const settings = {
    ...StoreEventLog.defaultOptions,
    maxRuneBytes: options.maxRuneBytes ?? defaultLimits.maxRuneBytes,
    maxDrafts: options.maxDrafts ?? defaultLimits.maxDrafts,
    scrub: redact.json
  }
  return yield* StoreEventLog.make(store, ledger, settings, { folder: archiveOf(file), streams })
})

/** Opens the file, or makes it. One log per file: whoever opens it for writing holds the StoreLock. */
export const layer = (options: Options): Layer.Layer<EventLog, StorageError, Redact> =>
  Layer.effect(EventLog, writable(options)).pipe(Layer.provide(Reactivity.layer))

const readable = Effect.fnUntraced(function* (file: string) {
  const sql = yield* inOurWords(file)(NodeSqlite.make({ file, readOnly: true }))
  yield* inOurWords(file)(Migrations.requireCurrent(sql, file))
  return StoreEventLog.makeReadOnly(
    SqlStore.make(sql, { file, giveUpAfter: Duration.seconds(1) }),
    file,
    archiveOf(file)
  )
})

/**
 * Opens the file for reading alone, while a daemon writes to it or while there is
 * none: appends fail. The head is where the last commit ended, read anew each time.
 */
export const layerReadOnly = (options: Pick<Options, "file">): Layer.Layer<EventLog, StorageError> =>
  Layer.effect(EventLog, readable(options.file)).pipe(Layer.provide(Reactivity.layer))
