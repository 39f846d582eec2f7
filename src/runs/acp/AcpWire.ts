/**
 * AcpWire: JSON-RPC 2.0 in both directions with the agent's process, one message per line.
 *
 * Guarantees: messages from the agent, including answers to agentd's requests, are passed on in order of arrival. A
 * slow listener slows the agent down. Each request of the agent is answered once, and at most `OPEN_REQUESTS` are open.
 * A line that is too long or is not a message is skipped; only the first few are reported. Writing never waits for an
 * agent that does not read: instead, `stuck` is called once.
 *
 * Only the types of the protocol's SDK are used: its streams keep reading even if the listener is slow, and print
 * unreadable messages to standard error.
 */
import { Deferred, Effect, Queue, type Scope } from "effect"
import { isReadonlyObject as isObject } from "effect/Predicate"
import type { Line } from "../../config/LineSplitter.ts"
import { noise } from "../line/Noise.ts"
import * as RunProcess from "../process/RunProcess.ts"

/** An error with which agentd or the agent rejected a request. */
export interface Refusal {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603
export const CANCELLED_REQUEST = -32800

export type Answer =
  | { readonly _tag: "Result"; readonly result: unknown }
  | { readonly _tag: "Refused"; readonly refusal: Refusal }

/** Note that is stored with a line to the agent. AcpHistory defines the possible notes. */
export type Note = object

export interface Listener {
  readonly notified: (method: string, params: unknown) => Effect.Effect<void>
  /**
   * Handles a request of the agent. Starts before the next message is read, and runs concurrently with its handling.
   */
  readonly asked: (method: string, params: unknown, id: unknown) => Effect.Effect<unknown, Refusal>
  /** Handles a request that an earlier daemon answered; undefined if no earlier daemon answered it. */
  readonly recalled: (id: unknown, method: string, params: unknown) => Effect.Effect<void> | undefined
  /** Called for every line from the agent, whatever its content. */
  readonly heard: Effect.Effect<void>
  /**
   * Called when the line that ends at `end` has been handled. `size`: number of bytes received so far; given only if
   * all of them have been handled.
   */
  readonly past: (end: number, size?: number) => Effect.Effect<void>
  /** Reports a line that is not a message. */
  readonly noise: (text: string) => Effect.Effect<void>
  /** Called when too many messages wait because the agent does not read. */
  readonly stuck: Effect.Effect<void>
}

export interface Wire {
  /**
   * Sends a request. `answered` is called in the order of all messages. `note` builds the note that is stored with the
   * request.
   */
  readonly call: (
    method: string,
    params: unknown,
    answered: (answer: Answer) => Effect.Effect<void>,
    note?: (id: number) => Note
  ) => Effect.Effect<void>
  /** Waits for the answer to a request that an earlier daemon made. */
  readonly expect: (id: number, answered: (answer: Answer) => Effect.Effect<void>) => void
  /** Answers a request of the agent that an earlier daemon received. */
  readonly reply: (id: unknown, answer: Answer) => Effect.Effect<void>
  /** Sends a request and waits for its answer, without a timeout. */
  readonly request: (method: string, params: unknown) => Effect.Effect<unknown, Refusal>
  readonly notify: (method: string, params: unknown, note?: Note) => Effect.Effect<void>
  /**
   * Stores a note that belongs to no line. `wait`: if true, returns when the note is durable; otherwise the note is
   * queued after earlier lines.
   */
  readonly note: (note: Note, wait?: boolean) => Effect.Effect<void>
  /** Bytes of output up to the end of the line that is being handled, or of the last one. */
  readonly seen: () => number
  /** Bytes of output up to the end of the last handled line. */
  readonly taken: () => number
  /** Number of lines and notes that all daemons have written for the agent. */
  readonly given: () => number
  /** True if all requests of the agent have been answered. */
  readonly isQuiet: () => boolean
  /** Closes the agent's input after everything that waits to be written. */
  readonly close: Effect.Effect<void>
  readonly known: () => KnownWire
  /** Reads the agent's output until its end. */
  readonly listen: Effect.Effect<void>
}

/** State of agentd's requests. Stored with a checkpoint, for a daemon that resumes the agent. */
export interface KnownWire {
  readonly last: number
  /** Ids of requests without an answer. */
  readonly open: ReadonlyArray<number>
}

/** Maximum length of a message, characters. */
const MAX_MESSAGE = 16 * 1024 * 1024
/** Maximum number of messages that wait until the agent reads them. */
const OUTGOING = 1024
/** Maximum number of unanswered requests from the agent. */
const OPEN_REQUESTS = 128
/** Maximum number of unanswered requests from agentd that are passed to the next daemon. */
const MAX_KNOWN = 100
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
    message: typeof message === "string" ? message : "it gave no reason",
    ...(data === undefined ? {} : { data })
  }
}

const answerIn = (message: Message): Answer =>
  "error" in message
    ? { _tag: "Refused", refusal: refusalOf(message["error"]) }
    : { _tag: "Result", result: message["result"] }

type Message = { readonly [key: string]: unknown }

/** Queues messages to the agent in order, because the agent can be slow to read. */
const outgoing = Effect.fnUntraced(function* (program: RunProcess.RunProcess, stuck: Effect.Effect<void>) {
  const queue = yield* Queue.dropping<readonly [text: string, note: string] | null>(OUTGOING)
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.flatMap(Queue.take(queue), (input) => (input === null ? program.closeInput : program.write(...input)))
    )
  )
  let full = false
  let given = program.before?.seq ?? 0
  const write = (text: string, note: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (Queue.offerUnsafe(queue, [text, note])) return Effect.sync(() => void (given += 1))
      if (full) return Effect.void
      full = true
      return stuck
    })
  /** Stores a note, and returns when the note is durable. */
  const wait = (note: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      given += 1
      return program.write("", note)
    })
  return { write, wait, close: Effect.asVoid(Queue.offer(queue, null)), given: () => given }
})

/**
 * How many bytes of output were read, up to the end of a line. `seen`: the line that is being handled, or else the last
 * one. `taken`: the last line that was handled.
 */
interface Position {
  seen: number
  taken: number
}

type Send = (message: Message, note?: Note) => Effect.Effect<void>

/** Writes messages and notes. Each note contains how many bytes of output had been read. */
const writer = Effect.fnUntraced(function* (
  program: RunProcess.RunProcess,
  at: Readonly<Position>,
  stuck: Effect.Effect<void>
) {
  const out = yield* outgoing(program, stuck)
  const noted = (note: Note | undefined): string =>
    note === undefined ? "" : JSON.stringify({ at: at.taken, ...note })
  const note: Wire["note"] = (note, wait = false) =>
    Effect.suspend(() => {
      if (!program.isKept) return Effect.void
      return wait ? out.wait(noted(note)) : out.write("", noted(note))
    })
  const send: Send = (message, note) => Effect.suspend(() => out.write(lineOf(message), noted(note)))
  return { note, send, close: out.close, given: out.given }
})

const lineOf = (message: Message): string => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`

const optionIn = (result: unknown): { readonly option?: string } => {
  const outcome = isObject(result) ? result["outcome"] : undefined
  const option = isObject(outcome) ? outcome["optionId"] : undefined
  return typeof option === "string" ? { option } : {}
}

/** Reports lines that are not messages. */
const reporter = (tell: Listener["noise"]) => {
  const describe = noise("the agent sent", "message of the protocol")
  return (line: string): Effect.Effect<void> => {
    const text = describe(line)
    return text === undefined ? Effect.void : tell(text)
  }
}

const replier =
  (send: Send): Wire["reply"] =>
  (id, answer) =>
    answer._tag === "Result"
      ? send({ id, result: answer.result ?? null }, { say: "reply", id, done: true, ...optionIn(answer.result) })
      : send({ id, error: answer.refusal }, { say: "reply", id, done: false })

/** Answers each request of the agent once. */
const server = (listener: Listener, reply: Wire["reply"], scope: Scope.Scope) => {
  let open = 0
  const serve = Effect.fnUntraced(function* (id: unknown, method: string, params: unknown) {
    const refuse = (refusal: Refusal) => reply(id, { _tag: "Refused", refusal })
    const recalled = listener.recalled(id, method, params)
    if (recalled !== undefined) return yield* recalled
    if (open >= OPEN_REQUESTS)
      return yield* refuse({ code: INTERNAL_ERROR, message: "too many requests are open already" })
    open++
    const answer = listener.asked(method, params, id).pipe(
      Effect.matchEffect({
        onSuccess: (result) => reply(id, { _tag: "Result", result }),
        onFailure: refuse
      }),
      Effect.ensuring(Effect.sync(() => open--))
    )
    yield* Effect.forkIn(answer, scope, { startImmediately: true })
  })
  return { serve, isQuiet: () => open === 0 }
}

const requesting = (call: Wire["call"]): Wire["request"] =>
  Effect.fnUntraced(function* (method, params) {
    const answer = yield* Deferred.make<unknown, Refusal>()
    yield* call(method, params, (got) =>
      got._tag === "Result" ? Deferred.succeed(answer, got.result) : Deferred.fail(answer, got.refusal)
    )
    return yield* Deferred.await(answer)
  })

const listening = (
  program: RunProcess.RunProcess,
  at: Readonly<Position>,
  { past }: Listener,
  take: (line: Line) => Effect.Effect<void>
): Effect.Effect<void> => {
  const each = (lines: ReadonlyArray<Line>, size: number) =>
    Effect.andThen(Effect.forEach(lines, take, { discard: true }), () => past(at.seen, size))
  const { from = 0 } = program.stdout
  const all = RunProcess.drainPlaced(program.stdout, program.ended, MAX_MESSAGE, each)
  return Effect.andThen(
    Effect.suspend(() => past(from, from)),
    all
  )
}

/** Creates the connection. `known`: the state of an agent that an earlier daemon started. */
export const make = Effect.fnUntraced(function* (
  program: RunProcess.RunProcess,
  listener: Listener,
  known: KnownWire = { last: 0, open: [] }
): Effect.fn.Return<Wire, never, Scope.Scope> {
  const { from = 0 } = program.stdout
  const at: Position = { seen: from, taken: from }
  const { close, given, note, send } = yield* writer(program, at, listener.stuck)
  const nothing = () => Effect.void
  const waiting = new Map<number, (answer: Answer) => Effect.Effect<void>>(known.open.map((id) => [id, nothing]))
  const unread = reporter(listener.noise)
  let { last } = known

  const reply = replier(send)
  const { isQuiet, serve } = server(listener, reply, yield* Effect.scope)

  const read = (line: string): Effect.Effect<void> => {
    const message = parse(line)
    const id = message?.["id"]
    if (message === undefined) return unread(line)
    if (typeof message["method"] === "string") {
      const { method, params } = message as { readonly method: string; readonly params?: unknown }
      return id === undefined ? listener.notified(method, params) : serve(id, method, params)
    }
    const answered = typeof id === "number" ? waiting.get(id) : undefined
    if (answered === undefined) return unread(line)
    waiting.delete(id as number)
    return answered(answerIn(message))
  }

  const take = ({ end, text }: Line): Effect.Effect<void> =>
    Effect.suspend(() => {
      at.seen = end
      return Effect.andThen(
        Effect.andThen(
          listener.heard,
          Effect.suspend(() => read(text))
        ),
        Effect.suspend(() => {
          at.taken = end
          return listener.past(end)
        })
      )
    })

  const call: Wire["call"] = (method, params, answered, noteOf = (id) => ({ say: "call", id })) =>
    Effect.suspend(() => {
      const id = ++last
      waiting.set(id, answered)
      return send({ id, method, params }, noteOf(id))
    })

  return {
    call,
    reply,
    request: requesting(call),
    expect: (id, answered) => {
      last = Math.max(last, id)
      waiting.set(id, answered)
    },
    notify: (method, params, note) => send({ method, params }, note),
    note,
    given,
    isQuiet,
    close,
    known: () => ({ last, open: [...waiting.keys()].slice(-MAX_KNOWN) }),
    seen: () => at.seen,
    taken: () => at.taken,
    listen: listening(program, at, listener, take)
  }
})
