/**
 * RunServer: serves the procedures for agents, and no others, on the runs' own sockets (RunSockets).
 *
 * Guarantees: a call counts as a call of the run whose socket it uses, whatever its payload says. A call that names
 * another run is refused. The daemon's other procedures cannot be called. The sockets belong to the runs, so this
 * server can end and restart while the runs continue.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import type { Socket } from "node:net"
import { Effect, Layer, Option } from "effect"
import { RpcSerialization, RpcServer } from "effect/rpc"
import { SocketServer } from "effect/socket"
import { RunSockets } from "../../runs/RunSockets.ts"
import { Look } from "./CallerIdentity.ts"
import { serverOf } from "./Connections.ts"
import * as ControlHandlers from "./ControlHandlers.ts"
import { Limits } from "../../board/Limits.ts"
import { AgentApi } from "./Protocol.ts"
import { limited, runRooms } from "./ConnectionLimits.ts"

/** For each connection: the run that owns the socket. */
class Origins {
  private readonly runs = new WeakMap<Socket, string>()

  note(conn: Socket, runId: string): void {
    this.runs.set(conn, runId)
  }

  readonly of = (conn: Socket): string => this.runs.get(conn) ?? ""

  /** The run whose socket the current call uses. */
  readonly here = Effect.map(Effect.serviceOption(NodeSocket.NetSocket), (conn) =>
    Option.isSome(conn) ? this.of(conn.value) : ""
  )
}

/** Turns the connections of all runs' sockets into connections of one server. */
const connectionsOf = (sockets: RunSockets["Service"], origins: Origins) =>
  serverOf("runs", (take) =>
    sockets.answer((conn, runId) => {
      origins.note(conn, runId)
      take(conn)
    })
  )

/** Serves on the runs' sockets until the scope closes. */
export const layer = Layer.unwrap(
  Effect.sync(() => {
    const origins = new Origins()
    const listening = Effect.flatMap(RunSockets, (sockets) =>
      limited(connectionsOf(sockets, origins), runRooms(origins.of))
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
