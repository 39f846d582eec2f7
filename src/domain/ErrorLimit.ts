/**
 * ErrorLimit: warns the user before an agent reaches its limit of total errors. The count never decreases, so
 * occasional errors alone can reach the limit within a year. The warning comes at three quarters of the limit.
 */

export interface Errors {
  readonly totalErrors: number
  readonly maxTotalErrors: number
}

/** Number of errors at which the user is warned: 15 if the limit is 20. */
export const warnsAt = (maxTotalErrors: number): number => Math.ceil(maxTotalErrors * 0.75)

export const isNear = ({ maxTotalErrors, totalErrors }: Errors): boolean =>
  totalErrors >= warnsAt(maxTotalErrors) && totalErrors < maxTotalErrors

/** The wording of the warning: `15 of 20 errors in total: at 20 it stops permanently`. */
export const warning = ({ maxTotalErrors, totalErrors }: Errors): string =>
  `${totalErrors} of ${maxTotalErrors} errors in total: at ${maxTotalErrors} it stops permanently`

/** Number and noun: "1 error", "2 errors". */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/**
 * The reason of a permanent stop with its cause first, so that a narrow row shows the cause: `exit code 7 · stopped
 * permanently after 5 errors in a row`. A recorded reason begins with the count.
 */
export const causeFirst = (reason: string): string => {
  const [, count, cause] = /^(\d+ errors? (?:in a row|in total)); the last: (.+)$/su.exec(putRight(reason)) ?? []
  return count === undefined ? `${reason} · stopped permanently` : `${cause} · stopped permanently after ${count}`
}

/** Corrects "1 errors", "1 turns" and similar mistakes in text that an older agentd version wrote to the log. */
export const putRight = (words: string): string => words.replace(/^1 (error|turn|agent|run)s /u, "1 $1 ")
