/**
 * StoreLock: ensures that only one daemon uses a store. The daemon holds an exclusive lock on `lock.db` in the state
 * directory until it ends. The kernel releases the lock however the process ends, so there is no stale lock. The lock
 * alone is not sufficient: its file can be deleted, and some file systems (network mounts) do not support locks.
 * `StoreOwner` describes the other checks.
 *
 * Guarantees: a daemon that finds another holder has changed nothing, and reports the holder and a remedy. The
 * directory is checked before it is touched.
 */
import { Duration, Effect, Schedule, Schema, type Scope } from "effect"
import {
  closeSync,
  constants,
  fchmodSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  watch,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { StorageError } from "./EventLog.ts"
import * as StoreOwner from "./StoreOwner.ts"
import * as StateFolder from "./StateFolder.ts"
import { storageError } from "./StorageFailure.ts"
import { errorOf } from "./GroupCommit.ts"
import { moved, StorePlace } from "./StorePlace.ts"

/** Error: another daemon holds the store. The pid and socket of that daemon are null if they are not known. */
export class StoreInUse extends Schema.TaggedError<StoreInUse>()("StoreInUse", {
  message: Schema.String,
  remedy: Schema.String,
  folder: Schema.String,
  pid: Schema.NullOr(Schema.Int),
  socket: Schema.NullOr(Schema.String),
  /** Host name of the holder's machine if that is another machine; null if it is this one. */
  host: Schema.NullOr(Schema.String)
}) {}

export interface Options {
  /** The state directory; created if missing. */
  readonly folder: string
  /** Socket of this daemon, for other processes that want to use the store; null if the daemon has none. */
  readonly socket: string | null
}

/** How long (ms) a daemon tries to get the lock. Two daemons that start at the same time can refuse each other. */
const SETTLE = 250

/** Names of the store's database and of the lock file. */
const [STORE, LOCK] = [StoreOwner.STORE, "lock.db"] as const

export const holderOf = StoreOwner.noted

export const seen = (folder: string): StoreOwner.Holder | undefined => StoreOwner.found(folder, STORE)

const writeHolder = ({ folder, socket }: Options): void => {
  const file = StoreOwner.noteFile(folder)
  const fresh = `${file}.new`
  writeFileSync(fresh, JSON.stringify(StoreOwner.self(socket)), { mode: 0o600 })
  renameSync(fresh, file)
}

export const inUse = (folder: string, holder: StoreOwner.Holder | undefined): StoreInUse => {
  const elsewhere = holder !== undefined && StoreOwner.isElsewhere(holder) ? holder.host! : null
  const by =
    elsewhere !== null
      ? ` on the host ${elsewhere} (pid ${holder!.pid})`
      : holder === undefined
        ? ""
        : ` (pid ${holder.pid})`
  return new StoreInUse({
    folder,
    pid: holder?.pid ?? null,
    socket: holder?.socket ?? null,
    host: elsewhere,
    message: `The store in ${folder} is in use by another agentd${by}.`,
    remedy:
      elsewhere === null
        ? "Talk to that one, stop it with `agentd stop --daemon`, or name another state directory with --state."
        : `Stop it on ${elsewhere}: agentd stop --daemon. Or keep a folder of this host's own with --state. Only if that process is gone for good, and could not say so: rm '${StoreOwner.noteFile(folder)}'`
  })
}

/**
 * Creates the file, readable only by its owner, without following symbolic links. An existing file from an older agentd
 * gets the same mode.
 */
const makeFile = (path: string): void => {
  const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants
  const file = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
  try {
    fchmodSync(file, 0o600)
  } finally {
    closeSync(file)
  }
}

/** Acquires the lock. Throws StoreInUse if another process holds the store. */
const look = ({ folder }: Options): void => {
  const holder = seen(folder)
  if (holder !== undefined) throw inUse(folder, holder)
}

const lock = (options: Options): DatabaseSync => {
  mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  const path = join(options.folder, LOCK)
  makeFile(path)
  const database = new DatabaseSync(path, { timeout: SETTLE })
  try {
    database.exec("BEGIN EXCLUSIVE")
    // finds a daemon that started at the same time and has locked a different file of the same name
    look(options)
    writeHolder(options)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

const unlock = (folder: string, database: DatabaseSync): void => {
  if (holderOf(folder)?.pid === process.pid) rmSync(StoreOwner.noteFile(folder), { force: true })
  database.close()
}

/**
 * Fails if another process holds the store. Retries if that process is on this machine, because a killed process can
 * still be ending.
 */
const alone = (options: Options): Effect.Effect<void, StoreInUse> =>
  Effect.try({ try: () => look(options), catch: (cause) => cause as StoreInUse }).pipe(
    Effect.retry({
      schedule: Schedule.spaced(Duration.millis(SETTLE / 5)),
      times: 5,
      while: ({ host }) => host === null
    })
  )

const locked = (options: Options) =>
  Effect.try({
    try: () => lock(options),
    catch: (cause) => {
      if (cause instanceof StoreInUse) return cause
      const error = storageError(join(options.folder, LOCK), cause)
      return error.reason === "locked" ? inUse(options.folder, holderOf(options.folder)) : error
    }
  })

/** Acquires the store, and releases it when the scope closes. */
export const acquire = (
  options: Options
): Effect.Effect<void, StoreInUse | StorageError | StateFolder.StateFolderRefused, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.andThen(StateFolder.check(options.folder), Effect.andThen(alone(options), locked(options))),
    (database) => Effect.sync(() => unlock(options.folder, database))
  ).pipe(Effect.asVoid)

/**
 * Completes when the database file of the open store is deleted or replaced. Deleting only the lock file does no harm.
 * Waits forever if the system cannot report changes of files. In that case, or if the directory is moved, the next
 * append detects the loss. The directory itself is not watched, because every write would be reported.
 */
export const lost = (folder: string): Effect.Effect<StorageError> =>
  Effect.callback((resume) => {
    const file = join(folder, STORE)
    const place = new StorePlace(file)
    const look = () => {
      if (place.isLeft) resume(Effect.succeed(storageError(file, errorOf(moved))))
    }
    try {
      const watcher = watch(file, { persistent: false }, look).on("error", look)
      return Effect.sync(() => watcher.close())
    } catch {
      return Effect.void
    }
  })
