/**
 * AcpWire: JSON-RPC 2.0, one message a line, both ways, with a run's process.
 *
 * Guarantees: what the agent sends is handed on in the order in which it came, the
 * answers to our own requests among it; a slow listener slows the agent down; the
 * agent's requests are each answered once, and so many at most are open; a line that
 * is too long or no message is told of and skipped, a few of them at least; writing
 * never waits for an agent that does not read: it is told of instead, once.
 *
 * Of the protocol's own SDK only the types are used: its streams read on however slow
 * the listener is, and print what they cannot read to standard error.
 */
import { Deferred, Effect, Queue, type Scope } from "effect"
import { CONTINUED } from "../process/LineSplitter.ts"
import * as RunProcess from "../process/RunProcess.ts"

/** A request that was refused, by whichever side. */
export interface Refusal {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603

export type Answer =
  | { readonly _tag: "Result"; readonly result: unknown }
  | { readonly _tag: "Refused"; readonly refusal: Refusal }

export interface Listener {
  readonly notified: (method: string, params: unknown) => Effect.Effect<void>
  /** Answers a request by the result. Runs beside what comes next, and is begun before it. */
  readonly asked: (method: string, params: unknown) => Effect.Effect<unknown, Refusal>
  /** A line came, whatever it says. */
  readonly heard: () => void
  /** Takes a line that is no message, in words. */
  readonly noise: (text: string) => Effect.Effect<void>
  /** The agent has not read for so long that no more can be kept for it. */
  readonly stuck: Effect.Effect<void>
}

export interface Wire {
  /** `answered` is called in the order of all that comes. */
  readonly call: (
    method: string,
    params: unknown,
    answered: (answer: Answer) => Effect.Effect<void>
  ) => Effect.Effect<void>
  /** Waits for the answer; without end, if none comes. */
  readonly request: (method: string, params: unknown) => Effect.Effect<unknown, Refusal>
  readonly notify: (method: string, params: unknown) => Effect.Effect<void>
  /** Reads to the end of what the agent says. */
  readonly listen: Effect.Effect<void>
}

/** The longest message, in characters. */
const MAX_MESSAGE = 16 * 1024 * 1024
/** Messages that wait until the agent reads them. */
const OUTGOING = 1024
/** Requests of the agent that are not answered yet. */
const OPEN_REQUESTS = 128
/** How many lines that are no messages are told of. */
const NOISES = 10
const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const parse = (line: string): { readonly [key: string]: unknown } | undefined => {
  try {
    const message: unknown = JSON.parse(line)
    return isObject(message) ? message : undefined
  } catch {
    return undefined
  }
}

const refusalOf = (error: unknown): Refusal => {
  const { code, data, message } = isObject(error) ? error : {}
  return {
    code: typeof code === "number" ? code : INTERNAL_ERROR,
    message: typeof message === "string" ? message : "it did not say why",
    ...(data === undefined ? {} : { data })
  }
}

type Message = { readonly [key: string]: unknown }

/** The way out: messages wait in order for an agent that is slow to read. */
const outgoing = Effect.fnUntraced(function* (program: RunProcess.RunProcess, stuck: Effect.Effect<void>) {
  const queue = yield* Queue.dropping<string>(OUTGOING)
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Queue.take(queue), program.write)))
  let full = false
  return (message: Message): Effect.Effect<void> =>
    Effect.suspend(() => {
      const taken = Queue.offerUnsafe(queue, `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
      if (taken || full) return Effect.void
      full = true
      return stuck
    })
})

/** Tells of the first few lines that are no messages. A long line comes in pieces: its first one stands for it. */
const noises = (tell: Listener["noise"]) => {
  let [count, inLong] = [0, false]
  return (line: string): Effect.Effect<void> => {
    const first = !inLong
    inLong = line.endsWith(CONTINUED)
    if (!first || line.trim() === "" || count >= NOISES) return Effect.void
    count++
    const what = inLong ? "a message longer than agentd takes" : "a line that is no message of the protocol"
    const last = count === NOISES ? "; more of the kind is not told" : ""
    return tell(`the agent sent ${what}: ${JSON.stringify(line.slice(0, 200))}${last}`)
  }
}

export const make = Effect.fnUntraced(function* (
  program: RunProcess.RunProcess,
  listener: Listener
): Effect.fn.Return<Wire, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const send = yield* outgoing(program, listener.stuck)
  const waiting = new Map<number, (answer: Answer) => Effect.Effect<void>>()
  const noise = noises(listener.noise)
  let [last, open] = [0, 0]

  const serve = Effect.fnUntraced(function* (id: unknown, method: string, params: unknown) {
    if (open >= OPEN_REQUESTS)
      return yield* send({ id, error: { code: INTERNAL_ERROR, message: "too many requests are open already" } })
    open++
    const answer = listener.asked(method, params).pipe(
      Effect.matchEffect({
        onSuccess: (result) => send({ id, result: result ?? null }),
        onFailure: (error) => send({ id, error })
      }),
      Effect.ensuring(Effect.sync(() => open--))
    )
    yield* Effect.forkIn(answer, scope, { startImmediately: true })
  })

  const take = (line: string): Effect.Effect<void> => {
    listener.heard()
    const message = parse(line)
    const id = message?.["id"]
    if (message === undefined) return noise(line)
    if (typeof message["method"] === "string") {
      const { method, params } = message as { readonly method: string; readonly params?: unknown }
      return id === undefined ? listener.notified(method, params) : serve(id, method, params)
    }
    const answered = typeof id === "number" ? waiting.get(id) : undefined
    if (answered === undefined) return noise(line)
    waiting.delete(id as number)
    return answered(
      "error" in message
        ? { _tag: "Refused", refusal: refusalOf(message["error"]) }
        : { _tag: "Result", result: message["result"] }
    )
  }

  const call: Wire["call"] = (method, params, answered) =>
    Effect.suspend(() => {
      const id = ++last
      waiting.set(id, answered)
      return send({ id, method, params })
    })

  return {
    call,
    request: Effect.fnUntraced(function* (method, params) {
      const answer = yield* Deferred.make<unknown, Refusal>()
      yield* call(method, params, (got) =>
        got._tag === "Result" ? Deferred.succeed(answer, got.result) : Deferred.fail(answer, got.refusal)
      )
      return yield* Deferred.await(answer)
    }),
    notify: (method, params) => send({ method, params }),
    listen: Effect.suspend(() => {
      const each = (lines: ReadonlyArray<string>) => Effect.forEach(lines, take, { discard: true })
      return RunProcess.drainLines(program.stdout, program.ended, MAX_MESSAGE, each)
    })
  }
})
