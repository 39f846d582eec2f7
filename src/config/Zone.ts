/**
 * Zone: the time zones that a user can name, in a config or on a command line.
 *
 * Guarantees: an accepted zone works for times of day and for cron expressions. These use two different parsers, each
 * of which accepts some names that the other rejects.
 */
import { DateTime, Option, Schema } from "effect"
import { attempt } from "./Attempt.ts"

const isOfIntl = (name: string): boolean =>
  attempt(() => new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "") ?? false

export const isZone = (name: string): boolean => Option.isSome(DateTime.zoneFromString(name)) && isOfIntl(name)

export const Zone = Schema.String.check(
  Schema.makeFilter(isZone, {
    message: 'must be a time zone such as "Europe/Berlin" or "UTC"',
    toJsonSchema: () => ({})
  })
)
