/**
 * Glimpse: the board as it stands in a page when it comes: the rows that a screen can show, and how many there are
 * besides, so that nothing jumps when they come. Pure.
 */
import { order } from "./BoardRow.ts"
import type { Board, BoardHead, BoardRow } from "./BoardMessages.ts"
import type { Word } from "./Words.ts"

/** Rows of one project in one word, which are not here. */
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

/** A screen of 2,160 pixels has 60 of them in sight. */
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
