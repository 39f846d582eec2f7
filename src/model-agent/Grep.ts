/**
 * Grep: matches a regular expression against text, in its own thread.
 *
 * Guarantees: a pattern that runs forever blocks only its own search, because the thread is
 * terminated when the scope closes. The thread has a small memory limit and no environment variables, and has access
 * only to the text that it gets.
 */
import { Effect, Schema, type Scope } from "effect"
import { Worker } from "node:worker_threads"

/** The thread has ended, because it ran out of memory or because the pattern is invalid. */
export class GrepFailed extends Schema.TaggedError<GrepFailed>()("GrepFailed", { message: Schema.String }) {}

export interface Hit {
  readonly line: number
  readonly text: string
}

export interface Grep {
  readonly select: (paths: ReadonlyArray<string>, glob: string) => Effect.Effect<ReadonlyArray<string>, GrepFailed>
  /** Returns the matching lines of the text, up to a limit. */
  readonly hits: (text: string) => Effect.Effect<ReadonlyArray<Hit>, GrepFailed>
}

const MAX_HITS = 100
/** Maximum length of a matching line, characters. */
const MAX_LINE = 300
const MEMORY_MB = 128

const THREAD = String.raw`
const { parentPort, workerData } = require("node:worker_threads")
const { matchesGlob } = require("node:path")
const { pattern, flags, maxHits, maxLine } = workerData
const compile = () => {
  try {
    return new RegExp(pattern, flags + "u")
  } catch {
    return new RegExp(pattern, flags)
  }
}
const regex = compile()
const hits = (text) => {
  const found = []
  for (let from = 0, line = 1; from <= text.length && found.length < maxHits; line++) {
    let to = text.indexOf("\n", from)
    if (to < 0) to = text.length
    const one = text.slice(from, text[to - 1] === "\r" ? to - 1 : to)
    if (regex.test(one)) found.push({ line, text: one.length > maxLine ? one.slice(0, maxLine) + " …" : one })
    from = to + 1
  }
  return found
}
parentPort.on("message", ({ id, text, paths, glob }) => {
  const answer = paths === undefined ? hits(text) : paths.filter((path) => matchesGlob(path, glob))
  parentPort.postMessage({ id, answer })
})
`

interface Reply {
  readonly id: number
  readonly answer: unknown
}

/** Starts the thread. `pattern` is a JavaScript regular expression. If it is invalid, the first request fails. */
export const make = Effect.fnUntraced(function* (
  pattern: string,
  ignoreCase: boolean
): Effect.fn.Return<Grep, never, Scope.Scope> {
  const waiting = new Map<number, (reply: Effect.Effect<unknown, GrepFailed>) => void>()
  let [next, ended] = [0, undefined as GrepFailed | undefined]
  const end = (message: string) => {
    ended ??= new GrepFailed({ message })
    for (const resume of waiting.values()) resume(Effect.fail(ended))
    waiting.clear()
  }
  const thread = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const thread = new Worker(THREAD, {
        eval: true,
        env: {},
        execArgv: [],
        workerData: { pattern, flags: ignoreCase ? "i" : "", maxHits: MAX_HITS, maxLine: MAX_LINE },
        resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB }
      })
      thread.on("message", ({ id, answer }: Reply) => {
        waiting.get(id)?.(Effect.succeed(answer))
        waiting.delete(id)
      })
      thread.on("error", (error) => end(error instanceof Error ? error.message : String(error)))
      thread.on("exit", () => end("the search has ended"))
      return thread
    }),
    (thread) => Effect.promise(() => thread.terminate())
  )
  const ask = (question: object) =>
    Effect.callback<unknown, GrepFailed>((resume) => {
      if (ended !== undefined) return resume(Effect.fail(ended))
      const id = next++
      waiting.set(id, resume)
      thread.postMessage({ id, ...question }, [])
      return Effect.sync(() => void waiting.delete(id))
    })
  return {
    select: (paths, glob) => Effect.map(ask({ paths, glob }), (answer) => answer as ReadonlyArray<string>),
    hits: (text) => Effect.map(ask({ text }), (answer) => answer as ReadonlyArray<Hit>)
  }
})
