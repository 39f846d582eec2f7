/** BoardPalette: all entries of the board's Ctrl+K palette, and the search among them. Pure. */
import type { BoardRow } from "../../domain/BoardMessages.ts"
import { isOver } from "../../domain/Words.ts"
import { nameOf } from "../sessions/Board.ts"
import type { Pane } from "./BoardPane.ts"

export interface Entry {
  readonly label: string
  readonly does: string
  readonly to:
    | { readonly _tag: "Row"; readonly id: string }
    | { readonly _tag: "Pane"; readonly pane: Pane }
    /** Acts as if these keys were pressed: a key that ends work must then be pressed once more. */
    | { readonly _tag: "Keys"; readonly keys: ReadonlyArray<string> }
}

const keys = (label: string, does: string, ...keys: ReadonlyArray<string>): Entry => ({
  label,
  does,
  to: { _tag: "Keys", keys }
})
const pane = (pane: Pane, does: string): Entry => ({ label: pane, does, to: { _tag: "Pane", pane } })

const PLACES: ReadonlyArray<Entry> = [
  keys("what asks", "the next call that needs you", "g", "a"),
  keys("all", "no filter", "g", "b"),
  keys("goals", "of all projects", "g", "g"),
  keys("channels", "of all projects", "g", "c"),
  keys("sessions", "by hand", "g", "s"),
  keys("projects", "that are over, or cannot be read", "g", "p"),
  pane("why", "what led it to where it is"),
  pane("conversation", "what was said"),
  pane("diff", "what it has changed"),
  pane("output", "what its program printed"),
  pane("tree", "its part of the supervision tree"),
  pane("cost", "the last seven days"),
  pane("timeline", "its runes"),
  keys("keys", "all of them", "?"),
  keys("quit", "agents go on", "q")
]

const verbs = (row: BoardRow): ReadonlyArray<Entry> => {
  const name = nameOf(row)
  const open = row.kind === "session" ? [keys(`jump to ${name}`, "its pane of tmux", "enter")] : []
  if (row.kind !== "agent") return open
  const over = isOver(row.word)
  return [
    keys(`attach ${name}`, "watch it, and talk to it", "enter"),
    keys(`send to ${name}`, "a message", "s"),
    keys(over ? `start ${name}` : `restart ${name}`, "r once more", "r"),
    ...(over ? [] : [keys(`interrupt ${name}`, "i once more", "i"), keys(`stop ${name} for good`, "x once more", "x")])
  ]
}

export const entries = (rows: ReadonlyArray<BoardRow>, chosen: BoardRow | undefined): ReadonlyArray<Entry> => [
  ...rows.map((row): Entry => ({
    label: nameOf(row),
    does: `${row.kind} · ${row.word} · ${row.says}`,
    to: { _tag: "Row", id: row.id }
  })),
  ...(chosen === undefined ? [] : verbs(chosen)),
  ...PLACES
]

/** How well letters fit a text: 0: its beginning, 1: that of a word, 2: anywhere, 3: in this order; else undefined. */
const fitOf = (text: string, letters: string): number | undefined => {
  const at = text.indexOf(letters)
  if (at === 0) return 0
  if (at > 0) return /[\p{L}\p{N}]/u.test(text[at - 1]!) ? 2 : 1
  let from = 0
  for (const letter of letters) {
    from = text.indexOf(letter, from) + 1
    if (from === 0) return undefined
  }
  return 3
}

/** The entries that fit, best first. */
export const matching = (all: ReadonlyArray<Entry>, typed: string): ReadonlyArray<Entry> => {
  const letters = typed.trim().toLowerCase()
  if (letters === "") return all
  const found = all.flatMap((entry) => {
    const fit = fitOf(entry.label.toLowerCase(), letters)
    return fit === undefined ? [] : [{ entry, fit }]
  })
  return found.toSorted((a, b) => a.fit - b.fit).map(({ entry }) => entry)
}
