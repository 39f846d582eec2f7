/**
 * SubscriberRows: the current rows of the board, and which of them each subscriber has received. Pure.
 *
 * Guarantees: an unchanged row is not sent again. A subscriber that received nothing for a while gets the changed rows
 * in their newest form, and the ids of deleted rows. An update takes at most one pass over the rows.
 */
import type { BoardHead, BoardNews, BoardRow } from "../domain/BoardMessages.ts"
import * as Rows from "../domain/BoardRow.ts"
import { type BoardGiven, byId, Made, same, type Spent } from "./BoardList.ts"

const sum = (all: Iterable<Spent>): Spent => {
  let tokens = 0
  let usd = 0
  for (const one of all) {
    tokens += one.tokens
    usd += one.usd
  }
  return { tokens, usd }
}

export type Facts = BoardGiven & { readonly startedAt: number }

export const headOf = ({ startedAt, today }: Facts, rune: number): BoardHead => ({
  rune,
  startedAt,
  today: sum(today.values())
})

/** The current rows, each with the number of the update in which it last changed. */
export class Shown {
  readonly rows = new Map<string, { row: BoardRow; look: number }>()
  look = 0
  head: BoardHead = { rune: 0, startedAt: 0, today: { tokens: 0, usd: 0 } }
  private readonly made = new Made()

  take(facts: Facts, now: number, rune: number): void {
    const next = byId(facts, now, this.made)
    this.head = headOf(facts, rune)
    this.look++
    for (const [id, row] of next) {
      const known = this.rows.get(id)
      if (known === undefined) this.rows.set(id, { row, look: this.look })
      else if (known.row !== row) {
        if (!same(known.row, row)) known.look = this.look
        known.row = row
      }
    }
    if (this.rows.size > next.size) for (const id of this.rows.keys()) if (!next.has(id)) this.rows.delete(id)
  }
}

/** The part of the board that one subscriber has received. */
export class Told {
  private readonly ids = new Set<string>()
  private look = 0

  news({ head, look, rows }: Shown): ReadonlyArray<BoardNews> {
    const fresh: Array<BoardRow> = []
    for (const [id, { look, row }] of rows) {
      if (look <= this.look) continue
      fresh.push(row)
      this.ids.add(id)
    }
    const gone = this.ids.size === rows.size ? [] : [...this.ids].filter((id) => !rows.has(id))
    for (const id of gone) this.ids.delete(id)
    const isFirst = this.look === 0
    this.look = look
    if (isFirst) return [{ head, rows: fresh.toSorted(Rows.order), gone }]
    return fresh.length + gone.length === 0 ? [] : [{ head, rows: fresh, gone }]
  }
}
