/**
 * Vector: an immutable list whose changes cost what they touch: a tree of sixteen
 * branches a level, of which a change copies one path and shares the rest.
 *
 * Guarantees: a vector never changes; reading, changing and adding take logarithmic
 * time; many changes in a row copy each part once, by an `Edit`, which nobody else sees.
 */

const BITS = 4
const WIDTH = 1 << BITS
const MASK = WIDTH - 1

/** A part of the tree. Only the edit that made a branch may change it. */
class Branch {
  readonly slots: Array<unknown>
  readonly owner: object
  constructor(slots: Array<unknown>, owner: object) {
    this.slots = slots
    this.owner = owner
  }
}

const NOBODY = {}

const leafOf = (root: Branch, depth: number, index: number): Branch => {
  let branch = root
  for (let shift = depth; shift > 0; shift -= BITS) branch = branch.slots[(index >> shift) & MASK] as Branch
  return branch
}

export class Vector<A> implements Iterable<A> {
  readonly size: number
  private readonly root: Branch
  /** Bits of an index that are above those of a leaf. */
  private readonly depth: number

  private constructor(root: Branch, depth: number, size: number) {
    this.root = root
    this.depth = depth
    this.size = size
  }

  static readonly empty: Vector<never> = new Vector<never>(new Branch([], NOBODY), 0, 0)

  /** Undefined beyond the end. */
  get(index: number): A | undefined {
    return index < 0 || index >= this.size ? undefined : (leafOf(this.root, this.depth, index).slots[index & MASK] as A)
  }

  *[Symbol.iterator](): Generator<A, void> {
    for (let from = 0; from < this.size; from += WIDTH) {
      yield* leafOf(this.root, this.depth, from).slots as Array<A>
    }
  }

  slice(from: number, to: number): Array<A> {
    const found: Array<A> = []
    for (let index = Math.max(0, from); index < Math.min(to, this.size); index++) found.push(this.get(index)!)
    return found
  }

  filter(holds: (item: A) => boolean): Array<A> {
    const found: Array<A> = []
    for (const item of this) if (holds(item)) found.push(item)
    return found
  }

  edit(): Edit<A> {
    return new Edit<A>(this.root, this.depth, this.size, (root, depth, size) => new Vector<A>(root, depth, size))
  }
}

/** Many changes, from one vector to the next. */
export class Edit<A> {
  private root: Branch
  private depth: number
  private length: number
  private owner = {}
  private readonly made: (root: Branch, depth: number, size: number) => Vector<A>

  constructor(
    root: Branch,
    depth: number,
    size: number,
    made: (root: Branch, depth: number, size: number) => Vector<A>
  ) {
    this.root = root
    this.depth = depth
    this.length = size
    this.made = made
  }

  get size(): number {
    return this.length
  }

  /** The index must be there. */
  get(index: number): A {
    return leafOf(this.root, this.depth, index).slots[index & MASK] as A
  }

  set(index: number, item: A): void {
    this.own(index).slots[index & MASK] = item
  }

  /** Answers with the index. */
  push(item: A): number {
    const index = this.length
    if (index === 1 << (this.depth + BITS)) {
      this.root = new Branch([this.root], this.owner)
      this.depth += BITS
    }
    this.own(index).slots[index & MASK] = item
    this.length++
    return index
  }

  done(): Vector<A> {
    this.owner = {}
    return this.made(this.root, this.depth, this.length)
  }

  /** The leaf of an index; the whole path to it becomes this edit's own. */
  private own(index: number): Branch {
    let branch = (this.root = this.owned(this.root))
    for (let shift = this.depth; shift > 0; shift -= BITS) {
      const at = (index >> shift) & MASK
      branch = branch.slots[at] = this.owned(branch.slots[at] as Branch | undefined)
    }
    return branch
  }

  private owned(branch: Branch | undefined): Branch {
    if (branch === undefined) return new Branch([], this.owner)
    return branch.owner === this.owner ? branch : new Branch(branch.slots.slice(), this.owner)
  }
}
