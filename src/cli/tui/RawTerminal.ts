/**
 * RawTerminal: uses this terminal to show pages. Input arrives unprocessed, and only the differences between pages are
 * drawn.
 *
 * Guarantees: the terminal is restored when the scope closes, whatever the reason.
 */
import { Effect, Queue, type Scope, Stream } from "effect"
import { ascii } from "../render/Ascii.ts"
import { asciiOnly } from "../render/Locale.ts"
import { type Cells, difference } from "./TerminalCells.ts"

/**
 * Switches to the alternate screen, turns on marks for clicks and pastes, hides the cursor, and asks for the background
 * colour.
 */
const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?1000h\u001b[?1006h\u001b[?2004h\u001b[2J\u001b]11;?\u0007"
const LEAVE = "\u001b[0m\u001b[?2004l\u001b[?1006l\u001b[?1000l\u001b[?25h\u001b[?1049l"
/**
 * Maximum number of input chunks that have not been read. If there are more, the oldest are discarded, but no user
 * types so fast.
 */
const MOST = 1_000

/** Size of the terminal, with default values because some terminals do not report their size. */
const size = () => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 })

export interface RawTerminal {
  readonly size: () => { readonly columns: number; readonly rows: number }
  /** Input in chunks, as the terminal sends it. */
  readonly typed: Stream.Stream<string>
  readonly resized: Stream.Stream<void>
  readonly draw: (page: Cells) => Effect.Effect<void>
  readonly bell: Effect.Effect<void>
}

/** Takes control of the terminal until the scope closes. */
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
