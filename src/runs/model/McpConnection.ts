/**
 * McpConnection: JSON-RPC with a server of the Model Context Protocol, over the pipes of a process that agentd has
 * started. The client of `effect/ai` is not used: it requires one revision of the protocol, which most servers do not
 * support, and it starts the process itself, outside of the run.
 *
 * Guarantees: every request ends: by its answer, by the server's end, by an invalid frame, or by the caller's
 * interruption, which is reported to the server. Output that is not a frame is ignored. Only a limited part of a
 * server's output is stored. A second answer to a request is ignored.
 */
import { Deferred, Effect, Option, Schema, type Scope } from "effect"
import { LineSplitter } from "../process/LineSplitter.ts"
import * as RunProcess from "../process/RunProcess.ts"

/** The server rejected a request, sent invalid data, or has ended. */
export class McpError extends Schema.TaggedError<McpError>()("McpError", {
  message: Schema.String,
  /** True if the server can no longer be used. */
  lost: Schema.Boolean
}) {}

export interface McpConnection {
  readonly request: (method: string, params: object) => Effect.Effect<unknown, McpError>
  readonly notify: (method: string, params: object) => Effect.Effect<void>
  /** Waits until the server can no longer be used, and returns why. */
  readonly lost: Effect.Effect<McpError>
  /** Declares that the server can no longer be used. The caller gives the reason. */
  readonly lose: (what: string) => Effect.Effect<void>
}

/** Maximum length of a frame, UTF-16 code units. */
const MAX_FRAME = 4_194_304
const METHOD_NOT_FOUND = -32601
/** Maximum number of answers to the server's own requests that the server has not read. */
const MAX_ANSWERS = 100
/**
 * Timeout for reading the rest of the output when a server has ended, and for the exit of a server that has closed its
 * output.
 */
const LAST_WORDS = "200 millis"

export const Frame = Schema.Struct({
  id: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite]))),
  method: Schema.optionalKey(Schema.String),
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.Struct({ message: Schema.String }))
})
const decodeFrame = Schema.decodeUnknownOption(Schema.fromJsonString(Frame))

type Reply = Effect.Effect<unknown, McpError>

const lines = Effect.fnUntraced(function* (
  pipe: RunProcess.RunProcess["stdout"],
  take: (line: string) => Effect.Effect<void>
) {
  const splitter = new LineSplitter(MAX_FRAME)
  for (let chunk = yield* pipe.read; chunk !== undefined; chunk = yield* pipe.read)
    yield* Effect.forEach(splitter.push(chunk), ({ text }) => take(text), { discard: true })
  yield* Effect.forEach(splitter.end(), ({ text }) => take(text), { discard: true })
})

/** Requests that have not been answered, by id. None are accepted when the server can no longer answer. */
const makeInbox = (name: string) => {
  const waiting = new Map<number, (reply: Reply) => void>()
  const over = Deferred.makeUnsafe<McpError>()
  let lost: McpError | undefined
  return {
    lost: Deferred.await(over),
    wait: (id: number) =>
      Effect.callback<unknown, McpError>((resume) => {
        if (lost !== undefined) return resume(Effect.fail(lost))
        waiting.set(id, resume)
        return Effect.sync(() => void waiting.delete(id))
      }),
    answer: (id: number, reply: Reply) => {
      waiting.get(id)?.(reply)
      waiting.delete(id)
    },
    lose: (what: string) => {
      lost ??= new McpError({ message: `the MCP server ${name} ${what}`, lost: true })
      for (const resume of waiting.values()) resume(Effect.fail(lost))
      waiting.clear()
      Deferred.doneUnsafe(over, Effect.succeed(lost))
    }
  }
}

const farewell = Effect.fnUntraced(function* (server: RunProcess.RunProcess, said: () => string) {
  const status = yield* Effect.timeoutOption(server.exited, LAST_WORDS)
  const how = Option.match(status, {
    onNone: () => "has closed its output",
    onSome: ({ code, signal }) => `has ended (${signal ?? `exit code ${code}`})`
  })
  return said() === "" ? how : `${how}: ${said()}`
})

/**
 * Opens a connection, which lasts as long as the scope. The caller owns the process. `name`: the server's name in
 * messages.
 */
export const make = Effect.fnUntraced(function* (
  name: string,
  server: RunProcess.RunProcess
): Effect.fn.Return<McpConnection, never, Scope.Scope> {
  const inbox = makeInbox(name)
  const scope = yield* Effect.scope
  let [next, said, answering] = [1, "", 0]
  /** Writes in order without waiting: a server that reads nothing blocks neither the reader nor an interruption. */
  const write = (frame: object) =>
    Effect.asVoid(
      Effect.forkIn(server.write(`${JSON.stringify({ jsonrpc: "2.0", ...frame })}\n`), scope, {
        startImmediately: true
      })
    )

  /** Answers a request from the server, unless the server has left too many answers unread. */
  const reply = (frame: object) =>
    Effect.suspend(() => {
      if (answering >= MAX_ANSWERS) return Effect.void
      answering += 1
      const written = server.write(`${JSON.stringify({ jsonrpc: "2.0", ...frame })}\n`)
      const done = Effect.sync(() => void (answering -= 1))
      return Effect.asVoid(Effect.forkIn(Effect.ensuring(written, done), scope, { startImmediately: true }))
    })

  const receive = (line: string): Effect.Effect<void> => {
    // servers often print lines that are no frames, which is harmless
    if (!line.trimStart().startsWith("{")) return Effect.void
    const frame = decodeFrame(line)
    if (Option.isNone(frame)) {
      const isLong = line.length >= MAX_FRAME
      return Effect.sync(() =>
        inbox.lose(isLong ? "sent more than 4 MB at once" : "sent a message that is not JSON-RPC")
      )
    }
    const { id, method, result, error } = frame.value
    if (method !== undefined) {
      if (id === undefined || id === null) return Effect.void
      if (method === "ping") return reply({ id, result: {} })
      return reply({ id, error: { code: METHOD_NOT_FOUND, message: `agentd does not do ${method}` } })
    }
    if (typeof id !== "number") return Effect.void
    const refused = () => new McpError({ message: `the MCP server ${name} refused: ${error?.message}`, lost: false })
    return Effect.sync(() => inbox.answer(id, error === undefined ? Effect.succeed(result) : Effect.fail(refused())))
  }

  yield* Effect.forkScoped(
    lines(server.stderr, (line) => Effect.sync(() => void (line.trim() !== "" && (said = line.slice(0, 500)))))
  )
  // if a grandchild holds the pipe open, the pipe can stay open longer than the server lives
  const end = Effect.andThen(server.exited, Effect.sleep(LAST_WORDS))
  yield* Effect.raceFirst(lines(server.stdout, receive), end).pipe(
    Effect.andThen(farewell(server, () => said)),
    Effect.andThen((what) => Effect.sync(() => inbox.lose(what))),
    Effect.forkScoped
  )

  return {
    lost: inbox.lost,
    lose: (what) => Effect.sync(() => inbox.lose(what)),
    notify: (method, params) => write({ method, params }),
    request: (method, params) =>
      Effect.suspend(() => {
        const id = next++
        return Effect.andThen(write({ id, method, params }), inbox.wait(id)).pipe(
          Effect.onInterrupt(() => write({ method: "notifications/cancelled", params: { requestId: id } }))
        )
      })
  }
})
