/**
 * ToolProgress: emits a command's output in chunks while it runs.
 *
 * Guarantees: at most one chunk per stream and interval, each of limited length. The whole call also has a limit, so
 * that no command floods the log. If there is too much output, only its newest part is emitted, with the number of
 * omitted characters. The command never waits until its output is emitted.
 */
import { Effect, type Scope } from "effect"
import type { ToolContext } from "./Tool.ts"

const INTERVAL = "250 millis"
const MAX_CHUNK = 4_000
const MAX_TOTAL = 200_000

type Stream = "stdout" | "stderr"

export interface ToolProgress {
  readonly push: (stream: Stream, text: string) => Effect.Effect<void>
  readonly flush: Effect.Effect<void>
}

export const make = Effect.fnUntraced(function* (
  context: ToolContext
): Effect.fn.Return<ToolProgress, never, Scope.Scope> {
  const waiting = { stdout: "", stderr: "" }
  const dropped = { stdout: 0, stderr: 0 }
  let told = 0

  const tell = (stream: Stream) =>
    Effect.suspend(() => {
      const [text, lost] = [waiting[stream], dropped[stream]]
      if (text === "" || told >= MAX_TOTAL) return Effect.void
      waiting[stream] = ""
      dropped[stream] = 0
      told += text.length
      return context.progress(stream, lost === 0 ? text : `[… ${lost} characters left out …]\n${text}`)
    })
  const flush = Effect.andThen(tell("stdout"), tell("stderr"))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(INTERVAL), flush)))

  return {
    push: (stream, text) =>
      Effect.sync(() => {
        const all = waiting[stream] + text
        dropped[stream] += Math.max(0, all.length - MAX_CHUNK)
        waiting[stream] = all.slice(-MAX_CHUNK)
      }),
    flush
  }
})
