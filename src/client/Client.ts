/**
 * Client: connects a program that uses Effect to its user's daemon.
 *
 * Guarantees: if the daemon cannot answer, the call fails with one typed error that has a message and a remedy; no
 * command is sent to a daemon that does not speak this protocol; if the daemon refuses a command, the call fails
 * with the refusal and its remedy.
 */
import { Config, Effect, Option, Queue, Stream } from "effect"
import type { RpcClientError } from "effect/rpc"
import * as Account from "../config/Account.ts"
import { placesOf } from "../config/Places.ts"
import type { Caller } from "../domain/Messages.ts"
import * as ControlClient from "../api/rpc/ControlClient.ts"

export { DaemonUnreachable } from "../api/rpc/ControlClient.ts"
export { CommandRefused } from "../domain/Messages.ts"
export { StorageError } from "../core/event-log/EventLog.ts"
export { OLDEST_PROTOCOL, PROTOCOL, VERSION } from "../api/rpc/Version.ts"

/** The procedures of the protocol, each a method: `client.Send({ … })`. A streaming procedure returns a Stream. */
export type Client = ControlClient.Client

export interface Options {
  /** State directory of the daemon. If omitted, that of the user's own daemon. */
  readonly state?: string | undefined
  /** Path of the daemon's socket. If set, `state` is ignored. */
  readonly socket?: string | undefined
}

const environment = Config.all({
  home: Config.String("HOME").pipe(Config.withDefault(Account.home())),
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
 * The caller of a command. `by`: a login or a program's name, recorded in the log with each action. `config`: path of
 * the agentd.jsonc in which a bare agent name is looked up; null if names are full ("shop/builder").
 */
export const caller = (by: string = Account.userName(), config: string | null = null): Caller => ({ by, config })

/** Errors of a client's calls. A transport error is reported as DaemonUnreachable. */
export type Refused<E> = Exclude<E, RpcClientError.RpcClientError> | ControlClient.DaemonUnreachable

/** Connects, runs `calls` (which can make any number of calls), and closes the connection. */
export const use =
  (options: Options = {}) =>
  <A, E, R>(calls: (client: Client) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(socketOf(options), (socket) => ControlClient.call(socket, calls))

/** Like `use`, for a stream: the connection stays open while the stream is read. */
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
