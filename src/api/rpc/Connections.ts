/** Connections: turns connections that another part has accepted into a socket server. */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import type { Socket } from "node:net"
import { Context, Effect, FiberSet, Scope } from "effect"
import { unixPathAddress } from "effect/net/NetAddress"
import { type Socket as EffectSocket, SocketServer } from "effect/socket"

/** Passes each new connection to `take`, until the scope closes. */
export type Answer = (take: (conn: Socket) => void) => Effect.Effect<void, never, Scope.Scope>

const closing = (conn: Socket) =>
  Effect.acquireRelease(Effect.succeed(conn), () => Effect.sync(() => conn.destroySoon()))

export const serverOf = (path: string, answer: Answer) =>
  SocketServer.SocketServer.of({
    address: unixPathAddress(path),
    run: <R, E, _>(handler: (socket: EffectSocket.Socket) => Effect.Effect<_, E, R>) =>
      Effect.gen(function* () {
        const context = Context.omit(Scope.Scope)(yield* Effect.context<R>()) as Context.Context<R>
        const fork = yield* FiberSet.makeRuntime<never, unknown, unknown>()
        yield* answer((conn) => {
          const answered = Effect.flatMap(NodeSocket.fromDuplex(closing(conn)), handler).pipe(
            Effect.provideContext(Context.add(context, NodeSocket.NetSocket, conn)),
            Effect.ensuring(Effect.sync(() => void conn.destroy()))
          )
          fork(answered)
        })
        return yield* Effect.never
      }).pipe(Effect.scoped)
  })
