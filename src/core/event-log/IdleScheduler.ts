/**
 * IdleScheduler: decides when the log's thread does background work: housekeeping after a short time without requests,
 * and chores within a limited share of the time.
 *
 * Guarantees: continuous appends do not delay chores forever. They can delay housekeeping, but then each group of
 * appends does the urgent part of it (`LogStore.keepUp`). No chores run while the program starts. Pure: times are
 * passed as arguments.
 */

/** Time (ms) without a request after which housekeeping starts. */
export const QUIET = 200
/** Time (ms) without a request before chores first run. Until then, the program counts as starting. */
export const SETTLED = 2_000
/** Maximum time (ms) after the start before chores first run, even if requests continue to arrive. */
export const AT_LAST = 30_000

/** Pending background work. */
export interface Left {
  readonly isUntidy: boolean
  /** Time (ms) until a chore may continue; Infinity if no chore has work. */
  choresDue(isBusy: boolean): number
}

export class IdleScheduler {
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

  /** Time (ms) until background work is due; Infinity if there is none. */
  patience(now: number, left: Left): number {
    const quiet = this.untilQuiet(now)
    const chores = Math.min(left.choresDue(true), Math.max(quiet, left.choresDue(false)))
    return Math.min(left.isUntidy ? quiet : Number.POSITIVE_INFINITY, Math.max(this.untilSettled(now), chores))
  }

  /** Returns true if a step of a chore may run now. */
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
