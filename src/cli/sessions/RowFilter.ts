/**
 * RowFilter: selects rows of the board by name or pattern, project, label and status. Pure.
 *
 * Guarantees: `*` matches any characters except a slash, and `?` matches one such character. A name without a slash
 * refers to an item with that name, or to all items of a project with that name.
 */
import { isOf } from "../../config/ProjectName.ts"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import type { Word } from "../../domain/StatusWords.ts"

/** True if the text matches the pattern. Needs at most (length of pattern × length of text) steps. */
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

export type Named = Pick<BoardRow, "called" | "conversation" | "labels" | "name" | "project">

export const isLabelled = ({ labels = [] }: Pick<BoardRow, "labels">, all: ReadonlyArray<string>): boolean =>
  all.every((label) => labels.includes(label))

export const isPattern = (name: string): boolean => /[*?]/u.test(name)

export const means = (pattern: string, { called, conversation, name, project }: Named): boolean =>
  [`${project}/${name}`, called, name, project, conversation].some((one) => one !== "" && fits(pattern, one))

/** The name without the `#` that channels have. Users may omit the `#`. */
export const bare = (name: string): string => name.replace(/(^|\/)#/, "$1")

/** True if the item belongs to a project. */
const isWithin = ({ called, conversation, name }: Named): boolean =>
  conversation !== "" && called.endsWith(`/${bare(name)}`)

/**
 * The items with this name, normally one. A name without a project is first looked up in this folder's project, then
 * among items that belong to no project. Outside of all projects, it is looked up among all items.
 */
export const exact = <A extends Named>(
  all: ReadonlyArray<A>,
  name: string,
  config: string | null
): ReadonlyArray<A> => {
  const plain = bare(name)
  const isNamed = (one: A): boolean => bare(one.name) === plain
  const first = (...found: ReadonlyArray<ReadonlyArray<A>>) => found.find(({ length }) => length > 0) ?? []
  return first(
    config === null ? [] : all.filter((one) => isNamed(one) && isWithin(one) && isOf(config, one.conversation)),
    all.filter((one) => !isWithin(one) && (isNamed(one) || one.called === plain)),
    all.filter(({ called, conversation, name: own, project }) =>
      [called, `${project}/${bare(own)}`, `${conversation}/${bare(own)}`].includes(plain)
    ),
    config === null ? all.filter(isNamed) : []
  )
}

/** Like `exact`, but the name can also be a pattern, or the name of a whole project. */
export const listed = <A extends Named>(
  all: ReadonlyArray<A>,
  name: string,
  config: string | null
): ReadonlyArray<A> => {
  const found = isPattern(name) ? all.filter((one) => means(name, one)) : exact(all, name, config)
  return found.length > 0 ? found : all.filter(({ conversation, project }) => [conversation, project].includes(name))
}

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

/** The selected rows, sorted. Rows with the same sort key keep their order. */
export const chosen = (
  rows: ReadonlyArray<BoardRow>,
  { labels, names, project, sort, word }: Choice,
  config: string | null = null
): ReadonlyArray<BoardRow> => {
  const named = new Set(names.flatMap((name) => listed(rows, name, config)))
  const kept = rows.filter(
    (row) =>
      (names.length === 0 || named.has(row)) &&
      isLabelled(row, labels) &&
      (project === undefined || fits(project, row.project)) &&
      (word === undefined || row.word === word)
  )
  return sort === "state" ? kept : kept.toSorted(by[sort])
}
