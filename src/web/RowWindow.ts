/**
 * RowWindow: stores the loaded rows of a long list by position, and decides which rows to request next. Pure.
 *
 * Guarantees: only visible rows are requested, so fast scrolling does not request the rows that it skips. The newest
 * request goes first. Rows far from the visible part are dropped. If the positions of rows have changed, all rows are
 * requested again.
 */
/** Number of rows per request. */
export const SIZE = 200
/** Maximum number of concurrent requests. */
const AT_ONCE = 2
/** Approximate maximum number of rows in memory. */
const KEPT = 4_000

export interface Placed {
  readonly place: number
  readonly eventId: number
}

export class RowWindow<Row extends Placed> {
  readonly rows = new Map<number, Row>()
  /** For each block: the end position of the rows that were requested. The last block grows as rows are added. */
  private readonly asked = new Map<number, number>()
  private readonly under = new Set<number>()
  private sight: readonly [first: number, last: number] = [0, 0]

  see(first: number, last: number): void {
    this.sight = [first, last]
  }

  /** The next block of rows to request, which is then recorded as requested; undefined if no request is needed. */
  ask(total: number): number | undefined {
    if (this.under.size >= AT_ONCE) return undefined
    const [first, last] = this.sight
    for (let block = Math.floor(first / SIZE); block * SIZE < Math.min(last, total); block++) {
      const end = Math.min(total, (block + 1) * SIZE)
      if (this.under.has(block) || (this.asked.get(block) ?? 0) >= end) continue
      if (this.isHere(Math.max(first, block * SIZE), Math.min(last, end))) continue
      this.asked.set(block, end)
      this.under.add(block)
      return block
    }
    return undefined
  }

  private isHere(first: number, last: number): boolean {
    for (let place = first; place < last; place++) if (!this.rows.has(place)) return false
    return true
  }

  /** Stores the rows that were received for a block; without `block`, stores the newest rows. */
  take(rows: ReadonlyArray<Row>, block?: number): void {
    if (block !== undefined) this.under.delete(block)
    if (rows.some(({ eventId, place }) => (this.rows.get(place)?.eventId ?? eventId) !== eventId)) {
      this.rows.clear()
      this.asked.clear()
    }
    for (const row of rows) this.rows.set(row.place, row)
    if (this.rows.size > KEPT) this.letGo()
  }

  failed(block: number): void {
    this.under.delete(block)
    this.asked.delete(block)
  }

  private letGo(): void {
    const middle = (this.sight[0] + this.sight[1]) / 2
    const far = (place: number) => Math.abs(place - middle) > KEPT / 4
    for (const place of this.rows.keys()) if (far(place)) this.rows.delete(place)
    for (const block of this.asked.keys()) if (far(block * SIZE) || far((block + 1) * SIZE)) this.asked.delete(block)
  }
}
