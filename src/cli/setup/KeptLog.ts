/**
 * KeptLog: the log's segments in a state directory, and which of them `keepLog` deletes; `gc` shows them.
 *
 * Guarantees: `look` changes nothing. Only the daemon deletes segments, and never one that something open needs: in
 * that case it deletes fewer than are shown.
 */
import { Clock, Effect } from "effect"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { boundsOf, type Kept } from "../../config/KeepLog.ts"
import { type Candidate, candidatesIn, chosen } from "../../core/event-log/Forgetting.ts"
import { SEGMENTS, storeBytes } from "../../core/event-log/SegmentFile.ts"
import { listedIn, Segments } from "../../core/event-log/Segments.ts"
import { nodeSqlite } from "../../core/event-log/Sqlite.ts"
import { storageError } from "../../core/event-log/StorageFailure.ts"
import { sizeOf } from "../daemon/Backup.ts"
import { count } from "../render/Output.ts"

export interface Part {
  readonly path: string
  readonly bytes: number
  /** Time of the segment's newest rune, ms since the epoch. */
  readonly at: number
  readonly goes: boolean
}

const segmentsIn = (store: string): Segments | undefined => {
  if (!existsSync(store)) return undefined
  const database = nodeSqlite.open(store, { readOnly: true })
  try {
    return new Segments(join(dirname(store), SEGMENTS), listedIn(database))
  } finally {
    database.close()
  }
}

/** `keep`: keepLog in the user's current config, whether in force or not; undefined: all segments stay. */
export const look = Effect.fnUntraced(function* (store: string, keep: Kept | undefined) {
  const now = yield* Clock.currentTimeMillis
  return yield* Effect.try({
    try: (): ReadonlyArray<Part> => {
      const segments = segmentsIn(store)
      if (segments === undefined) return []
      const all = [...candidatesIn(segments)]
      const others = storeBytes(store)
      const bounds = keep && { ...boundsOf(keep, now, others), openSince: Number.MAX_SAFE_INTEGER }
      const gone = new Set<Candidate>(bounds === undefined ? [] : chosen(all, segments.bytes, bounds))
      return all.map((one) => ({
        path: join(dirname(store), SEGMENTS, one.file),
        bytes: one.bytes,
        at: one.at,
        goes: gone.has(one)
      }))
    },
    catch: (cause) => storageError(store, cause)
  })
})

const bytesOf = (parts: ReadonlyArray<Part>): string => sizeOf(parts.reduce((sum, { bytes }) => sum + bytes, 0))

/** The segments as lines; empty if there are none. */
export const words = (parts: ReadonlyArray<Part>, keep: Kept | undefined): ReadonlyArray<string> => {
  if (parts.length === 0) return []
  const [goes, stays] = [parts.filter(({ goes }) => goes), parts.filter(({ goes }) => !goes)]
  const setting = keep === undefined ? "no keepLog is set in your config, so all stays" : `keepLog "${keep.text}"`
  return [
    `The log's older part: ${count(parts.length, "segment")}, ${bytesOf(parts)}; ${setting}.`,
    ...goes.map(({ at, bytes, path }) => `goes: ${path} (${sizeOf(bytes)}), the newest of it from ${dayOf(at)}`),
    ...(goes.length === 0
      ? []
      : [
          `The daemon deletes ${goes.length === 1 ? "it" : "these"} for good, with your config as it is since its start, and keeps what something open needs.`
        ]),
    ...(stays.length > 0 && keep !== undefined ? [`stays: ${count(stays.length, "segment")}, ${bytesOf(stays)}`] : [])
  ]
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
