/**
 * BackgroundTask: background work of the log's thread, done in small steps; appends are processed between the steps.
 *
 * Guarantees: a step is short. All chores that have work get equal amounts of time. All chores together use at most
 * half of the thread's time, and at most a tenth while runes are appended. A failing chore does not block appends or
 * other chores. The failure is reported, and the chore is retried after a pause that grows to one hour. A temporary
 * error, such as a full disk, therefore does not stop a chore permanently. Appends never depend on a chore.
 */

export interface BackgroundTask {
  /** Name of the chore, used in reports. */
  readonly chore: string
  readonly isDone: boolean
  /** Does one step of the work. Throws if the chore cannot continue now; the next call tries again. */
  step(): void
}

/** Number of rows per step. A step of this size blocks the thread for a few milliseconds. */
export const STEP = 250

/** First and longest pause (ms) before a failed chore is retried. */
export const FIRST_PAUSE = 10_000
export const LONGEST_PAUSE = 3_600_000

/** Pause after a step, as a multiple of its duration: `BUSY_PAUSE` while runes are appended, else `QUIET_PAUSE`. */
const QUIET_PAUSE = 1
const BUSY_PAUSE = 9

/** Minimum time (ms) charged for a step, so that chores alternate even if the clock does not advance. */
const LEAST = 0.01

/** Maximum number of consecutive failures of a chore that are reported. */
const TOLD = 3

/** Retry state of a chore that has failed. */
interface Pause {
  readonly until: number
  readonly length: number
  readonly times: number
}

export class Chores {
  private readonly all: ReadonlyArray<BackgroundTask>
  private readonly now: () => number
  private readonly pauses = new Map<BackgroundTask, Pause>()
  /** Running time (ms) charged to each chore. A chore gets no credit for time in which it had no work. */
  private readonly had = new Map<BackgroundTask, number>()
  /** Running time (ms) that had been charged to the last chore before its last step. */
  private turn = 0
  private last = { end: Number.NEGATIVE_INFINITY, took: 0 }
  onTrouble: (message: string) => void = () => {}

  /** `now`: returns the time of a monotonic clock in ms. */
  constructor(all: ReadonlyArray<BackgroundTask>, now: () => number) {
    this.all = all
    this.now = now
  }

  /** Time (ms) until a chore has work and the chores' share of time allows its step. Infinity if no work is left. */
  due(isBusy = false): number {
    const now = this.now()
    const due = this.all.reduce((due, chore) => Math.min(due, this.dueIn(chore, now)), Number.POSITIVE_INFINITY)
    return Math.max(due, this.last.end + this.last.took * (isBusy ? BUSY_PAUSE : QUIET_PAUSE) - now)
  }

  /** Runs a step of one chore: the one that has used the least time, among those that can run now. */
  step(): void {
    const begin = this.now()
    let chore: BackgroundTask | undefined
    for (const one of this.all) {
      if (this.dueIn(one, begin) === 0 && (chore === undefined || this.hadBy(one) < this.hadBy(chore))) chore = one
    }
    if (chore === undefined) return
    try {
      chore.step()
      this.pauses.delete(chore)
    } catch (error) {
      this.pause(chore, begin, error)
    }
    const end = this.now()
    this.last = { end, took: end - begin }
    this.turn = this.hadBy(chore)
    this.had.set(chore, this.turn + Math.max(end - begin, LEAST))
  }

  private hadBy(chore: BackgroundTask): number {
    return Math.max(this.turn, this.had.get(chore) ?? 0)
  }

  private dueIn(chore: BackgroundTask, now: number): number {
    if (chore.isDone) return Number.POSITIVE_INFINITY
    return Math.max(0, (this.pauses.get(chore)?.until ?? 0) - now)
  }

  private pause(chore: BackgroundTask, now: number, error: unknown): void {
    const before = this.pauses.get(chore)
    const length = Math.min((before?.length ?? FIRST_PAUSE / 2) * 2, LONGEST_PAUSE)
    const times = (before?.times ?? 0) + 1
    this.pauses.set(chore, { until: now + length, length, times })
    if (times > TOLD) return
    const message = error instanceof Error ? error.message : String(error)
    this.onTrouble(`${chore.chore} cannot go on: ${message}; it is tried again in ${length / 1_000} s`)
  }
}
