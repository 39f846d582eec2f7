/**
 * Places: where each name of a growing list stands. Immutable: what is added comes
 * into a map of its own, and small maps are merged into one now and then, so that
 * there are never more than a handful.
 */
export class Places {
  /** The largest first, each less than half as large as the one before. */
  private readonly maps: ReadonlyArray<ReadonlyMap<string, number>>

  private constructor(maps: ReadonlyArray<ReadonlyMap<string, number>>) {
    this.maps = maps
  }

  static readonly none = new Places([])

  find(name: string): number | undefined {
    for (const map of this.maps) {
      const place = map.get(name)
      if (place !== undefined) return place
    }
    return undefined
  }

  /** Names that are not there yet. */
  with(added: ReadonlyMap<string, number>): Places {
    const maps = [...this.maps]
    let newest = added
    for (let last = maps.at(-1); last !== undefined && last.size <= 2 * newest.size; last = maps.at(-1)) {
      const merged = new Map(last)
      for (const [name, place] of newest) merged.set(name, place)
      newest = merged
      maps.pop()
    }
    return new Places([...maps, newest])
  }
}
