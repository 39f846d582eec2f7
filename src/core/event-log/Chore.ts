/**
 * Chore: work of the log's thread that can wait. It is done in small steps, and appends have their turn between the
 * steps.
 *
 * Guarantees: a step is short. Chores that have work share the time equally, however much work the others have. All
 * chores together use at most half of the thread's time, and at most a tenth while runes are appended. A chore that
 * cannot go on stops no append and no other chore. It is reported, and retried after a pause that grows to one hour. So
 * a disk that was full for a moment does not stop a chore for a year. Nothing that an append needs is left to a chore.
 */

export interface Chore {
  /** Name of the chore in reports. */
  readonly chore: string
  readonly isDone: boolean
  /** Throws if the chore cannot go on for now; the next call continues where it can. */
  step(): void
}

/** Number of rows per step: a step occupies the thread for a few milliseconds. */
export const STEP = 250

/** First and longest pause (ms) of a chore that cannot go on. */
export const FIRST_PAUSE = 10_000
export const LONGEST_PAUSE = 3_600_000

/** Pause after a step, as a multiple of the step's duration: if nothing is being appended, and if something is. */
const QUIET_PAUSE = 1
const BUSY_PAUSE = 9

/** Minimum time (ms) that a step counts for. If the clock stands still, chores take turns by number of steps. */
const LEAST = 0.01

/** Number of consecutive failures of a chore that are reported; later ones are not. */
const TOLD = 3

/** A chore that could not go on. */
interface Pause {
  readonly until: number
  readonly length: number
  readonly times: number
}

export class Chores {
  private readonly all: ReadonlyArray<Chore>
  private readonly now: () => number
  private readonly pauses = new Map<Chore, Pause>()
  /** Time (ms) that each chore has had. A chore is owed nothing for time in which it had no work. */
  private readonly had = new Map<Chore, number>()
  /** Total running time of the chore that ran last, as it was before that turn, ms. */
  private turn = 0
  private last = { end: Number.NEGATIVE_INFINITY, took: 0 }
  /** Called when a chore cannot go on. */
  onTrouble: (message: string) => void = () => {}

  /** `now`: ms of a monotonic clock. */
  constructor(all: ReadonlyArray<Chore>, now: () => number) {
    this.all = all
    this.now = now
  }

  /** Time (ms) until a step has work and stays within the chores' share; Infinity if no work is left. */
  due(isBusy = false): number {
    const now = this.now()
    const due = this.all.reduce((due, chore) => Math.min(due, this.dueIn(chore, now)), Number.POSITIVE_INFINITY)
    return Math.max(due, this.last.end + this.last.took * (isBusy ? BUSY_PAUSE : QUIET_PAUSE) - now)
  }

  /** Runs a step of the chore that can go on and has had the least time. */
  step(): void {
    const begin = this.now()
    let chore: Chore | undefined
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

  private hadBy(chore: Chore): number {
    return Math.max(this.turn, this.had.get(chore) ?? 0)
  }

  private dueIn(chore: Chore, now: number): number {
    if (chore.isDone) return Number.POSITIVE_INFINITY
    return Math.max(0, (this.pauses.get(chore)?.until ?? 0) - now)
  }

  private pause(chore: Chore, now: number, error: unknown): void {
    const before = this.pauses.get(chore)
    const length = Math.min((before?.length ?? FIRST_PAUSE / 2) * 2, LONGEST_PAUSE)
    const times = (before?.times ?? 0) + 1
    this.pauses.set(chore, { until: now + length, length, times })
    if (times > TOLD) return
    const message = error instanceof Error ? error.message : String(error)
    this.onTrouble(`${chore.chore} cannot go on: ${message}; it is tried again in ${length / 1_000} s`)
  }
}
