/**
 * Choose: which rows of the board are meant: by name or pattern, by project, by word. Pure.
 *
 * Guarantees: `*` stands for any characters but a slash, `?` for one; a name without a slash means the thing, or all
 * of its project.
 */
import type { BoardRow } from "../domain/BoardMessages.ts"
import type { Word } from "../domain/Words.ts"

/** Whether the text fits the pattern. Steps: at most the product of their lengths. */
export const fits = (pattern: string, text: string): boolean => {
  let [at, star, from] = [0, -1, 0]
  for (let read = 0; read < text.length;) {
    const one = pattern[at]
    if (one === "*") {
      star = at++
      from = read
    } else if (one === text[read] || (one === "?" && text[read] !== "/")) {
      at++
      read++
    } else if (star >= 0 && text[from] !== "/") {
      at = star + 1
      read = ++from
    } else {
      return false
    }
  }
  return /^\**$/.test(pattern.slice(at))
}

/** The names of a thing. */
export type Named = Pick<BoardRow, "called" | "conversation" | "labels" | "name" | "project">

/** Whether it has all of these labels. */
export const isLabelled = ({ labels = [] }: Pick<BoardRow, "labels">, all: ReadonlyArray<string>): boolean =>
  all.every((label) => labels.includes(label))

/** Whether it stands for several names. */
export const isPattern = (name: string): boolean => /[*?]/u.test(name)

/** Whether the name or pattern means what is called so. */
export const means = (pattern: string, { called, conversation, name, project }: Named): boolean =>
  [`${project}/${name}`, called, name, project, conversation].some((one) => one !== "" && fits(pattern, one))

/** States that a script can wait for. */
export const AIMS = ["idle", "done", "needs-you", "failed", "working"] as const
export type Aim = (typeof AIMS)[number]

export interface Choice {
  readonly names: ReadonlyArray<string>
  readonly project: string | undefined
  readonly word: Word | undefined
  readonly labels: ReadonlyArray<string>
  readonly sort: "state" | "name" | "age" | "cost"
}

const by: { readonly [sort in Exclude<Choice["sort"], "state">]: (a: BoardRow, b: BoardRow) => number } = {
  name: (a, b) => {
    const [one, other] = [`${a.project}/${a.name}`, `${b.project}/${b.name}`]
    return Number(one > other) - Number(one < other)
  },
  age: (a, b) => b.since - a.since,
  cost: (a, b) => (b.today?.usd ?? 0) - (a.today?.usd ?? 0) || (b.today?.tokens ?? 0) - (a.today?.tokens ?? 0)
}

/** The rows that are meant; a stable order within each group. */
export const chosen = (
  rows: ReadonlyArray<BoardRow>,
  { labels, names, project, sort, word }: Choice
): ReadonlyArray<BoardRow> => {
  const kept = rows.filter(
    (row) =>
      (names.length === 0 || names.some((name) => means(name, row))) &&
      isLabelled(row, labels) &&
      (project === undefined || fits(project, row.project)) &&
      (word === undefined || row.word === word)
  )
  return sort === "state" ? kept : kept.toSorted(by[sort])
}
