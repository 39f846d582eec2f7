/**
 * ControlServer: the daemon's control socket.
 *
 * Guarantees: only the daemon's own user can connect (a folder that others
 * cannot write in, a socket of mode 0600); a client that sends rubbish, too much, or
 * nothing, or that goes away in the middle, costs at most its own connection; those that
 * have not sent a line yet take no room from those that have, and half lines no memory
 * beyond a limit.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import type { Socket } from "node:net"
import { Clock, Effect, FileSystem, Layer, Schedule, Tracer } from "effect"
import { RpcSerialization, RpcServer } from "effect/rpc"
import { type Socket as EffectSocket, SocketServer } from "effect/socket"
import * as PeerProcess from "../backends/process/PeerProcess.ts"
import { Strangers } from "../domain/Strangers.ts"
import { Traces, type Tracing } from "../telemetry/Tracing.ts"
import { Look } from "./Callers.ts"
import * as ControlHandlers from "./ControlHandlers.ts"
import { claim, EndpointRefused } from "./Endpoint.ts"
import { HalfLines } from "./HalfLines.ts"
import { Limits } from "./Limits.ts"
import { Control } from "./Protocol.ts"

export interface Options {
  /** Absolute path of the socket. */
  readonly socket: string
  /** Where the spans of commands go; without it they have none. */
  readonly tracing?: Tracing | undefined
  /** The store whose runs callers may be of; left out, nobody is looked at. */
  readonly store?: string
}

/** ms in which a client sends its first line, and ends each line that it has begun. */
const LINE_TIME = 5_000
const SWEEP = "1 second"

/** Until what has come of a connection could be read once. */
const readOnce = Effect.callback<void>((resume) => {
  const waiting = setImmediate(() => setImmediate(() => resume(Effect.void)))
  return Effect.sync(() => clearImmediate(waiting))
})

/** Rooms of the socket: clients, strangers, and what they have sent by halves. */
class Rooms {
  private readonly strangers = new Strangers<Socket>(Limits.strangers, (conn) => void conn.destroy())
  private readonly since = new Map<Socket, number>()
  private readonly halves = new HalfLines<Socket>(Limits.halfLines)
  private clients = 0

  enter(conn: Socket, now: number): void {
    this.since.set(conn, now)
    this.strangers.enter(conn)
  }

  settle(conn: Socket): void {
    this.strangers.settle(conn)
  }

  /** A part that was read; whoever ends a line is a client from then on, if there is room. */
  take(conn: Socket, part: Uint8Array | string, now: number): void {
    const isLine = this.halves.take(conn, part, now)
    if (isLine && this.strangers.leave(conn)) {
      this.since.delete(conn)
      this.clients += 1
      conn.once("close", () => (this.clients -= 1))
      if (this.clients > Limits.connections) conn.destroy()
    }
    for (const one of this.halves.overdue(Number.NEGATIVE_INFINITY)) this.end(one)
  }

  leave(conn: Socket): void {
    this.strangers.leave(conn)
    this.since.delete(conn)
    this.halves.forget(conn)
  }

  /** Hangs up on all that have taken too long. */
  sweep(now: number): void {
    for (const conn of this.halves.overdue(now - LINE_TIME)) this.end(conn)
    for (const [conn, since] of this.since) if (since <= now - LINE_TIME) this.end(conn)
  }

  private end(conn: Socket): void {
    this.leave(conn)
    conn.destroy()
  }
}

/** A socket of which each part that is read is told. */
const heard = (socket: EffectSocket.Socket, tell: (part: Uint8Array | string) => Effect.Effect<void>) => ({
  ...socket,
  reader: Effect.map(socket.reader, (reader) => ({
    ...reader,
    pull: Effect.tap(reader.pull, (parts) => Effect.forEach(parts, tell, { discard: true }))
  }))
})

/** Hangs up on what is too much or takes too long; what is hung up on is not read further. */
const limited = Effect.fnUntraced(function* (server: SocketServer.SocketServer["Service"]) {
  const rooms = new Rooms()
  const sweep = Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => rooms.sweep(now)))
  yield* Effect.forkScoped(Effect.repeat(sweep, Schedule.spaced(SWEEP)))
  return SocketServer.SocketServer.of({
    address: server.address,
    run: (handler) =>
      server.run((socket) =>
        Effect.gen(function* () {
          const found = yield* Effect.serviceOption(NodeSocket.NetSocket)
          // every connection of a real server has one
          if (found._tag === "None") return
          const conn = found.value
          rooms.enter(conn, yield* Clock.currentTimeMillis)
          yield* Effect.forkChild(
            Effect.andThen(
              readOnce,
              Effect.sync(() => rooms.settle(conn))
            )
          )
          const tell = (part: Uint8Array | string) =>
            Effect.map(Clock.currentTimeMillis, (now) => rooms.take(conn, part, now))
          // Whatever ends a connection is that connection's own affair.
          yield* Effect.catchCause(Effect.asVoid(handler(heard(socket, tell))), (cause) =>
            Effect.logDebug("a control connection broke", cause)
          ).pipe(Effect.ensuring(Effect.sync(() => rooms.leave(conn))))
        })
      )
  })
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
          remedy: "Choose another state folder with --state DIR."
        })
    )
  )
  yield* fs.chmod(path, 0o600).pipe(Effect.orDie)
  return yield* limited(server)
})

const lookAt = (store: string) =>
  Layer.succeed(Look, {
    search: (socket) => PeerProcess.look(socket, store),
    believe: (pid) => PeerProcess.believe(pid, store)
  })

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
    Layer.provide(Layer.effect(SocketServer.SocketServer)(listen(options.socket))),
    Layer.provide(RpcSerialization.layerNdjsonWith({ maxBufferSize: Limits.lineBytes }))
  )
