/** BoardPalette: the entries of the board's Ctrl+K palette, and the search among them. Pure. */
import type { BoardRow } from "../../domain/BoardMessages.ts"
import { isOver } from "../../domain/StatusWords.ts"
import { nameOf } from "../sessions/Board.ts"
import type { Pane } from "./BoardPane.ts"

export interface Entry {
  readonly label: string
  readonly does: string
  readonly to:
    | { readonly _tag: "Row"; readonly id: string }
    | { readonly _tag: "Pane"; readonly pane: Pane }
    /**
     * The entry has the same effect as pressing these keys. If a key ends work, it must then be pressed a second time.
     */
    | { readonly _tag: "Keys"; readonly keys: ReadonlyArray<string> }
}

const keys = (label: string, does: string, ...keys: ReadonlyArray<string>): Entry => ({
  label,
  does,
  to: { _tag: "Keys", keys }
})
const pane = (pane: Pane, does: string): Entry => ({ label: pane, does, to: { _tag: "Pane", pane } })

const PLACES: ReadonlyArray<Entry> = [
  keys("what asks", "show the next call that needs you", "g", "a"),
  keys("all", "remove the filter", "g", "b"),
  keys("goals", "show the goals of all projects", "g", "g"),
  keys("channels", "show the channels of all projects", "g", "c"),
  keys("sessions", "show sessions that were started by hand", "g", "s"),
  keys("projects", "show projects that have ended or cannot be read", "g", "p"),
  pane("why", "explain the current status"),
  pane("conversation", "show messages and answers"),
  pane("diff", "show changed files"),
  pane("output", "show the program's output"),
  pane("tree", "show this part of the supervision tree"),
  pane("cost", "show the cost of the last seven days"),
  pane("timeline", "show the runes"),
  keys("keys", "list all keys", "?"),
  keys("quit", "close the board; the agents continue", "q")
]

const verbs = (row: BoardRow): ReadonlyArray<Entry> => {
  const name = nameOf(row)
  const open = row.kind === "session" ? [keys(`jump to ${name}`, "switch to its tmux pane", "enter")] : []
  if (row.kind !== "agent") return open
  const over = isOver(row.word)
  return [
    keys(`attach ${name}`, "follow the agent, and send it messages", "enter"),
    keys(`send to ${name}`, "send a message", "s"),
    keys(over ? `start ${name}` : `restart ${name}`, "then press r again", "r"),
    ...(over
      ? []
      : [keys(`interrupt ${name}`, "then press i again", "i"), keys(`stop ${name}`, "then press x again", "x")])
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

/**
 * How well typed letters match a text. 0: at its beginning, or at the name's after the project; 1: at the beginning of a word; 2: anywhere; 3: with other
 * letters in between. Undefined: no match.
 */
const fitOf = (text: string, letters: string): number | undefined => {
  const at = text.indexOf(letters)
  if (at === 0 || text[at - 1] === "/" || text[at - 1] === "#") return 0
  if (at > 0) return /[\p{L}\p{N}]/u.test(text[at - 1]!) ? 2 : 1
  let from = 0
  for (const letter of letters) {
    from = text.indexOf(letter, from) + 1
    if (from === 0) return undefined
  }
  return 3
}

/** The entries that match the typed text, the best match first. */
export const matching = (all: ReadonlyArray<Entry>, typed: string): ReadonlyArray<Entry> => {
  const letters = typed.trim().toLowerCase()
  if (letters === "") return all
  const found = all.flatMap((entry) => {
    const fit = fitOf(entry.label.toLowerCase(), letters)
    return fit === undefined ? [] : [{ entry, fit }]
  })
  return found.toSorted((a, b) => a.fit - b.fit).map(({ entry }) => entry)
}
