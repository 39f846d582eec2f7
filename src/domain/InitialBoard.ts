/**
 * InitialBoard: the part of the board that the daemon embeds in a page: the rows that fit on a screen, and the number
 * of other rows. The page reserves space for the other rows, so that nothing moves when they arrive. Pure.
 */
import { order } from "./BoardRow.ts"
import type { Board, BoardHead, BoardRow } from "./BoardMessages.ts"
import type { Word } from "./StatusWords.ts"

/** Number of rows of a project that have a certain status word and are left out. */
export interface Crowd {
  readonly project: string
  readonly word: Word
  readonly count: number
}

export interface InitialBoard {
  readonly head: BoardHead
  readonly rows: ReadonlyArray<BoardRow>
  readonly beyond: ReadonlyArray<Crowd>
}

/** Maximum number of embedded rows. A screen that is 2,160 pixels high shows 60 rows. */
const MOST = 80

export const glimpseOf = ({ head, rows }: Board): InitialBoard => {
  const all = rows.toSorted(order)
  const beyond = new Map<string, Crowd>()
  for (const { project, word } of all.slice(MOST)) {
    const key = `${word} ${project}`
    beyond.set(key, { project, word, count: (beyond.get(key)?.count ?? 0) + 1 })
  }
  return { head, rows: all.slice(0, MOST), beyond: [...beyond.values()] }
}
