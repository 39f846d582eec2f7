/** Served: an HTTP server with all its doors before a world that is played, for tests of who comes in and what is answered. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Access } from "../../../src/access/Access.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as ListenerStatus from "../../../src/api/http/ListenerStatus.ts"
import * as Server from "../../../src/api/http/Server.ts"
import type { HttpRoutes } from "../../../src/api/http/HttpRoutes.ts"
import { claim } from "../../../src/api/rpc/Endpoint.ts"
import * as Verbs from "../../../src/api/rpc/Verbs.ts"
import { ourselves } from "../../../src/api/rpc/Version.ts"
import { folder, inside, type World } from "../rpc/World.ts"

/** As it is before a page is played. */
const { fetch } = globalThis

export const PAGE = "<!doctype html><title>agentd</title>"

/** A state folder, and what is around a server there: it outlives the server. */
export const place = Effect.fnUntraced(function* (world: World) {
  const state = yield* folder
  mkdirSync(join(state, "web"))
  writeFileSync(join(state, "web/index.html"), PAGE)
  writeFileSync(join(state, "web/app.js"), "1")
  writeFileSync(join(state, "secret"), "2")
  return {
    state,
    around: yield* Layer.build(Layer.merge(inside(world, join(state, "control.sock")), ListenerStatus.layer))
  }
})

/** A server with all its doors, on a port of the kernel's choice. */
export const serve = Effect.fnUntraced(function* (
  world: World,
  names: ReadonlyArray<string> = [],
  port: number | null = 0
) {
  return yield* serveIn(yield* place(world), { names, port })
})

interface Asked {
  readonly names?: ReadonlyArray<string>
  readonly port?: number | null
  readonly taken?: (by: Server.Taken) => Effect.Effect<void>
  readonly others?: HttpRoutes["others"]
}

export const serveIn = Effect.fnUntraced(function* (
  { around, state }: Effect.Success<ReturnType<typeof place>>,
  { names = [], others, port = 0, taken = () => Effect.void }: Asked = {}
) {
  return yield* Effect.gen(function* () {
    const access = yield* Access
    const log = yield* EventLog
    const listening = yield* ListenerStatus.ListenerStatus
    yield* Layer.build(
      Server.layer({
        state,
        socket: join(state, "http.sock"),
        claim,
        port: port ?? undefined,
        spare: 0,
        names,
        doors: {
          access,
          verbs: yield* Verbs.make,
          versions: ourselves,
          ...(others === undefined ? {} : { others }),
          page: { fs: yield* FileSystem.FileSystem, folders: [join(state, "none"), join(state, "web")] }
        },
        about: { status: Effect.succeed({}), metrics: Effect.succeed(""), hook: () => {} },
        taken
      })
    )
    const ask = (path: string, init: RequestInit & { readonly token?: string } = {}) =>
      Effect.gen(function* () {
        const { port } = yield* listening.report
        const { token, ...rest } = init
        const bearer: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
        const headers = { ...bearer, ...(init.headers as Record<string, string> | undefined) }
        return yield* Effect.promise((signal) => fetch(`http://127.0.0.1:${port}${path}`, { ...rest, headers, signal }))
      })
    const verb = (name: string, body: unknown, token?: string) =>
      ask(`/v1/${name}`, { method: "POST", body: JSON.stringify(body), ...(token === undefined ? {} : { token }) })
    return { access, log, listening, ask, verb }
  }).pipe(Effect.provideContext(around), Effect.provide(NodeServices.layer))
})
