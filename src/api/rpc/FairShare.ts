/**
 * FairShare: tracks how much of a limited resource each owner uses, in pieces. Pure.
 *
 * Guarantees: each owner has a limit, and so do all owners together. If an owner's limit is exceeded, pieces are
 * removed from that owner. If the total is exceeded, they are removed from the owner with the largest sum. The owner's
 * oldest or newest piece is removed first. So an owner that uses little keeps its pieces, however much others use.
 */
interface Held<A> {
  readonly pieces: Map<A, number>
  sum: number
}

export class FairShare<Owner, A> {
  private readonly each: number
  private readonly all: number
  private readonly goes: "newest" | "oldest"
  private readonly owners = new Map<Owner, Held<A>>()
  private total = 0

  /**
   * `each` and `all`: the limits per owner and for all owners together. `goes`: which of an owner's pieces is removed
   * first.
   */
  constructor({ all, each }: { readonly each: number; readonly all: number }, goes: "newest" | "oldest") {
    this.each = each
    this.all = all
    this.goes = goes
  }

  get size(): number {
    return this.total
  }

  /** The size of an owner's piece; 0 if the piece is unknown. */
  of(owner: Owner, piece: A): number {
    return this.owners.get(owner)?.pieces.get(piece) ?? 0
  }

  /**
   * Sets the size of a piece. Returns the pieces that were removed because a limit was exceeded; the caller must
   * release them.
   */
  hold(owner: Owner, piece: A, size: number): ReadonlyArray<A> {
    const held = this.owners.get(owner) ?? { pieces: new Map<A, number>(), sum: 0 }
    const before = held.pieces.get(piece) ?? 0
    this.owners.set(owner, held)
    held.pieces.set(piece, size)
    held.sum += size - before
    this.total += size - before
    const gone: Array<A> = []
    while (held.sum > this.each) gone.push(this.dropOne(owner, held))
    while (this.total > this.all) gone.push(this.dropOne(...this.fullest()))
    return gone
  }

  /** Removes a piece. Returns false if the piece is unknown. */
  drop(owner: Owner, piece: A): boolean {
    const held = this.owners.get(owner)
    const size = held?.pieces.get(piece)
    if (held === undefined || size === undefined) return false
    held.pieces.delete(piece)
    held.sum -= size
    this.total -= size
    if (held.pieces.size === 0) this.owners.delete(owner)
    return true
  }

  private dropOne(owner: Owner, { pieces }: Held<A>): A {
    const [gone] = (this.goes === "oldest" ? pieces.keys() : [...pieces.keys()].slice(-1)) as Iterable<A> as [A]
    this.drop(owner, gone)
    return gone
  }

  /** The owner with the largest sum. If several have the same sum, the one that was added last. */
  private fullest(): [Owner, Held<A>] {
    let found: [Owner, Held<A>] | undefined
    for (const entry of this.owners) if (found === undefined || entry[1].sum >= found[1].sum) found = entry
    return found!
  }
}
