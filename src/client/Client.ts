/**
 * Client: a program's way to its user's daemon, for programs that use Effect.
 *
 * Guarantees: whatever keeps the daemon from answering is one typed error that says what and what to do; a daemon that
 * does not speak this protocol is asked nothing; a refusal of the daemon is an error of the call, with its remedy.
 */
import { Config, Effect, Option, Queue, Stream } from "effect"
import type { RpcClientError } from "effect/rpc"
import { homedir, userInfo } from "node:os"
import { placesOf } from "../config/Places.ts"
import type { Caller } from "../domain/Messages.ts"
import * as ControlClient from "../api/rpc/ControlClient.ts"

export { DaemonUnreachable } from "../api/rpc/ControlClient.ts"
export { CommandRefused } from "../domain/Messages.ts"
export { StorageError } from "../core/event-log/EventLog.ts"
export { OLDEST_PROTOCOL, PROTOCOL, VERSION } from "../api/rpc/Version.ts"

/** The procedures of the protocol, each a method: `client.Send({ … })`; those that stream give a Stream. */
export type Client = ControlClient.Client

export interface Options {
  /** The daemon's state folder; left out: that of the user's own daemon. */
  readonly state?: string | undefined
  /** The path of its socket, where it is known. */
  readonly socket?: string | undefined
}

const environment = Config.all({
  home: Config.String("HOME").pipe(Config.withDefault(homedir())),
  stateHome: Config.option(Config.String("XDG_STATE_HOME")),
  runtime: Config.option(Config.String("XDG_RUNTIME_DIR"))
})

export const socketOf = ({ socket, state }: Options = {}): Effect.Effect<string> =>
  socket !== undefined
    ? Effect.succeed(socket)
    : Effect.map(Effect.orDie(environment), ({ home, runtime, stateHome }) => {
        const given = { home, stateHome: Option.getOrUndefined(stateHome), runtime: Option.getOrUndefined(runtime) }
        return placesOf(given, state).socket
      })

/**
 * As whom a program calls: `by` is in the log with all that it does, a login or a program's name; `config`: the
 * agentd.jsonc whose agents a bare name means, null where names are whole ("shop/builder").
 */
export const caller = (by: string = userInfo().username, config: string | null = null): Caller => ({ by, config })

/** How what is asked of a client fails. */
export type Refused<E> = Exclude<E, RpcClientError.RpcClientError> | ControlClient.DaemonUnreachable

/** Connects, lets the client be used, for as many calls as there are, and closes. */
export const use =
  (options: Options = {}) =>
  <A, E, R>(calls: (client: Client) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(socketOf(options), (socket) => ControlClient.call(socket, calls))

/** The same for a stream: connected as long as it is read. */
export const stream =
  (options: Options = {}) =>
  <A, E>(values: (client: Client) => Stream.Stream<A, E>) =>
    Stream.callback<A, Refused<E>>(
      (queue) =>
        use(options)((client) => Stream.runForEach(values(client), (value) => Queue.offer(queue, value))).pipe(
          Effect.andThen(Queue.end(queue))
        ) as Effect.Effect<unknown, Refused<E>>,
      { bufferSize: 16 }
    )
