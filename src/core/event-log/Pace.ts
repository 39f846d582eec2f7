/**
 * Pace: when the log's thread turns to what nobody asks for: housekeeping once nobody has asked for anything for a
 * moment, and steps of chores in their share of the time.
 *
 * Guarantees: appends that come again and again put off neither for ever, but housekeeping, which they see to
 * themselves; while the program starts there are no chores. Pure: all times are given.
 */

/** ms in which nobody asks for anything, and there is time for housekeeping. */
export const QUIET = 200
/** The same, and chores begin for the first time: until then the program starts. */
export const SETTLED = 2_000
/** ms after the start in which chores begin however much is asked for. */
export const AT_LAST = 30_000

/** Work that nobody asks for. */
export interface Left {
  readonly isUntidy: boolean
  /** ms until a chore may go on; Infinity where none has anything to do. */
  choresDue(isBusy: boolean): number
}

export class Pace {
  private readonly start: number
  /** When somebody asked for something, last. */
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

  /** ms until there is something to do that nobody asks for; Infinity where there is nothing. */
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
