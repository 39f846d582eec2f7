/**
 * StorageFailure: converts errors of the database and the file system to StorageErrors with a remedy, and retries
 * temporary errors.
 */
import { Duration, Effect } from "effect"
import * as Monotonic from "../supervision/Monotonic.ts"
import { StorageError } from "./EventLog.ts"
import { codeOf as sqliteCodeOf, TAKEN } from "./GroupCommit.ts"
import { MOVED } from "./StorePlace.ts"
import * as Backoff from "../supervision/Backoff.ts"

/** Reason, message and remedy for each of SQLite's primary result codes. */
const codes: { readonly [code: number]: readonly [reason: string, message: string, remedy: string] } = {
  5: ["locked", "another process holds the store's lock", "End the other program that has the file open."],
  6: ["locked", "another connection holds the store's lock", "End the other program that has the file open."],
  8: ["read-only", "the store cannot be written", "Make the file and its folder writable for this user."],
  10: [
    "io",
    "the disk answered with an error",
    "Check the disk and the file system (`dmesg`), then start it again: agentd start"
  ],
  11: [
    "corrupt",
    "the file is damaged",
    "See what can be kept: agentd repair --dry-run; or put back a backup. `agentd verify` says what is wrong."
  ],
  13: [
    "full",
    "there is no space left",
    "Free some space on the disk (or raise the store's own limit), then start it again: agentd start"
  ],
  14: ["cannot-open", "the file cannot be opened", "Check that the folder exists and belongs to this user."],
  19: [
    "refused",
    "the store does not take a rune",
    "This is a bug in agentd: report it with the output of `agentd verify`."
  ],
  23: ["read-only", "access is refused", "Make the file and its folder writable for this user."],
  26: [
    "not-a-database",
    "the file is no SQLite database",
    "Name another state directory with --state, or move the file away."
  ]
}

const taken = [
  "taken",
  "INV-EVENTID-MONOTONIC: the next event id is taken, so somebody else writes to the store",
  "End the other program that writes to the file, then start it again: agentd start"
] as const

const moved = [
  "moved",
  "the file was removed, or moved, while agentd ran: what was not yet told as done may be gone with it",
  "Put the state directory back in its place, or a backup (agentd restore), then start it again: agentd start"
] as const

/** Reasons of temporary errors: a lock of another connection, a full disk, a temporary disk error. */
const passing = new Set(["locked", "full", "io"])

/** SQLite's result code that corresponds to each error code of the file system. */
const ofErrno: { readonly [code: string]: number } = {
  EIO: 10,
  ENOSPC: 13,
  EDQUOT: 13,
  ENOENT: 14,
  ENOTDIR: 14,
  EISDIR: 14,
  ENAMETOOLONG: 14,
  EMFILE: 14,
  EACCES: 23,
  EPERM: 23,
  EROFS: 23
}

const codeOf = (cause: unknown): number | undefined =>
  sqliteCodeOf(cause) ??
  (cause instanceof Error && "code" in cause && typeof cause.code === "string" ? ofErrno[cause.code] : undefined)

/** Converts an error; a StorageError stays unchanged. `where`: the file, or another name of the store. */
export const storageError = (where: string, cause: unknown): StorageError => {
  if (cause instanceof StorageError) return cause
  const detail = cause instanceof Error ? cause.message : String(cause)
  const code = codeOf(cause) ?? -1
  const known = TAKEN.has(code) ? taken : code === MOVED ? moved : codes[code & 0xff]
  return known === undefined
    ? new StorageError({
        reason: "unknown",
        message: `${where}: the store failed: ${detail}`,
        remedy: "This is a bug in agentd: report it with the output of `agentd verify`."
      })
    : new StorageError({ reason: known[0], message: `${where}: ${known[1]} (${detail}).`, remedy: known[2] })
}

const SOON: Backoff.Policy = { base: 5, factor: 2, cap: 250, jitter: 0 }

/** Retries temporary errors, at growing intervals, for at most `giveUpAfter`. */
export const untilItPasses =
  (giveUpAfter: Duration.Duration) =>
  <A, R>(effect: Effect.Effect<A, StorageError, R>): Effect.Effect<A, StorageError, R> =>
    Effect.flatMap(Monotonic.now, (start) =>
      Effect.retry(effect, {
        schedule: Backoff.waits(SOON),
        while: (error) =>
          Effect.map(Monotonic.now, (now) => passing.has(error.reason) && now - start < Duration.toMillis(giveUpAfter))
      })
    )
