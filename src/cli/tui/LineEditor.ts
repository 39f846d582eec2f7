/**
 * LineEditor: edits one line of input, key by key. Pure.
 *
 * Guarantees: the length of the line is limited. Pasted text is inserted with its line ends, and does not send the
 * line: only a key does. The displayed text cannot control the terminal.
 */
import type { Terminal } from "effect"
import { displayWidth } from "../render/Width.ts"
import { Option } from "effect"

export interface Editing {
  /** The characters of the line, one per array element. */
  readonly text: ReadonlyArray<string>
  readonly cursor: number
  /** Lines that were entered earlier, the newest last. */
  readonly history: ReadonlyArray<string>
  /** Index of the history entry in the line; `history.length` if the line is not from the history. */
  readonly at: number
  readonly pasting: boolean
}

export const empty: Editing = { text: [], cursor: 0, history: [], at: 0, pasting: false }

/** Maximum length of the line in characters. */
const LONGEST = 64 * 1024
/** Maximum number of lines in the history. */
const REMEMBERED = 100

export type Pressed =
  | { readonly _tag: "Edit"; readonly editing: Editing }
  | { readonly _tag: "Enter"; readonly line: string; readonly editing: Editing }
  | { readonly _tag: "Quit" }

const edit = (editing: Editing): Pressed => ({ _tag: "Edit", editing })

const insert = (editing: Editing, typed: string): Editing => {
  const { cursor, text } = editing
  const room = LONGEST - text.length
  const added = Array.from(typed).slice(0, Math.max(0, room))
  return {
    ...editing,
    text: [...text.slice(0, cursor), ...added, ...text.slice(cursor)],
    cursor: cursor + added.length
  }
}

const cutOut = (editing: Editing, from: number, to: number): Editing => ({
  ...editing,
  text: [...editing.text.slice(0, from), ...editing.text.slice(to)],
  cursor: from
})

const wordBefore = ({ cursor, text }: Editing): number => {
  let at = cursor
  while (at > 0 && text[at - 1] === " ") at--
  while (at > 0 && text[at - 1] !== " ") at--
  return at
}

const recall = (editing: Editing, at: number): Editing => {
  const { history } = editing
  if (at < 0 || at > history.length) return editing
  const text = Array.from(history[at] ?? "")
  return { ...editing, text, cursor: text.length, at }
}

const entered = (editing: Editing): Pressed => {
  const line = editing.text.join("")
  const history = line.trim() === "" ? editing.history : [...editing.history, line].slice(-REMEMBERED)
  return { _tag: "Enter", line, editing: { ...empty, history, at: history.length } }
}

const moves: { readonly [key: string]: (editing: Editing) => Editing } = {
  left: (editing) => ({ ...editing, cursor: Math.max(0, editing.cursor - 1) }),
  right: (editing) => ({ ...editing, cursor: Math.min(editing.text.length, editing.cursor + 1) }),
  home: (editing) => ({ ...editing, cursor: 0 }),
  end: (editing) => ({ ...editing, cursor: editing.text.length }),
  up: (editing) => recall(editing, editing.at - 1),
  down: (editing) => recall(editing, editing.at + 1),
  backspace: (editing) => cutOut(editing, Math.max(0, editing.cursor - 1), editing.cursor),
  delete: (editing) => cutOut(editing, editing.cursor, Math.min(editing.text.length, editing.cursor + 1)),
  "ctrl-a": (editing) => ({ ...editing, cursor: 0 }),
  "ctrl-e": (editing) => ({ ...editing, cursor: editing.text.length }),
  "ctrl-h": (editing) => cutOut(editing, Math.max(0, editing.cursor - 1), editing.cursor),
  "ctrl-k": (editing) => ({ ...editing, text: editing.text.slice(0, editing.cursor) }),
  "ctrl-u": (editing) => cutOut(editing, 0, editing.cursor),
  "ctrl-w": (editing) => cutOut(editing, wordBefore(editing), editing.cursor)
}

export const press = (editing: Editing, { input, key }: Terminal.UserInput): Pressed => {
  if (key.name === "paste-start") return edit({ ...editing, pasting: true })
  if (key.name === "paste-end") return edit({ ...editing, pasting: false })
  const typed = Option.getOrElse(input, () => "")
  if (editing.pasting) {
    return edit(insert(editing, key.name === "return" || key.name === "enter" ? "\n" : typed))
  }
  if (key.ctrl && (key.name === "c" || (key.name === "d" && editing.text.length === 0))) return { _tag: "Quit" }
  if (key.name === "return" || key.name === "enter") return entered(editing)
  const move = moves[key.ctrl ? `ctrl-${key.name}` : key.name]
  if (move !== undefined) return edit(move(editing))
  return key.ctrl || key.meta || /^\p{Cc}/u.test(typed) ? edit(editing) : edit(insert(editing, typed))
}

/** The displayed form of a character: a line end is shown as ⏎, any other invisible character as a dot. */
const visible = (char: string): string => (char === "\n" ? "⏎" : char.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u, "·"))

/** The part of the line around the cursor that fits into `columns`, and the cursor's position in it. */
export const shown = (
  { cursor, text }: Editing,
  columns: number
): { readonly text: string; readonly column: number } => {
  const chars = text.map(visible)
  let from = cursor
  let before = 0
  while (from > 0 && before + displayWidth(chars[from - 1]!) < columns) before += displayWidth(chars[--from]!)
  let to = cursor
  let width = before
  while (to < chars.length && width + displayWidth(chars[to]!) < columns) width += displayWidth(chars[to++]!)
  return { text: chars.slice(from, to).join(""), column: before }
}
