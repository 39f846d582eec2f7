/**
 * MomentText: parses a past point in time in the form in which a user types it: `10m` or `10min ago`, `14:00`,
 * `yesterday`, or an ISO date.
 *
 * Guarantees: a time or a date without a zone is in the machine's time zone.
 */
import { Duration, Option, Schema } from "effect"
import { Span } from "../../config/Span.ts"
import type { TimeExpression } from "../parse/TimeExpression.ts"

export const FORM = '"10m", "2 hours ago", 14:00, yesterday, or a date such as 2026-11-21T09:00'

const DAYS: { readonly [word: string]: number } = { today: 0, yesterday: 1 }

const decodeSpan = Schema.decodeUnknownOption(Span)

const clockOf = (text: string): number | undefined => {
  const [, hours, minutes, seconds = "0"] = /^(\d\d?):(\d\d)(?::(\d\d))?$/.exec(text) ?? []
  if (hours === undefined) return undefined
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds)]
  return h < 24 && m < 60 && s < 60 ? h * 3600 + m * 60 + s : undefined
}

/** The duration in a text such as `2 hours ago`, without the word "ago". */
const agoOf = (text: string): string => (/\sago$/.test(text) ? text.slice(0, -"ago".length).trimEnd() : text)

/** Parses a point in time; undefined if the text has none of the known forms. */
export const parse = (given: string): TimeExpression | undefined => {
  const text = given.trim().toLowerCase()
  if (text === "now") return { _tag: "Ago", millis: 0 }
  if (Object.hasOwn(DAYS, text)) return { _tag: "Day", back: DAYS[text]! }
  const seconds = clockOf(text)
  if (seconds !== undefined) return { _tag: "Clock", seconds }
  const span = /^\d+$/.test(text) ? Option.none() : decodeSpan(agoOf(text.replace(/^-(?=\d)/, "")))
  if (Option.isSome(span)) return { _tag: "Ago", millis: Duration.toMillis(span.value) }
  if (!/^\d{4}-\d\d/.test(text)) return undefined
  // add a time of day, because JavaScript would read a date without one as UTC
  const at = Date.parse(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : given.trim())
  return Number.isNaN(at) ? undefined : { _tag: "At", at }
}
