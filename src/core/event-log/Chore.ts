/**
 * Chore: work of the log's thread that can wait: it is done in small steps, between which appends have their turn.
 *
 * Guarantees: a step is short; of several chores that have work each has the same share of the time, however much the
 * others have to do; all together have half of the thread's time at most, and a tenth while somebody appends. A chore
 * that cannot go on stops no append and no other chore, is told of, and is tried again after a pause that grows to an
 * hour: a disk that was full for a moment costs no chore for a year. Nothing that an append needs is left to a chore.
 */

export interface Chore {
  /** Names it where its trouble is told. */
  readonly chore: string
  readonly isDone: boolean
  /** A throw means that it cannot go on for now; the next call begins where it can. */
  step(): void
}

/** Rows that one step looks at: it holds the thread for a few milliseconds. */
export const STEP = 250

/** ms of the first and the longest pause of one that cannot go on. */
export const FIRST_PAUSE = 10_000
export const LONGEST_PAUSE = 3_600_000

/** Pauses after a step, in lengths of the step: where nobody appends, and where somebody does. */
const QUIET_PAUSE = 1
const BUSY_PAUSE = 9

/** ms that a step counts for at least: where the clock stands, turns are by number. */
const LEAST = 0.01

/** Troubles that were told of one chore in a row are told no more. */
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
  /** ms that each has had; one that had nothing to do is owed nothing for that time. */
  private readonly had = new Map<Chore, number>()
  /** The time that the chore with the last turn had had before it. */
  private turn = 0
  private last = { end: Number.NEGATIVE_INFINITY, took: 0 }
  /** Hears of a chore that cannot go on. */
  onTrouble: (message: string) => void = () => {}

  /** `now`: ms of a clock that nobody steps. */
  constructor(all: ReadonlyArray<Chore>, now: () => number) {
    this.all = all
    this.now = now
  }

  /** ms until a step is of use, and no more than the chores' share; Infinity where nothing is left to do. */
  due(isBusy = false): number {
    const now = this.now()
    const due = this.all.reduce((due, chore) => Math.min(due, this.dueIn(chore, now)), Number.POSITIVE_INFINITY)
    return Math.max(due, this.last.end + this.last.took * (isBusy ? BUSY_PAUSE : QUIET_PAUSE) - now)
  }

  /** A step of the one that can go on and has had the least time. */
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
