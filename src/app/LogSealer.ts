/**
 * LogSealer: a child of the daemon that moves the oldest runes of a long log from the store into segments. It also
 * deletes the oldest segments if a user's `keepLog` says so.
 *
 * Guarantees: the newest runes stay in the store. So do all runes since the oldest open message, question, call, alert
 * or goal, and all runes with prompts that `keepPrompts` will still erase. If the oldest open item is unknown, nothing
 * is moved. Runes are moved in pieces, with a pause after each piece. An error is logged and retried.
 */
import { Clock, Duration, Effect } from "effect"
import { Agents } from "../projects/service/Agents.ts"
import { LiveOutbox } from "../alerts/LiveOutbox.ts"
import { Channels } from "../channels/Channels.ts"
import { boundsOf, type Kept } from "../config/KeepLog.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import { Goals } from "../goals/Goals.ts"
import { Plates } from "../plates/Plates.ts"

export interface Bounds {
  /** Minimum number of runes that stay in the store. */
  readonly keep: number
  /** Minimum number of runes in a segment. */
  readonly least: number
  readonly most: number
}

/** The default limits. With them, about 170 MB of runes stay in the store. */
export const bounds: Bounds = { keep: 250_000, least: 100_000, most: 250_000 }

const LOOK = Duration.minutes(1)
const PAUSE = Duration.seconds(1)

/** Final states of a goal. */
const OVER: ReadonlySet<string> = new Set(["goal_met", "stopped"])

/**
 * The rows of a feature's list; undefined if the feature does not answer within a second, because it is still reading
 * its log.
 */
const rows = <A>(list: Effect.Effect<ReadonlyArray<A>>) =>
  Effect.map(Effect.timeoutOption(list, "1 second"), (found) => (found._tag === "Some" ? found.value : undefined))

/** Time since which the oldest open item has been open, in ms since the epoch; 0 if unknown. */
export const openSince = Effect.gen(function* () {
  const agents = yield* Agents
  const channels = yield* rows((yield* Channels).list)
  const goals = yield* rows((yield* Goals).list({ all: true }, { by: "agentd", config: null }))
  const mails = yield* (yield* LiveOutbox).seen
  const plates = yield* (yield* Plates).list({ closed: false })
  if (channels === undefined || goals === undefined || mails === undefined) return 0
  // the time of an alert in a waiting mail is unknown, so nothing is sealed while a mail waits
  if (mails.batches.length > 0) return 0
  const seats = channels.filter(({ closed }) => !closed).flatMap(({ seats }) => seats)
  return Math.min(
    yield* agents.openSince,
    ...goals.filter(({ state }) => !OVER.has(state)).map(({ submittedAt }) => submittedAt),
    ...seats
      .filter(({ state, unread }) => state !== "OFFLINE" && (state !== "IDLE" || unread > 0))
      .map(({ since }) => since),
    ...plates.filter(({ approval }) => approval !== null).map(({ since }) => since)
  )
})

/**
 * Seals a segment if there are enough runes. Returns true if a segment was sealed. `kept`: how long prompts are kept.
 */
export const once = (kept: Duration.Duration | undefined, { keep, least, most }: Bounds = bounds) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const { last } = yield* log.sealed
    const upTo = Math.min(last + most, (yield* log.head) - keep)
    if (upTo - last < least) return false
    const now = yield* Clock.currentTimeMillis
    const prompts =
      kept === undefined
        ? Number.MAX_SAFE_INTEGER
        : now - Duration.toMillis(kept) - Duration.toMillis(Duration.hours(1))
    const before = Math.min(yield* openSince, prompts, Number.MAX_SAFE_INTEGER)
    return (yield* log.seal({ upTo, before, least })) !== undefined
  })

/**
 * Deletes the segments that need not be kept. Returns true if any were deleted. `storeBytes`: number of bytes of the
 * log outside its segments.
 */
export const forgetting = (keep: Kept, storeBytes: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    if ((yield* log.sealed).bytes === 0) return false
    const bounds = boundsOf(keep, yield* Clock.currentTimeMillis, storeBytes)
    const rune = yield* log.forget({ ...bounds, openSince: yield* openSince, by: `keepLog "${keep.text}"` })
    if (rune === undefined) return false
    const { deleted } = yield* log.sealed
    yield* Effect.logInfo(
      `the log now begins at rune ${deleted + 1}: older runes were deleted because of keepLog "${keep.text}"`
    )
    return true
  })

export interface Options {
  /** The longest time for which any project keeps prompts; undefined if no project limits it. */
  readonly prompts: Effect.Effect<Duration.Duration | undefined, never, Agents>
  /** How much of the log is kept; undefined if the whole log is kept. */
  readonly log: Kept | undefined
  /** Number of bytes of the log outside its segments. */
  readonly storeBytes: () => number
  readonly limits?: Bounds
}

export const run = ({ limits = bounds, log: keep, prompts, storeBytes }: Options) =>
  Effect.gen(function* () {
    yield* (yield* Agents).recovered
    const round = Effect.gen(function* () {
      const isSealed = yield* once(yield* prompts, limits)
      if (keep !== undefined && !isSealed) yield* forgetting(keep, storeBytes())
      return isSealed
    })
    return yield* Effect.forever(
      round.pipe(
        Effect.catchCause((cause) =>
          Effect.as(
            Effect.logWarning("the log's oldest runes could not be moved into a segment or deleted", cause),
            false
          )
        ),
        Effect.flatMap((isSealed) => Effect.sleep(isSealed ? PAUSE : LOOK))
      )
    )
  })
