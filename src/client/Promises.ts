/**
 * Promises: the client for programs without Effect: each call is a promise, each stream an async iterable.
 *
 * Guarantees: those of Client; a failure is an Error with a `remedy`; the caller has nothing to close: each call has
 * its own connection, and a stream's connection closes when its loop ends.
 */
import { Effect, Stream } from "effect"
import type { Caller } from "../domain/Messages.ts"
import type { PayloadOf, Reply, StreamTag, Tag } from "../api/rpc/ProcedureTypes.ts"
import * as Client from "./Client.ts"

/** The name of a procedure that answers once. */
export type CallTag = Exclude<Tag, StreamTag>

/** A procedure's payload. `caller` is optional: by default it is the caller of the connection. */
export type Input<T extends Tag> =
  PayloadOf<T> extends { readonly caller: Caller }
    ? Omit<PayloadOf<T>, "caller"> & { readonly caller?: Caller }
    : PayloadOf<T>

/** The payload is optional if the procedure has none. */
export type Arguments<T extends Tag> = PayloadOf<T> extends null ? [payload?: null] : [payload: Input<T>]

export interface Options extends Client.Options {
  /** Name of the caller in the log. If omitted, the login. */
  readonly by?: string | undefined
  /** The agentd.jsonc in which a bare agent name is looked up. If omitted, names must be full: "shop/builder". */
  readonly config?: string | undefined
}

export interface Connection {
  readonly call: <T extends CallTag>(tag: T, ...payload: Arguments<T>) => Promise<Reply<T>>
  readonly stream: <T extends StreamTag>(tag: T, ...payload: Arguments<T>) => AsyncIterable<Reply<T>>
}

type Methods = { readonly [tag: string]: (payload: unknown) => unknown }

/** Creates a client. No connection is opened yet: each call and each stream opens its own. */
export const connect = (options: Options = {}): Connection => {
  const caller = Client.caller(options.by, options.config ?? null)
  const use = Client.use(options)
  // a procedure that takes no caller ignores one
  const signed = (payload: unknown) =>
    typeof payload === "object" && payload !== null ? { caller, ...payload } : undefined
  const method = (client: Client.Client, tag: string, payload: unknown) =>
    (client as unknown as Methods)[tag]!(signed(payload))
  return {
    call: <T extends CallTag>(tag: T, ...[payload]: Arguments<T>) =>
      Effect.runPromise(use((client) => method(client, tag, payload) as Effect.Effect<Reply<T>, Error>)),
    stream: <T extends StreamTag>(tag: T, ...[payload]: Arguments<T>) =>
      Stream.toAsyncIterable(
        Client.stream(options)((client) => method(client, tag, payload) as Stream.Stream<Reply<T>, Error>)
      )
  }
}
