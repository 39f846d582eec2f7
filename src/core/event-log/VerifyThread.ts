/**
 * VerifyThread: a thread that reads and hashes a whole store for `verify`, while the daemon continues to write. The
 * guard's checkers are functions in the thread that started this one. Therefore the runes that they check are sent to
 * that thread, one batch per request.
 */
import { DatabaseSync } from "node:sqlite"
import { parentPort, workerData } from "node:worker_threads"
import { dirname, join } from "node:path"
import { type Failure, failureOf } from "./GroupCommit.ts"
import { fromRow, type RuneRow } from "./RuneRow.ts"
import { SEGMENTS } from "./SegmentFile.ts"
import { listedIn, Segments } from "./Segments.ts"
import { type Looked, type Marks, StoreScan, type Walked } from "./StoreScan.ts"
import type { StoredRune } from "./StoredRune.ts"
import { TableCheck } from "./TableCheck.ts"

export interface VerifyData extends Marks {
  readonly file: string
  readonly relevant: ReadonlyArray<string>
  /** Pause after each batch, in ms. */
  readonly pause: number
}

/** Messages that answer the request "more". */
export type FromVerify =
  | { readonly _tag: "Looked"; readonly looked: ReadonlyArray<Looked> }
  | { readonly _tag: "End"; readonly walked: Walked }
  | { readonly _tag: "Failed"; readonly failure: Failure }

/** Number of runes in one batch. */
const BATCH = 1_000

const walk = (data: VerifyData, say: (message: FromVerify) => void): (() => void) => {
  const database = new DatabaseSync(data.file, { readOnly: true })
  database.exec("PRAGMA query_only=ON")
  const tables = new TableCheck(database, data.file)
  const page = database.prepare(`SELECT * FROM runes WHERE event_id > ? ORDER BY event_id LIMIT ${BATCH}`)
  const store = new StoreScan(data.relevant, data)
  const segments = new Segments(join(dirname(data.file), SEGMENTS), listedIn(database))
  store.files(segments)
  const stored = (after: number) => (page.all(after) as unknown as ReadonlyArray<RuneRow>).map(fromRow)
  const next = (): ReadonlyArray<StoredRune> => {
    const inSegments = store.page(segments)
    if (inSegments !== undefined) return inSegments
    const rows = stored(store.head)
    if (rows.length > 0 && rows[0]!.eventId === store.head + 1) return rows
    // a daemon can have moved the runes to a segment since the segments were listed
    segments.list(listedIn(database))
    return store.page(segments) ?? rows
  }
  const nothing = new Int32Array(new SharedArrayBuffer(4))
  return () => {
    if (data.pause > 0 && store.head > 0) Atomics.wait(nothing, 0, 0, data.pause)
    const runes = next()
    if (runes.length > 0) {
      tables.next(runes)
      return say({ _tag: "Looked", looked: store.next(runes) })
    }
    const walked = { ...store.end, tables: tables.end(store.left(listedIn(database).at(-1)?.last ?? 0)) }
    database.close()
    say({ _tag: "End", walked })
  }
}

const start = (port: NonNullable<typeof parentPort>): void => {
  const say = (message: FromVerify) => port.postMessage(message)
  const attempt = (work: () => void) => {
    try {
      work()
    } catch (error) {
      say({ _tag: "Failed", failure: failureOf(error) })
    }
  }
  let more: (() => void) | undefined
  port.on("message", () => attempt(() => (more ??= walk(workerData as VerifyData, say))()))
}

if (parentPort !== null) start(parentPort)
