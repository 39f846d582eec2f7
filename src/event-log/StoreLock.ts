/**
 * StoreLock: one daemon per store. It holds an exclusive lock on `lock.db` in the
 * state folder for its life; the kernel frees it when the process ends, however
 * it ends, so there is no stale lock. On a file system without locks (some
 * network mounts) it protects nothing. The folder is looked at before it is touched.
 */
import { Effect, Option, Schema, type Scope } from "effect"
import {
  closeSync,
  constants,
  fchmodSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { StorageError } from "./EventLog.ts"
import * as StateFolder from "./StateFolder.ts"
import { storageError } from "./StorageFailure.ts"

/** Another daemon holds the store. Its pid and socket are given where they are known. */
export class StoreInUse extends Schema.TaggedError<StoreInUse>()("StoreInUse", {
  message: Schema.String,
  remedy: Schema.String,
  folder: Schema.String,
  pid: Schema.NullOr(Schema.Int),
  socket: Schema.NullOr(Schema.String)
}) {}

const Holder = Schema.Struct({ pid: Schema.Int, socket: Schema.NullOr(Schema.String) })
type Holder = typeof Holder.Type

const decodeHolder = Schema.decodeUnknownOption(Schema.fromJsonString(Holder))

export interface Options {
  /** The state folder; made where it is not there. */
  readonly folder: string
  /** Where the holder answers: told to whoever finds the store in use. */
  readonly socket: string | null
}

/** Two that start in the same instant can refuse each other: ms that each tries again. */
const SETTLE = 250

/** Beside the lock, for nobody can read the locked file itself. */
const holderFile = (folder: string): string => join(folder, "lock.json")

/** The holder of the store, as far as that is written down. */
export const holderOf = (folder: string): Holder | undefined => {
  try {
    return Option.getOrUndefined(decodeHolder(readFileSync(holderFile(folder), "utf8")))
  } catch {
    return undefined
  }
}

const writeHolder = ({ folder, socket }: Options): void => {
  const fresh = `${holderFile(folder)}.new`
  writeFileSync(fresh, JSON.stringify({ pid: process.pid, socket } satisfies Holder), { mode: 0o600 })
  renameSync(fresh, holderFile(folder))
}

const inUse = (folder: string): StoreInUse => {
  const holder = holderOf(folder)
  return new StoreInUse({
    folder,
    pid: holder?.pid ?? null,
    socket: holder?.socket ?? null,
    message: `The store in ${folder} is in use by another agentd${holder === undefined ? "" : ` (pid ${holder.pid})`}.`,
    remedy: "Talk to that one, stop it with `agentd stop`, or name another state folder with --state."
  })
}

/** Makes the file for its owner alone, through no link; one of an older agentd is closed to others. */
const makeFile = (path: string): void => {
  const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants
  const file = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
  try {
    fchmodSync(file, 0o600)
  } finally {
    closeSync(file)
  }
}

const lock = (options: Options): DatabaseSync => {
  mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  const path = join(options.folder, "lock.db")
  makeFile(path)
  const database = new DatabaseSync(path, { timeout: SETTLE })
  try {
    database.exec("BEGIN EXCLUSIVE")
    writeHolder(options)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

const unlock = (folder: string, database: DatabaseSync): void => {
  rmSync(holderFile(folder), { force: true })
  database.close()
}

/** Holds the store until the scope closes. */
export const acquire = (
  options: Options
): Effect.Effect<void, StoreInUse | StorageError | StateFolder.StateFolderRefused, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.andThen(
      StateFolder.check(options.folder),
      Effect.try({
        try: () => lock(options),
        catch: (cause) => {
          const error = storageError(join(options.folder, "lock.db"), cause)
          return error.reason === "locked" ? inUse(options.folder) : error
        }
      })
    ),
    (database) => Effect.sync(() => unlock(options.folder, database))
  ).pipe(Effect.asVoid)
