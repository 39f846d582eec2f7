/**
 * FairShare: tracks how much of a bounded resource each owner has, in pieces. Pure.
 *
 * Guarantees: each owner has a limit, and all together have one. If a limit is exceeded, pieces are removed from the
 * owner above its limit, or from the one that has most. Of that owner, the oldest or the newest piece is removed first.
 * An owner with little keeps it, however much others take.
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

  /** `goes`: which piece of an owner is removed first. */
  constructor({ all, each }: { readonly each: number; readonly all: number }, goes: "newest" | "oldest") {
    this.each = each
    this.all = all
    this.goes = goes
  }

  get size(): number {
    return this.total
  }

  /** The size of an owner's piece; 0: unknown. */
  of(owner: Owner, piece: A): number {
    return this.owners.get(owner)?.pieces.get(piece) ?? 0
  }

  /** Sets the size of the piece. Returns the pieces that must be removed; they are already forgotten here. */
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

  /** Returns false if the piece was unknown. */
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

  /** The owner with the largest sum; if several are equal, the one that came last. */
  private fullest(): [Owner, Held<A>] {
    let found: [Owner, Held<A>] | undefined
    for (const entry of this.owners) if (found === undefined || entry[1].sum >= found[1].sum) found = entry
    return found!
  }
}
