/**
 * LogScrubber: a child of the daemon that reads and checks the whole log periodically, at low speed.
 *
 * Guarantees: data that a disk has changed is found even if nobody reads it. It causes an alert, and stays in `waiting`
 * and `status` until a check finds no problem, or a repair. A check is due a fixed time after the last one, regardless
 * of restarts in between. It begins only after the daemon has been up for a while.
 */
import { Clock, Duration, Effect } from "effect"
import { Agents } from "../projects/service/Agents.ts"
import { EventLog } from "../core/event-log/EventLog.ts"

/** Time after the daemon's start without a check, because a daemon that has just started has more important work. */
const SETTLED = Duration.minutes(10)
/** How often the due time is recalculated, because clocks are set and machines sleep. */
const LOOK = Duration.hours(1)

/** Time in ms until a check is due; 0 or negative: a check is due. */
const dueIn = Effect.fnUntraced(function* (every: Duration.Duration) {
  const log = yield* EventLog
  const now = yield* Clock.currentTimeMillis
  const first = yield* log.get((yield* log.sealed).deleted + 1)
  const last = (yield* log.checked)?.at ?? first?.at ?? now
  // a check in the future was recorded before the clock was set back
  return last > now ? 0 : last + Duration.toMillis(every) - now
})

/** Checks the log if a check is due. Returns the time until the next call. */
export const once = Effect.fnUntraced(function* (every: Duration.Duration) {
  const due = yield* dueIn(every)
  if (due > 0) return Duration.min(LOOK, Duration.millis(due))
  const { problems, runes } = yield* (yield* EventLog).scrub
  if (problems > 0)
    yield* Effect.logError(`the whole log was checked: ${problems} of ${runes} runes differ from what was written`)
  return LOOK
})

/** `every`: the interval; 0: never. */
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
