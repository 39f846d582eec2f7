/**
 * LiveScreen: prints lines that scroll up, with an input line below them.
 *
 * Guarantees: all printed lines stay in the terminal's own history. Below them, at most two rows are redrawn: the
 * unfinished line of an answer, and the prompt. Both are cut to the terminal's width, so that they never wrap, and are
 * removed at the end.
 */
import { Effect, Ref, type Scope, Terminal } from "effect"
import { displayWidth } from "../render/Width.ts"
import type { Line } from "./AttachView.ts"
import { type Editing, shown } from "./LineEditor.ts"
import { cut, paint } from "../render/Output.ts"
import { through } from "../render/TerminalDoor.ts"

/** Turns on bracketed paste. Pasted text then arrives between marks, so that its line ends do not send the line. */
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

/** The last part of a text that fits into `columns`, because new text appears at the end. */
export const tailOf = (text: string, columns: number): string => {
  if (displayWidth(text) <= columns) return text
  const chars = Array.from(text.slice(-4 * columns))
  let width = 1
  let from = chars.length
  while (from > 0 && width + displayWidth(chars[from - 1]!) <= columns) width += displayWidth(chars[--from]!)
  return `…${chars.slice(from).join("")}`
}

/**
 * The terminal output that prints lines and redraws the rows below them. `before`: true if an unfinished line is above
 * the prompt and must be replaced.
 */
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
  /** Prints complete lines, and replaces the unfinished line by `partial`. */
  readonly print: (lines: ReadonlyArray<Line>, partial: string) => Effect.Effect<void>
  readonly type: (editing: Editing) => Effect.Effect<void>
  readonly resize: (columns: number) => Effect.Effect<void>
}

/** Makes a screen that uses this terminal until the scope closes. */
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
      // remove the prompt, but keep the part of an unfinished answer that was printed
      write(`\r${partial === "" ? "" : UP}${REST}${partial === "" ? "" : `${through(partial, false)}\r\n`}${LEAVE}`)
    )
  )
  return {
    print: (lines, partial) => draw(lines, { partial }),
    type: (editing) => draw([], { editing }),
    resize: (columns) => draw([], { columns })
  }
})
