/**
 * LiveScreen: lines that scroll by, and below them one that is typed.
 *
 * Guarantees: what was printed stays in the terminal's own history, whole; below
 * it at most two rows are redrawn (an answer's unfinished line, the prompt), cut to
 * the width so that they never wrap; they are gone when it ends.
 */
import { Effect, Ref, type Scope, Terminal } from "effect"
import { displayWidth } from "../render/Width.ts"
import type { Line } from "./AttachView.ts"
import { type Editing, shown } from "./LineEditor.ts"
import { cut, paint } from "../render/Output.ts"
import { through } from "../render/TerminalDoor.ts"

/** Pasted text comes marked, so that its line ends send nothing. */
const ENTER = "\u001b[?2004h"
const LEAVE = "\u001b[?2004l"
const UP = "\u001b[1A"
const REST = "\u001b[J"
const column = (at: number): string => `\u001b[${at + 1}G`

export interface Shown {
  readonly partial: string
  readonly editing: Editing
  readonly columns: number
}

/** The end of a text, as far as it fits: what comes is read there. */
export const tailOf = (text: string, columns: number): string => {
  if (displayWidth(text) <= columns) return text
  const chars = Array.from(text.slice(-4 * columns))
  let width = 1
  let from = chars.length
  while (from > 0 && width + displayWidth(chars[from - 1]!) <= columns) width += displayWidth(chars[--from]!)
  return `…${chars.slice(from).join("")}`
}

/** The output that prints lines and draws the rows below them; `partial`: whether a row above the prompt is taken back. */
export const compose = (lines: ReadonlyArray<string>, now: Shown, prompt: string, before: boolean): string => {
  const width = Math.max(10, now.columns - 1)
  const label = cut(through(prompt, false), Math.floor(width / 2))
  const room = width - displayWidth(label)
  const typed = shown(now.editing, room)
  const partial = now.partial === "" ? "" : `${tailOf(through(now.partial, false), width)}\r\n`
  return [
    `\r${before ? UP : ""}${REST}`,
    ...lines.map((line) => `${line}\r\n`),
    `${partial}${label}${typed.text}${column(displayWidth(label) + typed.column)}`
  ].join("")
}

export interface Screen {
  /** Prints lines; the unfinished one is replaced. */
  readonly print: (lines: ReadonlyArray<Line>, partial: string) => Effect.Effect<void>
  readonly type: (editing: Editing) => Effect.Effect<void>
  readonly resize: (columns: number) => Effect.Effect<void>
}

/** On this terminal until the scope closes. */
export const make = Effect.fnUntraced(function* (
  prompt: string,
  options: { readonly colour: boolean; readonly columns: number; readonly editing: Editing }
): Effect.fn.Return<Screen, never, Scope.Scope | Terminal.Terminal> {
  const terminal = yield* Terminal.Terminal
  const state = yield* Ref.make<Shown>({ partial: "", editing: options.editing, columns: options.columns })
  const write = (text: string) => Effect.ignore(terminal.display(text))
  const draw = (lines: ReadonlyArray<Line>, change: Partial<Shown>) =>
    Effect.uninterruptible(
      Effect.flatMap(
        Ref.modify(state, (last) => [[last, { ...last, ...change }] as const, { ...last, ...change }]),
        ([last, now]) =>
          write(
            compose(
              lines.map(({ colour, text }) => paint(options.colour, colour, through(text, false))),
              now,
              prompt,
              last.partial !== ""
            )
          )
      )
    )
  yield* Effect.acquireRelease(write(ENTER), () =>
    Effect.flatMap(Ref.get(state), ({ partial }) =>
      // The prompt goes; an answer that was under way stays as far as it came.
      write(`\r${partial === "" ? "" : UP}${REST}${partial === "" ? "" : `${through(partial, false)}\r\n`}${LEAVE}`)
    )
  )
  return {
    print: (lines, partial) => draw(lines, { partial }),
    type: (editing) => draw([], { editing }),
    resize: (columns) => draw([], { columns })
  }
})
