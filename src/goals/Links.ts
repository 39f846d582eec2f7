/**
 * Links: which tasks wait for which, as one piece of a plan brought them: places of
 * tasks in a few rows of numbers, since a plan may hold millions of dependencies.
 * Immutable.
 */

/** Places are below it: both of a pair fit into one number. */
const MOST = 2 ** 21

export class Links {
  /** Dependencies, ascending; those who wait for `keys[n]` stand in `waiting` from `starts[n]` to `starts[n + 1]`. */
  private readonly keys: Int32Array
  private readonly starts: Int32Array
  private readonly waiting: Int32Array

  /** Pairs one after the other: what is depended on, and what depends on it. */
  constructor(pairs: ReadonlyArray<number>) {
    const sorted = new Float64Array(pairs.length / 2)
    for (let n = 0; n < sorted.length; n++) sorted[n] = pairs[2 * n]! * MOST + pairs[2 * n + 1]!
    sorted.sort()
    const keys: Array<number> = []
    const starts: Array<number> = []
    this.waiting = new Int32Array(sorted.length)
    for (const [n, pair] of sorted.entries()) {
      const key = Math.floor(pair / MOST)
      if (keys.at(-1) !== key) {
        keys.push(key)
        starts.push(n)
      }
      this.waiting[n] = pair - key * MOST
    }
    this.keys = Int32Array.from(keys)
    this.starts = Int32Array.from([...starts, sorted.length])
  }

  /** Each that waits for it. */
  each(dependency: number, tell: (dependent: number) => void): void {
    const { keys, starts, waiting } = this
    let low = 0
    let high = keys.length - 1
    if (dependency < keys[low]! || dependency > keys[high]!) return
    while (low < high) {
      const middle = (low + high) >> 1
      if (keys[middle]! < dependency) low = middle + 1
      else high = middle
    }
    if (keys[low] !== dependency) return
    for (let n = starts[low]!; n < starts[low + 1]!; n++) tell(waiting[n]!)
  }
}
