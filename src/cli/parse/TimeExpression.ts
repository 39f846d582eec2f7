/**
 * TimeExpression: a past point in time in the form in which a user types it, before it is converted to a date. Pure
 * except for the machine's time zone.
 */

export type TimeExpression =
  | { readonly _tag: "Ago"; readonly millis: number }
  /** A point in time, in ms since the epoch. */
  | { readonly _tag: "At"; readonly at: number }
  /**
   * The latest occurrence of a time of day: today's, or yesterday's if today's is still in the future. `seconds`: since
   * midnight.
   */
  | { readonly _tag: "Clock"; readonly seconds: number }
  /** Midnight at the beginning of a day. `back`: number of days before today. */
  | { readonly _tag: "Day"; readonly back: number }

/** Converts the expression to ms since the epoch. */
export const atOf = (moment: TimeExpression, now: number): number => {
  const day = new Date(now)
  const midnight = (back: number) => new Date(day.getFullYear(), day.getMonth(), day.getDate() - back).getTime()
  switch (moment._tag) {
    case "Ago":
      return now - moment.millis
    case "At":
      return moment.at
    case "Day":
      return midnight(moment.back)
    case "Clock": {
      const { seconds } = moment
      const of = (back: number) =>
        new Date(day.getFullYear(), day.getMonth(), day.getDate() - back, 0, 0, seconds).getTime()
      return of(0) > now ? of(1) : of(0)
    }
  }
}
