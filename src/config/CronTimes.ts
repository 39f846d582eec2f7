/**
 * CronTimes: the times at which a cron expression is due in a time zone, with the DST rules that users expect. Pure.
 *
 * Guarantees: if a clock change skips a daily time, that time moves later by the amount of the change. If a clock
 * change repeats a daily time, only the first one counts. An expression whose hour field is `*` continues at even
 * intervals through both kinds of change. The times are always in ascending order.
 */
import { Cron, DateTime, Result } from "effect"
import { attempt } from "./Attempt.ts"

export interface CronTimes {
  /** The next due time after `after`, in ms since the epoch; undefined if there is none. */
  readonly next: (after: number) => number | undefined
  readonly last: (before: number) => number | undefined
}

export const ownZone = (): string => DateTime.zoneToString(DateTime.zoneMakeLocal())

const FIELDS = ["minute", "hour", "day of the month", "month", "day of the week"] as const

/** An arbitrary time from which to test whether an expression is ever due. */
const ANY = Date.UTC(2026, 0, 1)

const parsed = (cron: string, timeZone: string | undefined) => {
  const [minute, hour = "", ...days] = cron.trim().split(/\s+/u)
  const alone = Cron.parse(`0 ${hour} * * *`)
  // An hour field that covers all 24 hours counts as `*`, however it is written. The hour that occurs twice at a clock
  // change is then included twice.
  const hours = Result.isSuccess(alone) && alone.success.hours.size === 24 ? "*" : hour
  return Cron.parse([minute, hours, ...days].join(" "), timeZone, {
    onDstOverlap: hours.startsWith("*") ? "both" : "earlier"
  })
}

const stepping =
  (cron: Cron.Cron, step: typeof Cron.next) =>
  (from: number): number | undefined =>
    // Effect's search covers a limited number of years, and throws if it finds no time.
    attempt(() => step(cron, from).getTime())

const wrongField = (fields: ReadonlyArray<string>): string | undefined => {
  for (const [place, name] of FIELDS.entries()) {
    const alone = FIELDS.map((_, index) => (index === place ? fields[index]! : "*")).join(" ")
    const tried = Cron.parse(alone, "UTC")
    if (Result.isFailure(tried)) return `its ${name} "${fields[place]!}" cannot be read: ${tried.failure.message}`
  }
  return undefined
}

/** The reason why a text is not a valid cron expression; undefined if it is valid. */
export const problemOf = (cron: string): string | undefined => {
  const fields = cron.trim().split(/\s+/u)
  const form = 'five fields: minute, hour, day of the month, month, day of the week, such as "30 2 * * *"'
  if (fields.length !== FIELDS.length || fields[0] === "") return `must be ${form}`
  const wrong = wrongField(fields)
  if (wrong !== undefined) return `must be ${form}; ${wrong}`
  return stepping(Cron.parseUnsafe(cron, "UTC"), Cron.next)(ANY) === undefined
    ? "names a day that never comes"
    : undefined
}

/** The due times of a cron expression. The expression and the zone must have been checked before. */
export const of = (cron: string, timeZone: string): CronTimes => {
  const found = Result.getOrThrow(parsed(cron, timeZone))
  return { next: stepping(found, Cron.next), last: stepping(found, Cron.prev) }
}
