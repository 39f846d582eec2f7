/**
 * CopyThread: a worker thread that copies a store's database into a new file, as a consistent snapshot. A daemon can
 * write to the store meanwhile, because readers do not block the writer.
 *
 * Guarantees: everything that was committed before the thread began is in the copy. The copy contains no erased text.
 */
import { DatabaseSync } from "node:sqlite"
import { parentPort, workerData } from "node:worker_threads"
import * as WalMark from "./WalMark.ts"
import { type Failure, failureOf } from "./GroupCommit.ts"

export interface CopyData {
  readonly file: string
  /** Path of the new file, which must not exist yet. */
  readonly into: string
}

export type FromCopy = { readonly _tag: "Copied" } | { readonly _tag: "Failed"; readonly failure: Failure }

/** Maximum time (ms) to wait for the lock that the writer holds while it checkpoints its write-ahead log. */
const PATIENCE = 10_000

const copy = ({ file, into }: CopyData): void => {
  const database = new DatabaseSync(file, { readOnly: true, timeout: PATIENCE })
  try {
    database.prepare("VACUUM INTO ?").run(into)
  } finally {
    database.close()
  }
  // mark the copy as closed normally: its write-ahead log contains no further data
  const made = new DatabaseSync(into)
  try {
    made.exec("PRAGMA journal_mode = WAL")
    WalMark.clear(made)
  } finally {
    made.close()
  }
}

const start = (port: NonNullable<typeof parentPort>): void => {
  const say = (message: FromCopy) => port.postMessage(message)
  try {
    copy(workerData as CopyData)
    say({ _tag: "Copied" })
  } catch (error) {
    say({ _tag: "Failed", failure: failureOf(error) })
  }
}

if (parentPort !== null) start(parentPort)
