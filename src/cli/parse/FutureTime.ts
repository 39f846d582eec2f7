/**
 * FutureTime: parses a future point in time in the form in which a user types it: `9:00`, `tomorrow 9:00`, `fri 17:30`,
 * `20m`, or a date. Pure except for the machine's time zone.
 *
 * Guarantees: a time without a zone is in the machine's time zone. If a clock change skips the time, it is moved
 * forward by the amount of the change. If a clock change repeats the time, its first occurrence is used.
 */
export type FutureTime =
  | { readonly _tag: "In"; readonly millis: number }
  /** A point in time, in ms since the epoch. */
  | { readonly _tag: "At"; readonly at: number }
  /**
   * A time of day, of which the next occurrence is used. `seconds`: since midnight; `days`: number of days from today;
   * `weekday`: 0 is Sunday.
   */
  | { readonly _tag: "Clock"; readonly seconds: number; readonly days?: number; readonly weekday?: number }

export const FORM =
  '9:00, "tomorrow 9:00", "fri 17:30", "in 20m", or a date such as 2026-11-27T09:00 (2026-11-27T09:00Z: UTC)'

const UNITS: { readonly [unit: string]: number } = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const PIECE = /^\s*(\d{1,9}(?:\.\d{1,6})?)\s*(s|m|h|d|w|sec|min|second|minute|hour|day|week)s?(?=[\s\d]|$)/u

/** Parses a duration such as `20m`, `1h30m` or `2 hours`; returns ms, or undefined if the text is not a duration. */
export const spanOf = (text: string): number | undefined => {
  let rest = text.trim().toLowerCase()
  let millis = 0
  if (rest === "") return undefined
  while (rest !== "") {
    const [all, amount, unit] = PIECE.exec(rest) ?? []
    if (all === undefined) return undefined
    millis += Number(amount) * UNITS[unit![0]!]!
    rest = rest.slice(all.length).trimStart()
  }
  return Math.round(millis)
}

const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
const NAMES = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]

const clockOf = (text: string): number | undefined => {
  const [, hours, minutes, seconds = "0"] = /^(\d\d?):(\d\d)(?::(\d\d))?$/u.exec(text) ?? []
  if (hours === undefined) return undefined
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds)]
  return h < 24 && m < 60 && s < 60 ? h * 3600 + m * 60 + s : undefined
}

const onDay = (text: string): FutureTime | undefined => {
  const [day = "", time, ...more] = text.split(/\s+/u)
  const seconds = time === undefined ? clockOf(day) : clockOf(time)
  if (seconds === undefined || more.length > 0) return undefined
  if (time === undefined) return { _tag: "Clock", seconds }
  if (day === "today") return { _tag: "Clock", seconds, days: 0 }
  if (day === "tomorrow") return { _tag: "Clock", seconds, days: 1 }
  const weekday = Math.max(WEEKDAYS.indexOf(day), NAMES.indexOf(day))
  return weekday === -1 ? undefined : { _tag: "Clock", seconds, weekday }
}

/** Parses a time; undefined if the text has none of the known forms. */
export const parse = (given: string): FutureTime | undefined => {
  const text = given.trim().toLowerCase()
  const day = onDay(text)
  if (day !== undefined) return day
  const millis = spanOf(text.replace(/^(in\s+|\+)/u, ""))
  if (millis !== undefined) return { _tag: "In", millis }
  // reject a date without a time of day, because Date.parse would read it as midnight in UTC
  if (!/^\d{4}-\d\d-\d\d[t ]\d\d:\d\d/u.test(text)) return undefined
  const at = Date.parse(given.trim().replace(/^(\S+) /u, "$1T"))
  return Number.isNaN(at) ? undefined : { _tag: "At", at }
}

/** Computes the time in ms since the epoch. For a date, or a time of today, the result can be in the past. */
export const atOf = (coming: FutureTime, now: number): number => {
  if (coming._tag === "In") return now + coming.millis
  if (coming._tag === "At") return coming.at
  const { days, seconds, weekday } = coming
  const today = new Date(now)
  // use local hours and minutes, so that a clock change in between does not shift the time
  const on = (ahead: number) =>
    new Date(
      today.getFullYear(),
      today.getMonth(),
      today.getDate() + ahead,
      Math.floor(seconds / 3600),
      Math.floor(seconds / 60) % 60,
      seconds % 60
    ).getTime()
  if (days !== undefined) return on(days)
  const step = weekday === undefined ? 1 : 7
  const first = weekday === undefined ? 0 : (weekday - today.getDay() + 7) % 7
  return on(first) > now ? on(first) : on(first + step)
}
