/**
 * JsonRpc: a JSON-RPC 2.0 server that reads and writes one message per line, as MCP does on standard input and output.
 * A handler implements the methods.
 *
 * Guarantees: each request gets one answer, and a notification gets none. A line that is not JSON, not a request, or
 * too long is answered with an error, and the server continues. Requests run concurrently, up to a limit. The server
 * ends when its input has ended and the last answer is written.
 *
 * Effect's McpServer (4.1.0) cannot be used: after a line that is not JSON it answers no further request. It also
 * buffers lines of any length, and does not answer a last request that has no line end.
 */
import { Effect, Stream } from "effect"
import { attempt } from "../../config/Attempt.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

export interface RpcError {
  readonly code: number
  readonly message: string
}

export const CODES = { parse: -32_700, invalid: -32_600, method: -32_601, params: -32_602, internal: -32_603 } as const

export interface Request {
  readonly method: string
  readonly params: { readonly [name: string]: unknown }
}

export type Handler<R> = (request: Request) => Effect.Effect<unknown, RpcError, R>

/** Maximum length of a line, in characters. */
export const MAX_LINE = 2 * 1024 * 1024
const CONCURRENT = 16

type Id = string | number | null
const failure = (id: Id, { code, message }: RpcError) => ({ jsonrpc: "2.0", id, error: { code, message } })

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The answer to a message; undefined if the message needs none. */
const answer = <R>(message: unknown, handle: Handler<R>): Effect.Effect<object | undefined, never, R> => {
  if (!isObject(message)) {
    return Effect.succeed(failure(null, { code: CODES.invalid, message: "A request must be a JSON object." }))
  }
  const { id, method, params } = message
  // ignore notifications, and also responses, because this server sends no requests
  if (method === undefined && ("result" in message || "error" in message)) return Effect.succeed(undefined)
  if (!("id" in message) && typeof method === "string") return Effect.succeed(undefined)
  if (typeof id !== "string" && typeof id !== "number") {
    return Effect.succeed(failure(null, { code: CODES.invalid, message: "id must be a string or a number." }))
  }
  if (typeof method !== "string") {
    return Effect.succeed(failure(id, { code: CODES.invalid, message: "method must be a string." }))
  }
  if (params !== undefined && !isObject(params)) {
    return Effect.succeed(failure(id, { code: CODES.params, message: "params must be a JSON object." }))
  }
  return handle({ method, params: params ?? {} }).pipe(
    Effect.map((result): object => ({ jsonrpc: "2.0", id, result })),
    Effect.catch((error) => Effect.succeed(failure(id, error))),
    Effect.catchDefect((defect) =>
      Effect.as(
        Effect.logDebug("a request crashed", defect),
        failure(id, { code: CODES.internal, message: "The request failed because of an internal error." })
      )
    )
  )
}

/** A line of input, or a mark for a line that was too long and has been discarded. */
type Line = { readonly _tag: "Line"; readonly text: string } | { readonly _tag: "TooLong" }

/** Splits text that arrives in pieces into lines. A line that is too long is discarded. */
export class Lines {
  private kept = ""
  private dropping = false

  take(piece: string): ReadonlyArray<Line> {
    const lines: Array<Line> = []
    const parts = piece.split("\n")
    for (const [index, part] of parts.entries()) {
      if (!this.dropping) this.kept += part
      if (this.kept.length > MAX_LINE) {
        ;[this.kept, this.dropping] = ["", true]
        lines.push({ _tag: "TooLong" })
      }
      if (index === parts.length - 1) break
      if (!this.dropping && this.kept.trim() !== "") lines.push({ _tag: "Line", text: this.kept })
      ;[this.kept, this.dropping] = ["", false]
    }
    return lines
  }

  /** Returns the last line of the input if it has no line end. */
  end(): ReadonlyArray<Line> {
    const { kept } = this
    this.kept = ""
    return kept.trim() === "" ? [] : [{ _tag: "Line", text: kept }]
  }
}

const parse = (text: string): unknown => attempt(() => JSON.parse(text))

/** Answers a line; undefined if the line needs no answer. */
const respond = Effect.fnUntraced(function* <R>(line: Line, handle: Handler<R>) {
  if (line._tag === "TooLong") {
    return failure(null, { code: CODES.invalid, message: `A line can have at most ${MAX_LINE} characters.` })
  }
  const message = parse(line.text)
  if (message === undefined) return failure(null, { code: CODES.parse, message: "This line is not JSON." })
  if (!Array.isArray(message)) return yield* answer(message, handle)
  if (message.length === 0)
    return failure(null, { code: CODES.invalid, message: "A batch must contain at least one request." })
  const answers = yield* Effect.forEach(message, (each) => answer(each, handle))
  const said = answers.filter((each) => each !== undefined)
  return said.length === 0 ? undefined : said
})

export const serve = <E, R, R2>(
  input: Stream.Stream<Uint8Array, E, R>,
  write: (line: string) => Effect.Effect<void>,
  handle: Handler<R2>
): Effect.Effect<void, E, R | R2> =>
  Effect.suspend(() => {
    const lines = new Lines()
    return input.pipe(
      Stream.decodeText(),
      Stream.flatMap((piece) => Stream.fromIterable(lines.take(piece))),
      Stream.concat(Stream.suspend(() => Stream.fromIterable(lines.end()))),
      Stream.mapEffect((line) => respond(line, handle), { concurrency: CONCURRENT, unordered: true }),
      Stream.runForEach((said) => (said === undefined ? Effect.void : write(jsonOf(said))))
    )
  })
