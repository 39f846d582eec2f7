/**
 * RunServer: answers the runs on their own sockets (RunSockets): the agent's API, and nothing else.
 *
 * Guarantees: a call is that of the run whose socket it came by, whatever it says of itself; one that names
 * another run is refused; no other procedure of the daemon is known here; the sockets are the runs', so
 * that this part may end and begin anew while they live.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import type { Socket } from "node:net"
import { Context, Effect, FiberSet, Layer, Option, Scope } from "effect"
import { unixPathAddress } from "effect/net/NetAddress"
import { RpcSerialization, RpcServer } from "effect/rpc"
import { type Socket as EffectSocket, SocketServer } from "effect/socket"
import { RunSockets } from "../backends/RunSockets.ts"
import { Look } from "./Callers.ts"
import * as ControlHandlers from "./ControlHandlers.ts"
import { Limits } from "./Limits.ts"
import { AgentApi } from "./Protocol.ts"
import { limited } from "./Rooms.ts"
import { RunRooms } from "./RunRooms.ts"

/** Origins: the run on whose socket each connection came. */
class Origins {
  private readonly runs = new WeakMap<Socket, string>()

  note(conn: Socket, runId: string): void {
    this.runs.set(conn, runId)
  }

  readonly of = (conn: Socket): string => this.runs.get(conn) ?? ""

  /** Of the connection that the present call came by. */
  readonly here = Effect.map(Effect.serviceOption(NodeSocket.NetSocket), (conn) =>
    Option.isSome(conn) ? this.of(conn.value) : ""
  )
}

const closing = (conn: Socket) =>
  Effect.acquireRelease(Effect.succeed(conn), () => Effect.sync(() => conn.destroySoon()))

/** The connections of all runs' sockets, as those of one server. */
const serverOf = (sockets: RunSockets["Service"], origins: Origins) =>
  SocketServer.SocketServer.of({
    address: unixPathAddress("runs"),
    run: <R, E, _>(handler: (socket: EffectSocket.Socket) => Effect.Effect<_, E, R>) =>
      Effect.gen(function* () {
        const context = Context.omit(Scope.Scope)(yield* Effect.context<R>()) as Context.Context<R>
        const fork = yield* FiberSet.makeRuntime<never, unknown, unknown>()
        yield* sockets.answer((conn, runId) => {
          origins.note(conn, runId)
          const answered = Effect.flatMap(NodeSocket.fromDuplex(closing(conn)), handler).pipe(
            Effect.provideContext(Context.add(context, NodeSocket.NetSocket, conn)),
            Effect.ensuring(Effect.sync(() => void conn.destroy()))
          )
          fork(answered)
        })
        return yield* Effect.never
      }).pipe(Effect.scoped)
  })

/** Answers from now on; needs what the handlers need. */
export const layer = Layer.unwrap(
  Effect.sync(() => {
    const origins = new Origins()
    const listening = Effect.flatMap(RunSockets, (sockets) =>
      limited(serverOf(sockets, origins), new RunRooms(origins.of))
    )
    const run = (conn: Socket) => Effect.succeed({ _tag: "Run", runId: origins.of(conn) } as const)
    return RpcServer.layer(AgentApi, { disableFatalDefects: true, disableTracing: true }).pipe(
      Layer.provide(ControlHandlers.ofRuns(origins.here)),
      Layer.provide(Layer.succeed(Look, { search: run, believe: () => Effect.succeed({ _tag: "Untold" } as const) })),
      Layer.provide(RpcServer.layerProtocolSocketServer),
      Layer.provide(Layer.effect(SocketServer.SocketServer)(listening)),
      Layer.provide(RpcSerialization.layerNdjsonWith({ maxBufferSize: Limits.lineBytes }))
    )
  })
)
