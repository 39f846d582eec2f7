/**
 * DueTimes: decides what is due in a schedule now: a run, skipped times, or nothing yet. Pure.
 *
 * Guarantees: no time up to `upTo` is due. The schedule's catchUp says which missed times run: only the last of them,
 * each, or none. The search for missed times is bounded.
 */
import type { CronTimes } from "../config/CronTimes.ts"
import type { CatchUp } from "../config/ScheduleConfig.ts"

/**
 * Grace period in ms. A due time that has passed for no longer than this counts as now, because a daemon might have
 * restarted, or a timer might be late.
 */
export const GRACE = 2 * 60_000

/**
 * Maximum time between two checks while anything can become due, in ms, because no event reports that the machine slept
 * or that its clock was set.
 */
export const LOOK = 60_000

/** Maximum number of missed times that run with catchUp `all`, and maximum number that is counted. */
export const MAX_MISSED = 100

export type DueTimes =
  /** Nothing is due before `until`, ms since the epoch; undefined if nothing will ever be due. */
  | { readonly _tag: "Wait"; readonly until: number | undefined }
  /** `count` due times, the last of them at `due`, were missed and are skipped. */
  | { readonly _tag: "Missed"; readonly due: number; readonly count: number }
  | { readonly _tag: "Now"; readonly due: number }

/** Number of due times from `first` to `last`, both included; at most MAX_MISSED. */
const countOf = ({ next }: CronTimes, first: number, last: number): number => {
  let count = 1
  for (let at = next(first); at !== undefined && at <= last && count < MAX_MISSED; at = next(at)) count += 1
  return count
}

/** The latest missed time that has MAX_MISSED later ones; undefined if fewer times were missed. */
const tooOld = ({ last }: CronTimes, first: number, latest: number): number | undefined => {
  let at: number | undefined = latest
  for (let count = 0; count < MAX_MISSED && at !== undefined && at >= first; count++) at = last(at)
  return at !== undefined && at >= first ? at : undefined
}

const DAY = 86_400_000

/**
 * Whether `upTo` was set by a clock that was far ahead: it is more than a day and more than two periods in the future.
 */
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
): DueTimes => {
  const first = times.next(upTo)
  if (first === undefined || first > now) return { _tag: "Wait", until: first }
  // near a change to or from summer time, `last` can miss a time that `next` finds
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
