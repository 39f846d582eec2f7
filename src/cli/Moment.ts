/**
 * Moment: a point in time as a person gives it on a command line: `10m` ago, or
 * an ISO date.
 */
import { Duration, Option, Schema } from "effect"
import { Span } from "../config/Span.ts"

export type Moment =
  | { readonly _tag: "Ago"; readonly millis: number }
  /** ms since the epoch */
  | { readonly _tag: "At"; readonly at: number }

export const FORM = '"10m", "2 hours", or a date such as 2026-11-21T09:00'

const decodeSpan = Schema.decodeUnknownOption(Span)

/** Undefined: it is neither. */
export const parse = (text: string): Moment | undefined => {
  const span = /^\d+$/.test(text.trim()) ? Option.none() : decodeSpan(text)
  if (Option.isSome(span)) return { _tag: "Ago", millis: Duration.toMillis(span.value) }
  const at = /^\d{4}-\d\d/.test(text.trim()) ? Date.parse(text.trim()) : Number.NaN
  return Number.isNaN(at) ? undefined : { _tag: "At", at }
}
