/**
 * RawTerminal: this terminal as a page: what is typed comes as it is sent, and pages are drawn as differences.
 *
 * Guarantees: the terminal is as it was when the scope closes, whatever closes it.
 */
import { Effect, Queue, type Scope, Stream } from "effect"
import { ascii } from "../render/Ascii.ts"
import { asciiOnly } from "../render/Locale.ts"
import { type Cells, difference } from "./TerminalCells.ts"

/** The other screen, no cursor, clicks and pastes marked; and the question for the background's colour. */
const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?1000h\u001b[?1006h\u001b[?2004h\u001b[2J\u001b]11;?\u0007"
const LEAVE = "\u001b[0m\u001b[?2004l\u001b[?1006l\u001b[?1000l\u001b[?25h\u001b[?1049l"
/** Chunks that wait to be read; a person types no more. */
const MOST = 1_000

/** Sizes that a terminal may not tell. */
const size = () => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 })

export interface RawTerminal {
  readonly size: () => { readonly columns: number; readonly rows: number }
  /** Chunks as they are sent. */
  readonly typed: Stream.Stream<string>
  readonly resized: Stream.Stream<void>
  readonly draw: (page: Cells) => Effect.Effect<void>
  readonly bell: Effect.Effect<void>
}

/** Takes the terminal until the scope closes. */
export const make: Effect.Effect<RawTerminal, never, Scope.Scope> = Effect.gen(function* () {
  const { stdin, stdout } = process
  const isAscii = yield* asciiOnly
  const chunks = yield* Queue.sliding<string>(MOST)
  const sizes = yield* Queue.sliding<void>(1)
  const onData = (chunk: string) => void Queue.offerUnsafe(chunks, chunk)
  const onSize = () => void Queue.offerUnsafe(sizes, undefined)
  let shown: Cells | undefined = undefined
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      stdin.setRawMode(true).setEncoding("utf8").on("data", onData).resume()
      stdout.on("resize", onSize)
      stdout.write(ENTER)
    }),
    () =>
      Effect.sync(() => {
        stdin.off("data", onData).setRawMode(false).pause()
        stdout.off("resize", onSize)
        stdout.write(LEAVE)
      })
  )
  return {
    size,
    typed: Stream.fromQueue(chunks),
    resized: Stream.fromQueue(sizes),
    bell: Effect.sync(() => void stdout.write("\u0007")),
    draw: (page) =>
      Effect.sync(() => {
        const out = difference(shown, page)
        shown = page
        if (out !== "") stdout.write(isAscii ? ascii(out) : out)
      })
  }
})
