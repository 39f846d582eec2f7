/**
 * Places: where each name of a growing list stands. Immutable to look at: the names of all that grew from one
 * another lie in one map, of which each sees those that were there before its own end; so to add costs what is added.
 *
 * Guarantees: growing the same one twice by the same names costs no copy; by other names, one.
 */
export class Places {
  /** By name; places count from 0 on, in the order in which the names came. */
  private readonly all: Map<string, number>
  /** How many of them are these. */
  private readonly size: number

  private constructor(all: Map<string, number>, size: number) {
    this.all = all
    this.size = size
  }

  static readonly none = new Places(new Map(), 0)

  find(name: string): number | undefined {
    const place = this.all.get(name)
    return place === undefined || place >= this.size ? undefined : place
  }

  /** Names that are not there yet, in order. */
  with(added: Iterable<string>): Places {
    let { size } = this
    // none is where every list begins
    let all = size === 0 ? new Map<string, number>() : this.all
    for (const name of added) {
      const place = all.get(name)
      if (place !== size) {
        // the map has grown from here in another way
        if (all.size > size) all = new Map(all.entries().take(size))
        all.set(name, size)
      }
      size++
    }
    return new Places(all, size)
  }
}
