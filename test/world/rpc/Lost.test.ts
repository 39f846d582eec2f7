/** A daemon that goes away while it is written to is unreachable: the protocol's library dies of the failed write (effect 4.1). */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Socket } from "effect/socket"
import { call } from "../../../src/api/rpc/ControlClient.ts"
import { makeWorld, serve } from "./World.ts"

it.live("is told as a daemon that went away, and no other death is", () =>
  Effect.gen(function* () {
    const { socket } = yield* serve(makeWorld({}))
    const reason = new Socket.SocketWriteError({ cause: new Error("write EPIPE") })
    const lost = yield* Effect.flip(call(socket, () => Effect.die(new Socket.SocketError({ reason }))))
    assert.deepInclude(lost, { _tag: "DaemonUnreachable", reason: "lost" })
    const exit = yield* Effect.exit(call(socket, () => Effect.die(new Error("another"))))
    assert.include(String(exit), "another")
  }).pipe(Effect.scoped)
)
