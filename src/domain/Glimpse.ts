/**
 * Glimpse: the part of the board that is embedded in a page when it loads: the rows that fit a screen, and the number
 * of all others. So nothing jumps when the others arrive. Pure.
 */
import { order } from "./BoardRow.ts"
import type { Board, BoardHead, BoardRow } from "./BoardMessages.ts"
import type { Word } from "./Words.ts"

/** Number of rows of one project and one word that are left out. */
export interface Crowd {
  readonly project: string
  readonly word: Word
  readonly count: number
}

export interface Glimpse {
  readonly head: BoardHead
  readonly rows: ReadonlyArray<BoardRow>
  readonly beyond: ReadonlyArray<Crowd>
}

/** A screen of 2,160 pixels shows 60 rows. */
const MOST = 80

export const glimpseOf = ({ head, rows }: Board): Glimpse => {
  const all = rows.toSorted(order)
  const beyond = new Map<string, Crowd>()
  for (const { project, word } of all.slice(MOST)) {
    const key = `${word} ${project}`
    beyond.set(key, { project, word, count: (beyond.get(key)?.count ?? 0) + 1 })
  }
  return { head, rows: all.slice(0, MOST), beyond: [...beyond.values()] }
}
