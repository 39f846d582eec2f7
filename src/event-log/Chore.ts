/**
 * Chore: work of the log's thread that can wait until nobody appends: it is done in small
 * steps, between which appends have their turn.
 *
 * Guarantees: a step is short; a chore that cannot go on is left until the next start and
 * stops no append. Nothing that an append needs is left to a chore.
 */

export interface Chore {
  /** Whether there is nothing more to do for now. */
  readonly isDone: boolean
  /** A throw means that it cannot go on. */
  step(): void
}

/** Rows that one step looks at: it holds the thread for a few milliseconds. */
export const STEP = 250

/** Chores in their order. */
export class Chores {
  private readonly all: Array<Chore>

  constructor(all: ReadonlyArray<Chore>) {
    this.all = [...all]
  }

  get areDone(): boolean {
    return this.all.every(({ isDone }) => isDone)
  }

  /** A step of the first that has something to do. */
  step(): void {
    const index = this.all.findIndex(({ isDone }) => !isDone)
    if (index === -1) return
    try {
      this.all[index]!.step()
    } catch {
      this.all.splice(index, 1)
    }
  }
}
