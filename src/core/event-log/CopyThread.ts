/**
 * CopyThread: a thread that copies a store's database into a new file, as it stands at one moment, beside a daemon
 * that goes on writing: readers block no writer.
 *
 * Guarantees: what was committed before the thread began is in the copy; the copy has nothing of what was erased.
 */
import { DatabaseSync } from "node:sqlite"
import { parentPort, workerData } from "node:worker_threads"
import * as OpenMark from "./OpenMark.ts"
import { type Failure, failureOf } from "./GroupCommit.ts"

export interface CopyData {
  readonly file: string
  /** Not there yet. */
  readonly into: string
}

export type FromCopy = { readonly _tag: "Copied" } | { readonly _tag: "Failed"; readonly failure: Failure }

/** ms that a lock of the writer's is waited for, which it has while it folds its write-ahead log. */
const PATIENCE = 10_000

const copy = ({ file, into }: CopyData): void => {
  const database = new DatabaseSync(file, { readOnly: true, timeout: PATIENCE })
  try {
    database.prepare("VACUUM INTO ?").run(into)
  } finally {
    database.close()
  }
  // as a daemon leaves its file that has ended in order: the copy lacks nothing
  const made = new DatabaseSync(into)
  try {
    made.exec("PRAGMA journal_mode = WAL")
    OpenMark.clear(made)
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
