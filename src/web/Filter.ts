/**
 * Filter: selects, groups and sorts the board's visible rows. Rows are grouped by who must act next, those that need
 * the user first.
 *
 * Guarantees: a row moves only when its status word or name changes, or its age if it needs a user or has failed.
 */
import { computed, signal, type Signal } from "@preact/signals"
import type { BoardRow } from "../domain/BoardMessages.ts"
import { order } from "../domain/BoardRow.ts"
import { type Group, GROUPS, LOOKS } from "../domain/StatusWords.ts"
import { countsBeyond, ordered, rows } from "./BoardStore.ts"

/** The filter text. A row is shown if it contains each word of this text. */
export const filter = signal("")
export const folded = signal<ReadonlySet<Group>>(new Set())
/** The id of the selected row; undefined if no row is selected. */
export const cursor = signal<string | undefined>(undefined)

export const fold = (group: Group): void => {
  const next = new Set(folded.peek())
  if (!next.delete(group)) next.add(group)
  folded.value = next
}

export type Item =
  | { readonly is: "group"; readonly group: Group; readonly count: number }
  | { readonly is: "row"; readonly id: string; readonly group: Group }
  /** A placeholder for a row that has not arrived yet. */
  | { readonly is: "ghost"; readonly group: Group; readonly n: number }

const matches = (row: BoardRow, words: ReadonlyArray<string>): boolean => {
  if (words.length === 0) return true
  const { kind, model, name, project, role, says, state, word } = row
  const text = `${project}/${name} ${word} ${kind} ${role} ${model} ${state} ${says}`.toLowerCase()
  return words.every((one) => text.includes(one))
}

interface Shown {
  readonly query: string
  readonly hidden: ReadonlySet<Group>
  /** Number of rows per group that have not arrived yet. It is unknown whether they match the query. */
  readonly beyond: { readonly [group in Group]: number }
}

/** All groups, each followed by its rows. Pure. */
export const itemsOf = (all: Iterable<BoardRow>, { beyond, hidden, query }: Shown): ReadonlyArray<Item> => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const shown = [...all].filter((row) => matches(row, words)).toSorted(order)
  return GROUPS.flatMap((group) => {
    const own = shown.filter(({ word }) => LOOKS[word].group === group)
    const more = words.length === 0 ? beyond[group] : 0
    const head = { is: "group", group, count: own.length + more } as const
    if (head.count === 0) return []
    if (hidden.has(group)) return [head]
    const ghosts = Array.from({ length: more }, (_, n) => ({ is: "ghost", group, n }) as const)
    return [head, ...own.map(({ id }) => ({ is: "row", id, group }) as const), ...ghosts]
  })
}

const values = (all: ReadonlyMap<string, Signal<BoardRow>>) => [...all.values()].map((row) => row.peek())

export const items = computed<ReadonlyArray<Item>>(() => {
  void ordered.value
  return itemsOf(values(rows), { query: filter.value, hidden: folded.value, beyond: countsBeyond.value })
})

/**
 * The id of the row that is `by` rows below the row `from`; if `from` is undefined, the first or the last row. Pure.
 */
export const moved = (list: ReadonlyArray<Item>, from: string | undefined, by: number): string | undefined => {
  const ids = list.flatMap((item) => (item.is === "row" ? [item.id] : []))
  if (ids.length === 0) return undefined
  const at = from === undefined ? -1 : ids.indexOf(from)
  if (at < 0) return by > 0 ? ids[0] : ids.at(-1)
  return ids[Math.max(0, Math.min(ids.length - 1, at + by))]
}
