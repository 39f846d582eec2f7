/**
 * Links: which tasks depend on which, as one piece of a plan brought them: places of
 * tasks in a few rows of numbers, since a plan may hold millions of dependencies.
 * Immutable; made in time proportional to what it holds.
 */

/** Numbers by key: the values of `keys[n]` stand from `starts[n]` to `starts[n + 1]`. */
interface Row {
  readonly keys: Int32Array
  readonly starts: Int32Array
  readonly values: Int32Array
}

/** Groups values by their keys; values of one key stay in their order. */
const rowOf = (keys: Int32Array, values: Int32Array): Row => {
  let [least, most] = [Number.POSITIVE_INFINITY, 0]
  for (const key of keys) {
    if (key < least) least = key
    if (key > most) most = key
  }
  const places = new Int32Array(most - least + 1)
  let distinct = 0
  for (const key of keys) if (places[key - least]!++ === 0) distinct++
  const row: Row = {
    keys: new Int32Array(distinct),
    starts: new Int32Array(distinct + 1),
    values: new Int32Array(values.length)
  }
  let n = 0
  let from = 0
  for (let place = 0; place < places.length; place++) {
    const count = places[place]!
    if (count === 0) continue
    row.keys[n] = place + least
    row.starts[n++] = places[place] = from
    from += count
  }
  row.starts[n] = from
  for (let index = 0; index < keys.length; index++) row.values[places[keys[index]! - least]!++] = values[index]!
  return row
}

/** The place of a key; -1 where there is none. */
const find = ({ keys }: Row, key: number): number => {
  let low = 0
  let high = keys.length - 1
  if (key < keys[low]! || key > keys[high]!) return -1
  while (low < high) {
    const middle = (low + high) >> 1
    if (keys[middle]! < key) low = middle + 1
    else high = middle
  }
  return keys[low] === key ? low : -1
}

export class Links {
  /** Dependents, by dependency. */
  private readonly waiting: Row
  /** Dependencies, by dependent, the youngest last. */
  private readonly needed: Row

  /** `dependents[n]` depends on `dependencies[n]`; one pair at least. */
  constructor(dependencies: ReadonlyArray<number>, dependents: ReadonlyArray<number>) {
    const waiting = (this.waiting = rowOf(Int32Array.from(dependencies), Int32Array.from(dependents)))
    const ascending = new Int32Array(dependencies.length)
    for (let n = 0; n < waiting.keys.length; n++) {
      ascending.fill(waiting.keys[n]!, waiting.starts[n], waiting.starts[n + 1])
    }
    this.needed = rowOf(waiting.values, ascending)
  }

  /** Calls `tell` with each task that depends on the task. */
  dependents(dependency: number, tell: (dependent: number) => void): void {
    const at = find(this.waiting, dependency)
    if (at === -1) return
    const { starts, values } = this.waiting
    for (let n = starts[at]!; n < starts[at + 1]!; n++) tell(values[n]!)
  }

  /** The place, below `before`, of the youngest dependency for which `holds`; -1 where there is none. */
  youngest(dependent: number, before: number, holds: (dependency: number) => boolean): number {
    const at = find(this.needed, dependent)
    if (at === -1) return -1
    const { starts, values } = this.needed
    for (let n = Math.min(before, starts[at + 1]!) - 1; n >= starts[at]!; n--) if (holds(values[n]!)) return n
    return -1
  }

  at(place: number): number {
    return this.needed.values[place]!
  }
}
