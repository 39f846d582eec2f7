/**
 * McpPipes: the way to a server of the Model Context Protocol over the pipes of a process that agentd has started. The
 * transport of `@modelcontextprotocol/client` is not used: it starts the process itself, outside of the run, and a
 * second one that is only asked for its revision.
 *
 * Guarantees: output that is not a frame is ignored; an invalid frame ends the connection. Only a limited part of a
 * server's output is stored. A server that reads nothing blocks neither a request nor an interruption.
 */
import { deserializeMessage, type JSONRPCMessage, serializeMessage, type Transport } from "@modelcontextprotocol/client"
import { Deferred, Effect, Fiber, Option, type Scope } from "effect"
import { LineSplitter } from "../config/LineSplitter.ts"
import type * as RunProcess from "../runs/process/RunProcess.ts"
import { errorOf, type Link, type McpError } from "./McpConnection.ts"

/** Maximum length of a frame, UTF-16 code units. */
const MAX_FRAME = 4_194_304
/** Maximum number of answers to the server's own requests that the server has not read. */
const MAX_ANSWERS = 100
/**
 * Timeout for reading the rest of the output when a server has ended, and for the exit of a server that has closed its
 * output.
 */
const LAST_WORDS = "200 millis"

const lines = Effect.fnUntraced(function* (
  pipe: RunProcess.RunProcess["stdout"],
  take: (line: string) => Effect.Effect<void>
) {
  const splitter = new LineSplitter(MAX_FRAME)
  for (let chunk = yield* pipe.read; chunk !== undefined; chunk = yield* pipe.read)
    yield* Effect.forEach(splitter.push(chunk), ({ text }) => take(text), { discard: true })
  yield* Effect.forEach(splitter.end(), ({ text }) => take(text), { discard: true })
})

const farewell = Effect.fnUntraced(function* (server: RunProcess.RunProcess, said: () => string) {
  const status = yield* Effect.timeoutOption(server.exited, LAST_WORDS)
  const how = Option.match(status, {
    onNone: () => "has closed its output",
    onSome: ({ code, signal }) => `has ended (${signal ?? `exit code ${code}`})`
  })
  return said() === "" ? how : `${how}: ${said()}`
})

const messageIn = (line: string): JSONRPCMessage | undefined => {
  try {
    return deserializeMessage(line)
  } catch {
    return undefined
  }
}

/** The pipes of a server; the caller owns the process. `name`: the server's name in messages. */
export const make = Effect.fnUntraced(function* (
  name: string,
  server: RunProcess.RunProcess,
  how: Pick<Link, "isOld" | "probe">
): Effect.fn.Return<Link, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context())
  const over = yield* Deferred.make<McpError>()
  let [said, answering] = ["", 0]

  const transport: Transport & { readonly pid: number; readonly stderr: null } = {
    // these two fields show the client that a server that ends or stays silent may be an old one
    pid: server.pid,
    stderr: null,
    start: () => Promise.resolve(),
    // writes in order without waiting
    send: (message) => {
      const isAnswer = !("method" in message)
      if (isAnswer && answering >= MAX_ANSWERS) return Promise.resolve()
      if (isAnswer) answering += 1
      const done = Effect.sync(() => void (isAnswer && (answering -= 1)))
      Fiber.runIn(fork(Effect.ensuring(server.write(serializeMessage(message)), done)), scope)
      return Promise.resolve()
    },
    close: () => Promise.resolve(transport.onclose?.())
  }

  const lose = (what: string) =>
    Effect.andThen(
      Deferred.succeed(over, errorOf(name, what, true)),
      Effect.sync(() => transport.onclose?.())
    )

  const receive = (line: string): Effect.Effect<void> => {
    // servers often print lines that are no frames, which is harmless
    if (!line.trimStart().startsWith("{")) return Effect.void
    const message = messageIn(line)
    if (message !== undefined) return Effect.sync(() => transport.onmessage?.(message))
    return lose(line.length >= MAX_FRAME ? "sent more than 4 MB at once" : "sent a message that is not JSON-RPC")
  }

  yield* Effect.forkScoped(
    lines(server.stderr, (line) => Effect.sync(() => void (line.trim() !== "" && (said = line.slice(0, 500)))))
  )
  // if a grandchild holds the pipe open, the pipe can stay open longer than the server lives
  const end = Effect.andThen(server.exited, Effect.sleep(LAST_WORDS))
  yield* Effect.raceFirst(lines(server.stdout, receive), end).pipe(
    Effect.andThen(farewell(server, () => said)),
    Effect.andThen(lose),
    Effect.forkScoped
  )
  const closed = Effect.acquireRelease(Effect.succeed(transport), (all) => Effect.promise(() => all.close()))
  return { ...how, transport: closed, over }
})
