/**
 * Heap: an immutable priority queue: the first of many in constant time, one more or
 * one less in logarithmic time. A leftist tree: the way down its right side is short.
 */
export interface Heap<A> {
  readonly item: A
  readonly left: Heap<A> | undefined
  readonly right: Heap<A> | undefined
  /** Steps down the right side to the end. */
  readonly rank: number
}

/** True where `a` goes before `b`: a strict order. */
export type Before<A> = (a: A, b: A) => boolean

const join = <A>(item: A, one: Heap<A> | undefined, other: Heap<A> | undefined): Heap<A> => {
  const [a, b] = [one?.rank ?? 0, other?.rank ?? 0]
  return a >= b ? { item, left: one, right: other, rank: b + 1 } : { item, left: other, right: one, rank: a + 1 }
}

/** Recursion goes down right sides only: as deep as the logarithm of the size. */
const merge = <A>(a: Heap<A> | undefined, b: Heap<A> | undefined, before: Before<A>): Heap<A> | undefined => {
  if (a === undefined) return b
  if (b === undefined) return a
  return before(b.item, a.item)
    ? join(b.item, b.left, merge(a, b.right, before))
    : join(a.item, a.left, merge(a.right, b, before))
}

export const push = <A>(heap: Heap<A> | undefined, item: A, before: Before<A>): Heap<A> =>
  merge(heap, { item, left: undefined, right: undefined, rank: 1 }, before)!

/** The heap without its first item. */
export const pop = <A>(heap: Heap<A>, before: Before<A>): Heap<A> | undefined => merge(heap.left, heap.right, before)
