/**
 * Promises: the same way to the daemon for programs without Effect: each call a promise, each stream an async iterable.
 *
 * Guarantees: those of Client; what fails is an Error with its `remedy`; nothing has to be closed: a call is a
 * connection of its own, and a stream's ends with its loop.
 */
import { Effect, Stream } from "effect"
import type { Caller } from "../domain/Messages.ts"
import type { PayloadOf, Reply, StreamTag, Tag } from "../api/rpc/ProcedureTypes.ts"
import * as Client from "./Client.ts"

/** The name of a procedure that answers once. */
export type CallTag = Exclude<Tag, StreamTag>

/** A procedure's payload; who calls is filled in where it is left out. */
export type Input<T extends Tag> =
  PayloadOf<T> extends { readonly caller: Caller }
    ? Omit<PayloadOf<T>, "caller"> & { readonly caller?: Caller }
    : PayloadOf<T>

/** Left out where there is none. */
export type Arguments<T extends Tag> = PayloadOf<T> extends null ? [payload?: null] : [payload: Input<T>]

export interface Options extends Client.Options {
  /** As whom it calls; left out: the login. */
  readonly by?: string | undefined
  /** The agentd.jsonc whose agents a bare name means; left out: names are whole, "shop/builder". */
  readonly config?: string | undefined
}

export interface Connection {
  readonly call: <T extends CallTag>(tag: T, ...payload: Arguments<T>) => Promise<Reply<T>>
  readonly stream: <T extends StreamTag>(tag: T, ...payload: Arguments<T>) => AsyncIterable<Reply<T>>
}

type Methods = { readonly [tag: string]: (payload: unknown) => unknown }

/** Nothing is connected yet. */
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
