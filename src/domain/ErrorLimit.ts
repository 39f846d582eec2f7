/**
 * ErrorLimit: an agent's errors in all are never counted down, so that one that runs for a
 * year may reach their limit by flakes: people are warned before, at three quarters.
 */

export interface Errors {
  readonly totalErrors: number
  readonly maxTotalErrors: number
}

/** The error with which people are warned: the 15th of 20. */
export const warnsAt = (maxTotalErrors: number): number => Math.ceil(maxTotalErrors * 0.75)

export const isNear = ({ maxTotalErrors, totalErrors }: Errors): boolean =>
  totalErrors >= warnsAt(maxTotalErrors) && totalErrors < maxTotalErrors

/** In words: `15 of 20 errors in all: at 20 it stops for good`. */
export const warning = ({ maxTotalErrors, totalErrors }: Errors): string =>
  `${totalErrors} of ${maxTotalErrors} errors in all: at ${maxTotalErrors} it stops for good`

/** "1 error", "2 errors". */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/** Words that a log of before holds, with a count of one put right. */
export const putRight = (words: string): string => words.replace(/^1 (error|turn|agent|run)s /u, "1 $1 ")
