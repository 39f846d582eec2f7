/**
 * ControlServer: the daemon's control socket.
 *
 * Guarantees: only the daemon's own user can connect: others cannot write to the socket's folder, and the socket has
 * mode 0600. If a client sends garbage, too much or nothing, or disconnects in the middle, only its own connection is
 * affected. Connections that have not sent a line yet take no slots from those that have. Incomplete lines use a
 * bounded amount of memory. If the socket is deleted, it is created again.
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
  /** Collects the spans of commands; undefined if there is no tracing. */
  readonly tracing?: Tracing | undefined
  /** Id of the store whose runs can be callers; undefined if callers are not looked up. */
  readonly store?: string
  /** The control socket, if another process (systemd) listens on it. */
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
 * Creates the socket again whenever it is deleted. `now`: also check at once, because the socket might already be gone
 * if another process listened on it before.
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

/** Serves on the control socket until the scope closes. */
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
