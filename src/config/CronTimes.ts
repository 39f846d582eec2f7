/**
 * CronTimes: the times that a cron expression means in a time zone, with the DST rules that people expect. Pure.
 *
 * Guarantees: a daily time that a clock change leaves out comes as much later as the clock was set ahead; one that it
 * brings twice comes the first time only; an expression whose hours are `*` goes on evenly through either. Never two
 * times in the wrong order.
 */
import { Cron, DateTime, Result } from "effect"
import { attempt } from "./Attempt.ts"

export interface CronTimes {
  /** The first one later than that, ms since the epoch; undefined where none comes. */
  readonly next: (after: number) => number | undefined
  readonly last: (before: number) => number | undefined
}

export const ownZone = (): string => DateTime.zoneToString(DateTime.zoneMakeLocal())

const FIELDS = ["minute", "hour", "day of the month", "month", "day of the week"] as const

/** Any time at which to try whether an expression has times at all. */
const ANY = Date.UTC(2026, 0, 1)

const parsed = (cron: string, timeZone: string | undefined) => {
  const [minute, hour = "", ...days] = cron.trim().split(/\s+/u)
  const alone = Cron.parse(`0 ${hour} * * *`)
  // every hour is every hour, however it is written, also the one that comes twice
  const hours = Result.isSuccess(alone) && alone.success.hours.size === 24 ? "*" : hour
  return Cron.parse([minute, hours, ...days].join(" "), timeZone, {
    onDstOverlap: hours.startsWith("*") ? "both" : "earlier"
  })
}

const stepping =
  (cron: Cron.Cron, step: typeof Cron.next) =>
  (from: number): number | undefined =>
    // it searches so many years, and throws
    attempt(() => step(cron, from).getTime())

const wrongField = (fields: ReadonlyArray<string>): string | undefined => {
  for (const [place, name] of FIELDS.entries()) {
    const alone = FIELDS.map((_, index) => (index === place ? fields[index]! : "*")).join(" ")
    const tried = Cron.parse(alone, "UTC")
    if (Result.isFailure(tried)) return `its ${name} "${fields[place]!}" cannot be read: ${tried.failure.message}`
  }
  return undefined
}

/** Why it is no expression; undefined: it is one. */
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

/** Of an expression and a zone that were checked. */
export const of = (cron: string, timeZone: string): CronTimes => {
  const found = Result.getOrThrow(parsed(cron, timeZone))
  return { next: stepping(found, Cron.next), last: stepping(found, Cron.prev) }
}
