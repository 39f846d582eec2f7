/**
 * ControlServer: the daemon's control socket.
 *
 * Guarantees: only the daemon's own user can connect (a folder that others
 * cannot write in, a socket of mode 0600); a client that sends rubbish, too much, or
 * nothing, or that goes away in the middle, costs at most its own connection; those that
 * have not sent a line yet take no room from those that have, and half lines no memory
 * beyond a limit.
 */
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { Effect, FileSystem, Layer, Tracer } from "effect"
import { RpcSerialization, RpcServer } from "effect/rpc"
import { SocketServer } from "effect/socket"
import * as PeerProcess from "../backends/process/PeerProcess.ts"
import { Traces, type Tracing } from "../telemetry/Tracing.ts"
import { Look } from "./Callers.ts"
import { serverOf } from "./Connections.ts"
import * as ControlHandlers from "./ControlHandlers.ts"
import { claim, EndpointRefused } from "./Endpoint.ts"
import type { GivenSocket } from "./GivenSocket.ts"
import { Limits } from "./Limits.ts"
import { Control } from "./Protocol.ts"
import { ControlRooms, limited } from "./Rooms.ts"

export interface Options {
  /** Absolute path of the socket. */
  readonly socket: string
  /** Where the spans of commands go; without it they have none. */
  readonly tracing?: Tracing | undefined
  /** The store whose runs callers may be of; left out, nobody is looked at. */
  readonly store?: string
  /** The socket itself, where somebody else listens on it. */
  readonly given?: GivenSocket | undefined
}

/** Connections to a socket that lies where somebody else has put it. */
const take = (given: GivenSocket) => limited(serverOf(given.path, given.answer), new ControlRooms())

const listen = Effect.fnUntraced(function* (path: string) {
  yield* claim(path)
  const fs = yield* FileSystem.FileSystem
  const server = yield* NodeSocketServer.make({ path }).pipe(
    Effect.mapError(
      (error) =>
        new EndpointRefused({
          reason: "io",
          message: `Cannot listen at ${path}: ${error.reason.cause}`,
          remedy: "Choose another state folder with --state DIR."
        })
    )
  )
  yield* fs.chmod(path, 0o600).pipe(Effect.orDie)
  return yield* limited(server, new ControlRooms())
})

const lookAt = (store: string) => Layer.sync(Look, () => PeerProcess.make(store))

/** Answers on the socket from now on; needs what the handlers need. */
export const layer = (options: Options) =>
  RpcServer.layer(Control, {
    disableFatalDefects: true,
    disableTracing: options.tracing === undefined,
    spanPrefix: "agentd"
  }).pipe(
    Layer.provide(ControlHandlers.layer),
    Layer.provide(
      options.tracing === undefined
        ? Layer.empty
        : Layer.mergeAll(Layer.succeed(Tracer.Tracer, options.tracing.tracer), Layer.succeed(Traces, options.tracing))
    ),
    Layer.provide(options.store === undefined ? Layer.empty : lookAt(options.store)),
    Layer.provide(RpcServer.layerProtocolSocketServer),
    Layer.provide(
      Layer.effect(SocketServer.SocketServer)(
        options.given === undefined ? listen(options.socket) : take(options.given)
      )
    ),
    Layer.provide(RpcSerialization.layerNdjsonWith({ maxBufferSize: Limits.lineBytes }))
  )
