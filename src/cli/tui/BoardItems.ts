/**
 * BoardItems: computes the lines of the board's list: groups by who must act next, the sorted rows in each group, and
 * collapsed projects. Pure.
 *
 * Guarantees: a row that needs the user or has failed is never hidden in a collapsed project.
 */
import type { BoardRow } from "../../domain/BoardMessages.ts"
import { order } from "../../domain/BoardRow.ts"
import { type Group, GROUPS, LOOKS } from "../../domain/StatusWords.ts"
import { nameOf } from "../sessions/Board.ts"

export type Item =
  | { readonly _tag: "Group"; readonly group: Group; readonly count: number }
  | { readonly _tag: "Row"; readonly row: BoardRow }
  /** A line that stands for all rows of a collapsed project in one group. */
  | { readonly _tag: "Project"; readonly project: string; readonly count: number }

export const SORTS = ["state", "name", "age", "cost"] as const
export type Sort = (typeof SORTS)[number]

const ORDERS: { readonly [sort in Sort]: (a: BoardRow, b: BoardRow) => number } = {
  state: () => 0,
  name: (a, b) => Number(nameOf(a) > nameOf(b)) - Number(nameOf(a) < nameOf(b)),
  age: (a, b) => a.since - b.since,
  cost: (a, b) => (b.today?.usd ?? 0) - (a.today?.usd ?? 0) || (b.today?.tokens ?? 0) - (a.today?.tokens ?? 0)
}

export interface Shape {
  /** Filter text. A row is listed only if its text contains all words of the filter. */
  readonly filter: string
  readonly sort: Sort
  readonly foldedGroups: ReadonlySet<Group>
  readonly foldedProjects: ReadonlySet<string>
}

/** A row's labels in the form that the filter matches, such as `+web`. */
export const labelsOf = ({ labels = [] }: BoardRow): string => labels.map((label) => `+${label}`).join(" ")

const textOf = (row: BoardRow): string =>
  `${nameOf(row)} ${row.kind} ${row.word} ${row.model} ${row.role} ${labelsOf(row)} ${row.says}`.toLowerCase()

/** The lines of one group. A collapsed project is one line, at the position of its first row. */
const inside = (group: Group, own: ReadonlyArray<BoardRow>, folded: ReadonlySet<string>): ReadonlyArray<Item> => {
  const isOpen = ({ project }: BoardRow) => group === "Needs you" || group === "Failed" || !folded.has(project)
  const told = new Set<string>()
  return own.flatMap((row): ReadonlyArray<Item> => {
    if (isOpen(row)) return [{ _tag: "Row", row }]
    if (told.has(row.project)) return []
    told.add(row.project)
    return [
      { _tag: "Project", project: row.project, count: own.filter(({ project }) => project === row.project).length }
    ]
  })
}

export const itemsOf = (
  all: Iterable<BoardRow>,
  { filter, foldedGroups, foldedProjects, sort }: Shape
): ReadonlyArray<Item> => {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
  const rows = [...all]
    .filter((row) => words.every((word) => textOf(row).includes(word)))
    .toSorted((a, b) => ORDERS[sort](a, b) || order(a, b))
  return GROUPS.flatMap((group): ReadonlyArray<Item> => {
    const own = rows.filter(({ word }) => LOOKS[word].group === group)
    if (own.length === 0) return []
    const shown = foldedGroups.has(group) ? [] : inside(group, own, foldedProjects)
    return [{ _tag: "Group", group, count: own.length }, ...shown]
  })
}
