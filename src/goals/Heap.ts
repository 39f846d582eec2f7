/**
 * Heap: a binary heap: the least of many in logarithmic time. Pure but for itself.
 */
export class Heap<A> {
  private readonly items: Array<A> = []
  private readonly before: (a: A, b: A) => boolean

  /** `before`: a strict order. */
  constructor(before: (a: A, b: A) => boolean) {
    this.before = before
  }

  get size(): number {
    return this.items.length
  }

  peek(): A | undefined {
    return this.items[0]
  }

  push(item: A): void {
    const { before, items } = this
    let at = items.length
    items.push(item)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!before(item, items[parent]!)) break
      items[at] = items[parent]!
      at = parent
    }
    items[at] = item
  }

  pop(): A | undefined {
    const { before, items } = this
    const least = items[0]
    const last = items.pop()
    if (last === undefined || items.length === 0) return least
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && before(items[child + 1]!, items[child]!)) child++
      if (!before(items[child]!, last)) break
      items[at] = items[child]!
      at = child
    }
    items[at] = last
    return least
  }
}
