/**
 * BoardRow: builds the ids of board rows and sorts the rows. Pure.
 *
 * Guarantees: a row keeps its id while its agent, session, goal or channel exists. The position of a row in the list
 * changes only with its status word, or with the time since which it needs the user.
 */
import type { BoardNews, BoardRow } from "./BoardMessages.ts"
import { rankOf } from "./StatusWords.ts"

export const ofAgent = ({ agent, conversation }: { readonly agent: string; readonly conversation: string }) =>
  `agent/${conversation}/${agent}`
export const ofSession = ({ plateId }: { readonly plateId: string }) => `session/${plateId}`
export const ofProject = ({ conversation }: { readonly conversation: string }) => `project/${conversation}`
export const ofGoal = ({ conversation, goalId }: { readonly conversation: string; readonly goalId: string }) =>
  `goal/${conversation}/${goalId}`
export const ofChannel = ({ conversation, name }: { readonly conversation: string; readonly name: string }) =>
  `channel/${conversation}/${name}`

/** Compares by UTF-16 code units, because the first call of `localeCompare` loads ICU's collator, which takes 8 ms. */
const alike = (a: string, b: string): number => Number(a > b) - Number(a < b)

const isDigit = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at)
  return code >= 48 && code <= 57
}

const numberEnd = (text: string, at: number): number => {
  let end = at
  while (isDigit(text, end)) end++
  return end
}

/** Compares names. Numbers in names are compared by value: `worker9` comes before `worker10`. */
export const byName = (a: string, b: string): number => {
  let at = 0
  while (at < a.length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  // if the names begin to differ within a number, go back to the number's first digit
  while (at > 0 && isDigit(a, at - 1)) at--
  const [endA, endB] = [numberEnd(a, at), numberEnd(b, at)]
  if (endA === at || endB === at) return alike(a, b)
  const [first, second] = [a.slice(at, endA), b.slice(at, endB)].map((digits) => digits.replace(/^0+(?=.)/, ""))
  return first!.length - second!.length || alike(first!, second!) || alike(a, b)
}

const called = ({ name, project }: BoardRow): string => `${project}/${name}`

/** Sorts rows by `since`: oldest first, rows with an unknown time (0) last. */
export const bySince = (a: { readonly since: number }, b: { readonly since: number }): number =>
  (a.since || Number.MAX_SAFE_INTEGER) - (b.since || Number.MAX_SAFE_INTEGER)

/**
 * Sorts rows by the rank of their status word. With the same word: rows that need the user, oldest first; failed rows,
 * newest first; all others by name.
 */
export const order = (a: BoardRow, b: BoardRow): number =>
  rankOf(a.word) - rankOf(b.word) ||
  (a.word === "needs you" ? bySince(a, b) : a.word === "failed" ? b.since - a.since : 0) ||
  byName(called(a), called(b)) ||
  alike(a.id, b.id)

/** Applies the updates in `news` to a copy of the rows. */
export const after = (
  rows: ReadonlyMap<string, BoardRow>,
  news: Pick<BoardNews, "gone" | "rows">
): ReadonlyMap<string, BoardRow> => {
  const next = new Map(rows)
  for (const id of news.gone) next.delete(id)
  for (const row of news.rows) next.set(row.id, row)
  return next
}
