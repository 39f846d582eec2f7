/**
 * Scrubbing: the daemon's child that has the whole log read and checked from time to time, at an idle pace.
 *
 * Guarantees: what a disk has changed is found even where nobody reads it: it is an alert, and stays in `waiting` and
 * `status` until a check finds all well, or a repair; a check is due so long after the last one, whatever was started
 * and stopped meanwhile, and begins when the daemon has been up for a while.
 */
import { Clock, Duration, Effect } from "effect"
import { Agents } from "../projects/service/Agents.ts"
import { EventLog } from "../core/event-log/EventLog.ts"

/** A daemon that has just begun has better things to do. */
const SETTLED = Duration.minutes(10)
/** Clocks are set, machines sleep: when it is due is looked at anew. */
const LOOK = Duration.hours(1)

/** ms until a check is due. */
const dueIn = Effect.fnUntraced(function* (every: Duration.Duration) {
  const log = yield* EventLog
  const now = yield* Clock.currentTimeMillis
  const first = yield* log.get((yield* log.sealed).deleted + 1)
  const last = (yield* log.checked)?.at ?? first?.at ?? now
  // a check of the future was told by a clock that has been set back since
  return last > now ? 0 : last + Duration.toMillis(every) - now
})

/** Checks the log where it is due; ms until the next look. */
export const once = Effect.fnUntraced(function* (every: Duration.Duration) {
  const due = yield* dueIn(every)
  if (due > 0) return Duration.min(LOOK, Duration.millis(due))
  const { problems, runes } = yield* (yield* EventLog).scrub
  if (problems > 0)
    yield* Effect.logError(`the whole log was checked: ${problems} of ${runes} runes are not as written`)
  return LOOK
})

/** `every`: 0 for never. */
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
