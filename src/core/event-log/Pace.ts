/**
 * Pace: decides when the log's thread does work that was not requested: housekeeping after a moment without requests,
 * and steps of chores in their share of the time.
 *
 * Guarantees: appends that come again and again do not delay chores for ever. They can delay housekeeping, but they do
 * it themselves (`LogStore.keepUp`). While the program starts, no chores run. Pure: callers pass in all times.
 */

/** Time (ms) without a request after which there is time for housekeeping. */
export const QUIET = 200
/** Time (ms) without a request after which chores begin for the first time. Until then the program is starting. */
export const SETTLED = 2_000
/** Time (ms) after the start when chores begin, however many requests come. */
export const AT_LAST = 30_000

/** Work that was not requested. */
export interface Left {
  readonly isUntidy: boolean
  /** Time (ms) until a chore may continue; Infinity if none has work. */
  choresDue(isBusy: boolean): number
}

export class Pace {
  private readonly start: number
  /** Time of the last request. */
  private asked: number
  private isSettled = false

  constructor(now: number) {
    this.start = now
    this.asked = now
  }

  ask(now: number): void {
    this.asked = now
  }

  isQuiet(now: number): boolean {
    return this.untilQuiet(now) === 0
  }

  /** Time (ms) until there is work that was not requested; Infinity if there is none. */
  patience(now: number, left: Left): number {
    const quiet = this.untilQuiet(now)
    const chores = Math.min(left.choresDue(true), Math.max(quiet, left.choresDue(false)))
    return Math.min(left.isUntidy ? quiet : Number.POSITIVE_INFINITY, Math.max(this.untilSettled(now), chores))
  }

  /** Whether it is time for a step of a chore. */
  isForChores(now: number, left: Left): boolean {
    if (this.untilSettled(now) > 0) return false
    this.isSettled = true
    return left.choresDue(!this.isQuiet(now)) === 0
  }

  private untilQuiet(now: number): number {
    return Math.max(0, this.asked + QUIET - now)
  }

  private untilSettled(now: number): number {
    return this.isSettled ? 0 : Math.max(0, Math.min(this.asked + SETTLED, this.start + AT_LAST) - now)
  }
}
