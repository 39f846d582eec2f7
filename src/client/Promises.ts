/**
 * Promises: the client for programs without Effect: each call is a promise, each stream an async iterable. It needs no
 * npm package.
 *
 * Guarantees: those of Client; a failure is an Error with a `remedy`; the caller has nothing to close: each call has
 * its own connection, and a stream's connection closes when its loop ends.
 */
import * as Account from "../config/Account.ts"
import { placesOf } from "../config/Places.ts"
import { lostAnswer, olderDaemon, unanswered } from "../api/rpc/ConnectionLost.ts"
import type { Answer, PayloadOf, StreamTag, Tag } from "../api/rpc/ProcedureTypes.ts"
import { ask, type Call, type Outcome } from "../api/rpc/Wire.ts"

export { OLDEST_PROTOCOL, PROTOCOL, VERSION } from "../api/rpc/Version.ts"

export type { Answer, PayloadOf, StreamTag, Tag } from "../api/rpc/ProcedureTypes.ts"

/** The name of a procedure that answers once. */
export type CallTag = Exclude<Tag, StreamTag>

/**
 * The caller of a command. `by`: a login or a program's name, recorded in the log with each action. `config`: path of
 * the agentd.jsonc in which a bare agent name is looked up; null if names are full ("shop/builder").
 */
export interface Caller {
  readonly by: string
  readonly config: string | null
}

/** A procedure's payload. `caller` is optional: by default it is the caller of the connection. */
export type Input<T extends Tag> =
  PayloadOf<T> extends { readonly caller: Caller }
    ? Omit<PayloadOf<T>, "caller"> & { readonly caller?: Caller }
    : PayloadOf<T>

/** The payload is optional if the procedure has none. */
export type Arguments<T extends Tag> = PayloadOf<T> extends null ? [payload?: null] : [payload: Input<T>]

export interface Options {
  /** State directory of the daemon. If omitted, that of the user's own daemon. */
  readonly state?: string | undefined
  /** Path of the daemon's socket. If set, `state` is ignored. */
  readonly socket?: string | undefined
  /** Name of the caller in the log. If omitted, the login. */
  readonly by?: string | undefined
  /** The agentd.jsonc in which a bare agent name is looked up. If omitted, names must be full: "shop/builder". */
  readonly config?: string | undefined
}

export interface Connection {
  readonly call: <T extends CallTag>(tag: T, ...payload: Arguments<T>) => Promise<Answer<T>>
  readonly stream: <T extends StreamTag>(tag: T, ...payload: Arguments<T>) => AsyncIterable<Answer<T>>
}

interface Fields {
  readonly message: string
  readonly remedy: string
  readonly reason?: string | undefined
  readonly code?: string | undefined
}

/** The daemon cannot answer. `reason`: "not-running", "forbidden", "lost", "older" or "protocol". */
export class DaemonUnreachable extends Error {
  readonly _tag = "DaemonUnreachable"
  override readonly name = "DaemonUnreachable"
  readonly remedy: string
  readonly reason: string
  constructor({ message, reason = "lost", remedy }: Fields) {
    super(message)
    this.remedy = remedy
    this.reason = reason
  }
}

/** The command was rejected and changed nothing. `code`: the error as a code; undefined if the daemon sent none. */
export class CommandRefused extends Error {
  readonly _tag = "CommandRefused"
  override readonly name = "CommandRefused"
  readonly remedy: string
  readonly code: string | undefined
  constructor({ code, message, remedy }: Fields) {
    super(message)
    this.remedy = remedy
    this.code = code
  }
}

/** The daemon cannot read or write its log. `reason`: "full", "locked", "corrupt", "io" and others. */
export class StorageError extends Error {
  readonly _tag = "StorageError"
  override readonly name = "StorageError"
  readonly remedy: string
  readonly reason: string
  constructor({ message, reason = "io", remedy }: Fields) {
    super(message)
    this.remedy = remedy
    this.reason = reason
  }
}

/** The error of a call that was refused. An introduction that was refused has no reason. */
const refusal = (error: unknown): Error => {
  const fields = error as Fields & { readonly _tag: string }
  if (fields._tag === "DaemonUnreachable") return new DaemonUnreachable({ ...fields, reason: "protocol" })
  return fields._tag === "StorageError" ? new StorageError(fields) : new CommandRefused(fields)
}

const failure = (socket: string, outcome: Exclude<Outcome, { readonly _tag: "Answered" }>): Error => {
  switch (outcome._tag) {
    case "Refused":
      return refusal(outcome.error)
    case "Lost":
      return new DaemonUnreachable(lostAnswer(socket))
    case "Unsent":
      return new DaemonUnreachable(
        outcome.older === true ? olderDaemon(socket) : unanswered(socket, outcome.code, "no answer within 5 s")
      )
    case "Broken":
      // the text with which effect/rpc answers a call to a procedure that the daemon does not have
      return String(outcome.error).startsWith("Unknown request tag")
        ? new DaemonUnreachable(olderDaemon(socket))
        : new Error(typeof outcome.error === "string" ? outcome.error : JSON.stringify(outcome.error))
  }
}

const socketOf = ({ socket, state }: Options): string => {
  const { HOME, XDG_RUNTIME_DIR, XDG_STATE_HOME } = process.env
  const set = (value: string | undefined) => (value === "" ? undefined : value)
  return (
    socket ??
    placesOf(
      { home: set(HOME) ?? Account.home(), stateHome: set(XDG_STATE_HOME), runtime: set(XDG_RUNTIME_DIR) },
      state
    ).socket
  )
}

async function* valuesOf(socket: string, call: Call): AsyncGenerator<unknown, void, undefined> {
  const chunks: Array<{ readonly values: ReadonlyArray<unknown>; readonly more: () => void }> = []
  let outcome: Outcome | undefined
  let wake = () => {}
  const take = (_: number, values: ReadonlyArray<unknown>, more: () => void) => {
    chunks.push({ values, more })
    wake()
  }
  const close = ask(socket, { calls: [call], repeatable: false, take }, (ended) => {
    outcome = ended
    wake()
  })
  try {
    for (;;) {
      const chunk = chunks.shift()
      if (chunk !== undefined) {
        yield* chunk.values
        chunk.more()
      } else if (outcome !== undefined) {
        if (outcome._tag !== "Answered") throw failure(socket, outcome)
        return
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
  } finally {
    close()
  }
}

/** Creates a client. No connection is opened yet: each call and each stream opens its own. */
export const connect = (options: Options = {}): Connection => {
  const caller: Caller = { by: options.by ?? Account.userName(), config: options.config ?? null }
  const socket = socketOf(options)
  // a procedure that takes no caller ignores one; a procedure without a payload is sent null
  const signed = (payload: unknown) => (typeof payload === "object" && payload !== null ? { caller, ...payload } : null)
  return {
    call: <T extends CallTag>(tag: T, ...[payload]: Arguments<T>) =>
      new Promise<Answer<T>>((resolve, reject) => {
        const calls = [{ tag, payload: signed(payload), stream: false }]
        ask(socket, { calls, repeatable: false, take: (_, __, more) => more() }, (outcome) => {
          if (outcome._tag === "Answered") resolve(outcome.replies[0] as Answer<T>)
          else reject(failure(socket, outcome))
        })
      }),
    stream: <T extends StreamTag>(tag: T, ...[payload]: Arguments<T>) =>
      valuesOf(socket, { tag, payload: signed(payload), stream: true }) as AsyncIterable<Answer<T>>
  }
}
