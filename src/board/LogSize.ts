/**
 * LogSize: the size of the log on the disk, its growth, and the free space.
 *
 * Guarantees: a measurement reads only a few runes, however long the log is. Growth is measured over the last day; for
 * a younger log, over its age, if that is at least an hour. Unknown values are null.
 */
import { Clock, Duration, Effect } from "effect"
import { statfsSync } from "node:fs"
import { join } from "node:path"
import { EventLog } from "../core/event-log/EventLog.ts"
import { storeBytes } from "../core/event-log/SegmentFile.ts"
import type { DaemonStatus } from "./DaemonMessages.ts"

const DAY = Duration.toMillis(Duration.days(1))
const HOUR = Duration.toMillis(Duration.hours(1))

/** Number of free bytes on the disk that this user can use; null if unknown. */
const freeIn = (folder: string): number | null => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return null
  }
}

/** The first rune that is not older than `since`. If the clock was set back, the result is only a guess. */
const firstSince = Effect.fnUntraced(function* (since: number) {
  const log = yield* EventLog
  let [low, high] = [(yield* log.sealed).last + 1, yield* log.head]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const rune = yield* log.get(middle)
    if (rune === undefined || rune.at >= since) high = middle
    else low = middle + 1
  }
  return yield* log.get(low)
})

const runesOfDay = Effect.gen(function* () {
  const log = yield* EventLog
  const now = yield* Clock.currentTimeMillis
  const first = yield* firstSince(now - DAY)
  if (first === undefined || now - first.at < HOUR) return null
  return (((yield* log.head) - first.eventId) * DAY) / (now - first.at)
})

/** Measures the current size of the log. Its growth is measured at most once a minute. `state`: the state directory. */
export const make = Effect.fnUntraced(function* (state: string) {
  const log = yield* EventLog
  const daily = yield* Effect.cachedWithTTL(
    Effect.orElseSucceed(Effect.provideService(runesOfDay, EventLog, log), () => null),
    "1 minute"
  )
  return Effect.gen(function* () {
    const head = yield* log.head
    const { bytes: sealed, deleted } = yield* log.sealed
    const bytes = storeBytes(join(state, "runes.db"))
    const runes = yield* daily
    // today's runes will be moved to the compressed segments, so they are counted at the average size of all runes
    const kept = head - deleted
    const perDay = runes === null || kept === 0 ? null : Math.round((runes * (bytes + sealed)) / kept)
    const begins = deleted === 0 ? {} : { begins: deleted + 1 }
    return {
      head,
      bytes,
      sealed,
      ...begins,
      checked: yield* log.checked,
      perDay,
      free: freeIn(state)
    } satisfies DaemonStatus["log"]
  })
})
