/**
 * McpInput: the input of an MCP server, line by line, as Effect's McpServer can read it.
 *
 * Guarantees: a line that is too long is discarded, and a line that is not JSON or not a message is not passed on. Each
 * is answered with an error, and the server continues. The last line may have no line end.
 *
 * Effect's McpServer (4.1.0) does none of that: it drops a line that is not JSON without an answer, stores lines of up
 * to 16 MB, and ignores a last line that has no line end. Its answer to a call of an unknown tool does not name the
 * tools.
 */
import { Effect, Stream } from "effect"
import { attempt } from "../../config/Attempt.ts"
import { linesOf } from "../parse/StandardInput.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

/** Maximum length of a line, in characters. */
export const MAX_LINE = 2 * 1024 * 1024
const [PARSE, INVALID, PARAMS] = [-32_700, -32_600, -32_602]

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null

interface Problem {
  readonly code: number
  readonly message: string
  readonly id?: string | number
}

/**
 * Why a line, undefined for one that was too long, is not passed on; undefined if it is. `tools`: names of the server's
 * tools.
 */
const problemOf = (line: string | undefined, tools: ReadonlyArray<string>): Problem | undefined => {
  if (line === undefined) return { code: INVALID, message: `A line can have at most ${MAX_LINE} characters.` }
  const message = attempt((): unknown => JSON.parse(line))
  if (message === undefined) return { code: PARSE, message: "This line is not JSON." }
  if (!isObject(message)) return { code: INVALID, message: "A request must be a JSON object." }
  const { id, method, params } = message
  if (method === undefined) {
    const isAnswer = Array.isArray(message) || "result" in message || "error" in message
    return isAnswer ? undefined : { code: INVALID, message: "A request must have a method." }
  }
  if (id === undefined) return undefined
  if (typeof id !== "string" && typeof id !== "number")
    return { code: INVALID, message: "id must be a string or a number." }
  const { name } = isObject(params) ? params : {}
  return method === "tools/call" && typeof name === "string" && !tools.includes(name)
    ? { code: PARAMS, message: `There is no tool "${name.slice(0, 100)}". The tools are: ${tools.join(", ")}.`, id }
    : undefined
}

/**
 * The lines of the input that the server can read. `tools`: names of its tools. `write`: writes a line that answers one
 * of the others.
 */
export const checked = <E, R>(
  input: Stream.Stream<Uint8Array, E, R>,
  tools: ReadonlyArray<string>,
  write: (line: string) => Effect.Effect<void>
): Stream.Stream<Uint8Array, E, R> => {
  const encoder = new TextEncoder()
  return linesOf(input, MAX_LINE).pipe(
    Stream.filter((line) => line?.trim() !== ""),
    Stream.mapEffect((line) => {
      const problem = problemOf(line, tools)
      if (problem === undefined) return Effect.succeed([encoder.encode(`${line}\n`)])
      const { id = null, ...error } = problem
      return Effect.as(write(jsonOf({ jsonrpc: "2.0", id, error })), [])
    }),
    Stream.flatMap(Stream.fromIterable)
  )
}
