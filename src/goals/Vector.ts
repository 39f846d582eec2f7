/**
 * Vector: an immutable list whose changes cost what they touch: its items lie in pieces of
 * a fixed size, of which a change copies one and shares the rest.
 *
 * Guarantees: a vector never changes; many changes in a row copy each piece once, by an
 * `Edit`, which nobody else sees.
 */

const BITS = 9
const MASK = (1 << BITS) - 1

export class Vector<A> implements Iterable<A> {
  readonly size: number
  private readonly pieces: ReadonlyArray<ReadonlyArray<A>>

  constructor(pieces: ReadonlyArray<ReadonlyArray<A>>, size: number) {
    this.pieces = pieces
    this.size = size
  }

  static readonly empty: Vector<never> = new Vector<never>([], 0)

  /** Undefined beyond the end. */
  get(index: number): A | undefined {
    return this.pieces[index >> BITS]?.[index & MASK]
  }

  *[Symbol.iterator](): Generator<A, void> {
    for (const piece of this.pieces) yield* piece
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
    return new Edit<A>([...this.pieces], this.size)
  }
}

/** Many changes, from one vector to the next. */
export class Edit<A> {
  private readonly pieces: Array<ReadonlyArray<A>>
  /** Pieces that are copied already, by their places. */
  private readonly owned = new Map<number, Array<A>>()
  private length: number

  constructor(pieces: Array<ReadonlyArray<A>>, size: number) {
    this.pieces = pieces
    this.length = size
  }

  get size(): number {
    return this.length
  }

  /** The index must be there. */
  get(index: number): A {
    return this.pieces[index >> BITS]![index & MASK]!
  }

  set(index: number, item: A): void {
    this.own(index)[index & MASK] = item
  }

  /** Answers with the index. */
  push(item: A): number {
    this.own(this.length).push(item)
    return this.length++
  }

  /** Ends the edit. */
  done(): Vector<A> {
    return new Vector<A>(this.pieces, this.length)
  }

  private own(index: number): Array<A> {
    const place = index >> BITS
    const known = this.owned.get(place)
    if (known !== undefined) return known
    const piece = [...(this.pieces[place] ?? [])]
    this.owned.set(place, piece)
    this.pieces[place] = piece
    return piece
  }
}
