/**
 * KeptLog: lists for `gc` the segments of the log in a state directory, and those among them that the setting `keepLog`
 * would delete.
 *
 * Guarantees: `look` changes nothing. Only the daemon deletes segments, and never a segment that an open item needs. So
 * the daemon may delete fewer segments than are shown.
 */
import { Clock, Effect } from "effect"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { boundsOf, type Kept } from "../../config/KeepLog.ts"
import { type Candidate, candidatesIn, chosen } from "../../core/event-log/Retention.ts"
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

/**
 * The segments of a store. `keep`: the setting keepLog in the user's current config file, whether or not it has been
 * applied; undefined: all segments are kept.
 */
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

/** Lines that describe the segments; empty if there are none. */
export const words = (parts: ReadonlyArray<Part>, keep: Kept | undefined): ReadonlyArray<string> => {
  if (parts.length === 0) return []
  const [goes, stays] = [parts.filter(({ goes }) => goes), parts.filter(({ goes }) => !goes)]
  const setting =
    keep === undefined ? "keepLog is not set in your config, so all segments are kept" : `keepLog "${keep.text}"`
  return [
    `The older part of the log: ${count(parts.length, "segment")}, ${bytesOf(parts)}; ${setting}.`,
    ...goes.map(({ at, bytes, path }) => `to delete: ${path} (${sizeOf(bytes)}), its newest rune is from ${dayOf(at)}`),
    ...(goes.length === 0
      ? []
      : [
          `The daemon permanently deletes ${goes.length === 1 ? "this segment" : "these segments"}, unless an open item needs them. It uses the config that it read at its start.`
        ]),
    ...(stays.length > 0 && keep !== undefined ? [`kept: ${count(stays.length, "segment")}, ${bytesOf(stays)}`] : [])
  ]
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
