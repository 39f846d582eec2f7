/**
 * ErrorLimit: warns before an agent reaches its limit of total errors. That count never goes down, so an agent that
 * runs for a year can reach it by flakes alone. The warning comes at three quarters.
 */

export interface Errors {
  readonly totalErrors: number
  readonly maxTotalErrors: number
}

/** Number of errors that triggers the warning: the 15th of 20. */
export const warnsAt = (maxTotalErrors: number): number => Math.ceil(maxTotalErrors * 0.75)

export const isNear = ({ maxTotalErrors, totalErrors }: Errors): boolean =>
  totalErrors >= warnsAt(maxTotalErrors) && totalErrors < maxTotalErrors

/** In words: `15 of 20 errors in all: at 20 it stops for good`. */
export const warning = ({ maxTotalErrors, totalErrors }: Errors): string =>
  `${totalErrors} of ${maxTotalErrors} errors in all: at ${maxTotalErrors} it stops for good`

/** "1 error", "2 errors". */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/** Corrects "1 errors" and similar in texts that an older version wrote into the log. */
export const putRight = (words: string): string => words.replace(/^1 (error|turn|agent|run)s /u, "1 $1 ")
