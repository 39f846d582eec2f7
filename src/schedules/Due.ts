/**
 * Due: what is to be done about a schedule now. Pure.
 *
 * Guarantees: no time up to `upTo` is due; times that passed while nobody could act are settled as its catchUp says:
 * the last of them, each, or none; how many there are costs a bounded search.
 */
import type { CronTimes } from "../config/CronTimes.ts"
import type { CatchUp } from "../config/ScheduleConfig.ts"

/** A time that passed no longer ago counts as now, ms: a daemon is restarted meanwhile, a timer comes late. */
export const GRACE = 2 * 60_000

/** Most ms between two looks while anything is to be due: a machine that slept, or whose clock was set, tells nobody. */
export const LOOK = 60_000

/** So many times are caught up with `all`, and counted at most. */
export const MAX_MISSED = 100

export type Due =
  /** Nothing is due before; undefined: ever. */
  | { readonly _tag: "Wait"; readonly until: number | undefined }
  /** So many times up to this one are passed over. */
  | { readonly _tag: "Missed"; readonly due: number; readonly count: number }
  | { readonly _tag: "Now"; readonly due: number }

/** How many times lie between the two, both included; at most MAX_MISSED. */
const countOf = ({ next }: CronTimes, first: number, last: number): number => {
  let count = 1
  for (let at = next(first); at !== undefined && at <= last && count < MAX_MISSED; at = next(at)) count += 1
  return count
}

/** The one before which MAX_MISSED times lie, up to now; undefined where there are fewer. */
const tooOld = ({ last }: CronTimes, first: number, latest: number): number | undefined => {
  let at: number | undefined = latest
  for (let count = 0; count < MAX_MISSED && at !== undefined && at >= first; count++) at = last(at)
  return at !== undefined && at >= first ? at : undefined
}

const DAY = 86_400_000

/** Whether a clock that was far ahead has settled times up to there: more than a day and two periods lie between. */
export const isFarAhead = ({ next }: CronTimes, upTo: number, now: number): boolean => {
  if (upTo <= now + DAY) return false
  const first = next(now) ?? Number.POSITIVE_INFINITY
  const third = next(next(first) ?? Number.POSITIVE_INFINITY) ?? Number.POSITIVE_INFINITY
  return upTo - now > third - first
}

export const onceAt = (due: number): CronTimes => ({
  next: (after) => (after < due ? due : undefined),
  last: (before) => (before > due ? due : undefined)
})

export const dueOf = (
  times: CronTimes,
  catchUp: CatchUp,
  { now, upTo }: { readonly upTo: number; readonly now: number }
): Due => {
  const first = times.next(upTo)
  if (first === undefined || first > now) return { _tag: "Wait", until: first }
  // near a clock change the way back may miss a time that the way there finds
  const latest = Math.max(first, times.last(now + 1) ?? first)
  if (catchUp === "all") {
    const old = tooOld(times, first, latest)
    return old === undefined
      ? { _tag: "Now", due: first }
      : { _tag: "Missed", due: old, count: countOf(times, first, old) }
  }
  if (first === latest) {
    return catchUp === "none" && now - first > GRACE
      ? { _tag: "Missed", due: first, count: 1 }
      : { _tag: "Now", due: first }
  }
  const due = Math.max(first, times.last(latest) ?? first)
  return { _tag: "Missed", due, count: countOf(times, first, due) }
}
