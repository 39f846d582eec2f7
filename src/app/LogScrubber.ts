/**
 * LogScrubber: a child of the daemon that reads and checks the whole log periodically, at low speed.
 *
 * Guarantees: data that the disk has corrupted is found even if nobody reads it. The problem causes an alert, and is
 * shown in `waiting` and `status` until the log is repaired or a check finds no problem. A check is due a fixed time
 * after the previous check, regardless of restarts, but not until the daemon has been running for a while.
 */
import { Clock, Duration, Effect } from "effect"
import { Agents } from "../projects/service/Agents.ts"
import { EventLog } from "../core/event-log/EventLog.ts"

/**
 * Time after the daemon's start during which no check begins, because a daemon that has just started has more important
 * work.
 */
const SETTLED = Duration.minutes(10)
/** Interval at which the due time is calculated again, because the clock can be set and the machine can sleep. */
const LOOK = Duration.hours(1)

/** Time in ms until the next check is due; 0 or negative if a check is due now. */
const dueIn = Effect.fnUntraced(function* (every: Duration.Duration) {
  const log = yield* EventLog
  const now = yield* Clock.currentTimeMillis
  const first = yield* log.get((yield* log.sealed).deleted + 1)
  const last = (yield* log.checked)?.at ?? first?.at ?? now
  // if the last check has a time in the future, the clock was set back after it
  return last > now ? 0 : last + Duration.toMillis(every) - now
})

/** Checks the log if a check is due. Returns the delay before this function should be called again. */
export const once = Effect.fnUntraced(function* (every: Duration.Duration) {
  const due = yield* dueIn(every)
  if (due > 0) return Duration.min(LOOK, Duration.millis(due))
  const { problems, runes } = yield* (yield* EventLog).scrub
  if (problems > 0)
    yield* Effect.logError(`the whole log was checked: ${problems} of ${runes} runes differ from what was written`)
  return LOOK
})

/** Checks the log periodically. `every`: interval of the checks; 0 turns them off. */
export const run = (every: Duration.Duration) =>
  Effect.gen(function* () {
    if (Duration.isZero(every)) return yield* Effect.never
    yield* (yield* Agents).recovered
    yield* Effect.sleep(Duration.min(SETTLED, every))
    return yield* Effect.forever(
      once(every).pipe(
        Effect.catchCause((cause) => Effect.as(Effect.logWarning("the log could not be checked", cause), LOOK)),
        Effect.flatMap((wait) => Effect.sleep(wait))
      )
    )
  })
