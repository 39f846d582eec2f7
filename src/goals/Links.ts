/**
 * Links: which tasks depend on which, as one piece of a plan brought them: places of
 * tasks, by either end. Immutable; made in time proportional to what it holds.
 */

type Row = Map<number, Array<number>>

const add = (row: Row, key: number, value: number): void => {
  const known = row.get(key)
  if (known === undefined) row.set(key, [value])
  else known.push(value)
}

export class Links {
  /** Dependents, by dependency. */
  private readonly waiting: Row = new Map()
  /** Dependencies, by dependent, the youngest last. */
  private readonly needed: Row = new Map()

  /** `dependents[n]` depends on `dependencies[n]`; one pair at least. */
  constructor(dependencies: ReadonlyArray<number>, dependents: ReadonlyArray<number>) {
    dependencies.forEach((dependency, n) => {
      add(this.waiting, dependency, dependents[n]!)
      add(this.needed, dependents[n]!, dependency)
    })
    for (const all of this.needed.values()) all.sort((a, b) => a - b)
  }

  /** Calls `tell` with each task that depends on the task. */
  dependents(dependency: number, tell: (dependent: number) => void): void {
    for (const dependent of this.waiting.get(dependency) ?? []) tell(dependent)
  }

  /** The place, below `before`, of the dependent's youngest dependency for which `holds`; -1 where there is none. */
  youngest(dependent: number, before: number, holds: (dependency: number) => boolean): number {
    const all = this.needed.get(dependent) ?? []
    for (let n = Math.min(before, all.length) - 1; n >= 0; n--) if (holds(all[n]!)) return n
    return -1
  }

  at(dependent: number, place: number): number {
    return this.needed.get(dependent)![place]!
  }
}
