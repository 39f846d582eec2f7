/**
 * ControlServer: the daemon's control socket.
 *
 * Guarantees: only the daemon's own user can connect (a folder that others cannot write, a socket of mode 0600). A
 * client that sends garbage, too much or nothing, or that disconnects in the middle, costs at most its own connection.
 * Connections that have not sent a line yet take no room from those that have. Incomplete lines use a bounded amount of
 * memory. A socket that is deleted is created again.
 */
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { Effect, FileSystem, Layer, Tracer } from "effect"
import { RpcSerialization, RpcServer } from "effect/rpc"
import { SocketServer } from "effect/socket"
import * as KeptSocket from "../../runs/KeptSocket.ts"
import * as PeerProcess from "../../runs/process/PeerProcess.ts"
import { Traces, type Tracing } from "../../telemetry/Tracing.ts"
import { Look } from "./CallerIdentity.ts"
import { serverOf } from "./Connections.ts"
import * as ControlHandlers from "./ControlHandlers.ts"
import { claim, EndpointRefused } from "./Endpoint.ts"
import type { InheritedSocket } from "./InheritedSocket.ts"
import { Limits } from "../../board/Limits.ts"
import { Control } from "./Protocol.ts"
import { controlRooms, limited } from "./ConnectionLimits.ts"

export interface Options {
  /** Absolute path of the socket. */
  readonly socket: string
  /** Collects the spans of commands; undefined: no spans. */
  readonly tracing?: Tracing | undefined
  /** The store whose runs can be callers; undefined: no caller is looked up. */
  readonly store?: string
  /** The socket, if another process (systemd) listens on it. */
  readonly given?: InheritedSocket | undefined
}

const both = (
  one: SocketServer.SocketServer["Service"],
  other: SocketServer.SocketServer["Service"]
): SocketServer.SocketServer["Service"] => ({
  ...one,
  run: (handler) => Effect.raceFirst(one.run(handler), other.run(handler))
})

/**
 * Creates the socket again when it is deleted. `now`: checks for the socket at once, because it might already be gone
 * if another process listened on it first.
 */
const kept = Effect.fnUntraced(function* (path: string, first: SocketServer.SocketServer["Service"], now: boolean) {
  const claimed = Effect.provideContext(claim(path), yield* Effect.context<FileSystem.FileSystem>())
  const again = serverOf(path, (take) => KeptSocket.keep({ path, claim: claimed, take, now }))
  return yield* limited(both(first, again), controlRooms())
})

const listen = Effect.fnUntraced(function* (path: string) {
  yield* claim(path)
  const fs = yield* FileSystem.FileSystem
  const server = yield* NodeSocketServer.make({ path }).pipe(
    Effect.mapError(
      (error) =>
        new EndpointRefused({
          reason: "io",
          message: `Cannot listen at ${path}: ${error.reason.cause}`,
          remedy: "Choose another state directory with --state DIR."
        })
    )
  )
  yield* fs.chmod(path, 0o600).pipe(Effect.orDie)
  return yield* kept(path, server, false)
})

const lookAt = (store: string) => Layer.sync(Look, () => PeerProcess.make(store))

/** Serves while the scope is open. */
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
        options.given === undefined
          ? listen(options.socket)
          : kept(options.given.path, serverOf(options.given.path, options.given.answer), true)
      )
    ),
    Layer.provide(RpcSerialization.layerNdjsonWith({ maxBufferSize: Limits.lineBytes }))
  )
