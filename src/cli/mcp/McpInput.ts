/**
 * McpInput: the input of an MCP server, line by line, as Effect's McpServer can read it.
 *
 * Guarantees: a line that is too long is discarded, and a line that is not JSON or not a message is not passed on. Each
 * is answered with an error, and the server continues. The last line may have no line end.
 *
 * Effect's McpServer (4.1.0) does none of that: it drops a line that is not JSON without an answer, stores lines of up
 * to 16 MB, and ignores a last line that has no line end.
 */
import { Effect, Stream } from "effect"
import { attempt } from "../../config/Attempt.ts"
import { linesOf } from "../parse/StandardInput.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

/** Maximum length of a line, in characters. */
export const MAX_LINE = 2 * 1024 * 1024
const [PARSE, INVALID] = [-32_700, -32_600]

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null

/** Why a line, undefined for one that was too long, is not passed on; undefined if it is. */
const problemOf = (line: string | undefined): { readonly code: number; readonly message: string } | undefined => {
  if (line === undefined) return { code: INVALID, message: `A line can have at most ${MAX_LINE} characters.` }
  const message = attempt((): unknown => JSON.parse(line))
  if (message === undefined) return { code: PARSE, message: "This line is not JSON." }
  if (!isObject(message)) return { code: INVALID, message: "A request must be a JSON object." }
  const { id, method } = message
  if (method === undefined) {
    const isAnswer = Array.isArray(message) || "result" in message || "error" in message
    return isAnswer ? undefined : { code: INVALID, message: "A request must have a method." }
  }
  return id === undefined || typeof id === "string" || typeof id === "number"
    ? undefined
    : { code: INVALID, message: "id must be a string or a number." }
}

/** The lines of the input that the server can read. `write`: writes a line that answers one of the others. */
export const checked = <E, R>(
  input: Stream.Stream<Uint8Array, E, R>,
  write: (line: string) => Effect.Effect<void>
): Stream.Stream<Uint8Array, E, R> => {
  const encoder = new TextEncoder()
  return linesOf(input, MAX_LINE).pipe(
    Stream.filter((line) => line?.trim() !== ""),
    Stream.mapEffect((line) => {
      const error = problemOf(line)
      return error === undefined
        ? Effect.succeed([encoder.encode(`${line}\n`)])
        : Effect.as(write(jsonOf({ jsonrpc: "2.0", id: null, error })), [])
    }),
    Stream.flatMap(Stream.fromIterable)
  )
}
