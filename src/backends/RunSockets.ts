/**
 * RunSockets: for each live run a unix socket in a folder of its own, which tells the daemon who calls.
 *
 * A run owns its socket: it opens with the run's scope, before any process of the run is there, and goes
 * with it, when none is left. For a run that is taken up it opens anew in the folder that the run sees. Whoever answers on the sockets (`answer`) may come and go: they stay.
 *
 * Guarantees: the folder is 0700, the socket 0600; a connection that comes while nobody answers is hung
 * up on; none outlives its socket; what an earlier daemon left of runs that are over is cleared away.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { Keeper } from "../keeper/Keeper.ts"
import { type Backend, BackendError, type RunSocket, type RunSpec } from "./Backend.ts"

/** Takes a connection that came on a run's socket. It is paused. */
export type Take = (conn: net.Socket, runId: string) => void

export class RunSockets extends Context.Service<
  RunSockets,
  {
    /** The run's socket, for the length of the scope; undefined where there can be none. */
    readonly open: (runId: string) => Effect.Effect<RunSocket | undefined, BackendError, Scope.Scope>
    /** Clears away those that belong to none of these runs: an earlier daemon left them. */
    readonly clear: (runIds: ReadonlyArray<string>) => Effect.Effect<void>
    /** Hands over each connection that comes from now on, for the length of the scope. */
    readonly answer: (take: Take) => Effect.Effect<void, never, Scope.Scope>
  }
>()("agentd/backends/RunSockets") {
  /** `folder`: that of all the sockets, and of nothing else. */
  static readonly layer = (folder: string): Layer.Layer<RunSockets> => Layer.effect(RunSockets, make(folder))

  /** As in a world without sockets. */
  static readonly layerNone = Layer.succeed(RunSockets, {
    open: () => Effect.succeed(undefined),
    clear: () => Effect.void,
    answer: () => Effect.void
  })
}

/** The length of `sun_path` without its closing zero. */
const MAX_PATH_BYTES = 107
const NAME = "api"
/** The variable by which a run and its servers are told. */
const VARIABLE = "AGENTD_SOCKET"

const pathOf = (folder: string, runId: string): RunSocket => {
  const own = path.join(folder, createHash("sha256").update(runId).digest("hex").slice(0, 12))
  return { folder: own, path: path.join(own, NAME) }
}

const remove = (folder: string) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))

const failed = (socket: string, error: unknown): BackendError =>
  new BackendError({
    message: `the run's socket ${socket} could not be opened: ${error instanceof Error ? error.message : String(error)}`,
    remedy: "make room, and see that the state folder can be written",
    fatal: false
  })

/** A socket of before is gone then: the folder itself may be one that a run sees. */
const makeFolder = (folder: string) =>
  Effect.sync(() => {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    fs.rmSync(path.join(folder, NAME), { force: true })
  })

const listen = (socket: string, connected: (conn: net.Socket) => void) =>
  Effect.callback<net.Server, unknown>((resume) => {
    const server = net.createServer(connected)
    server.on("error", (error) => resume(Effect.fail(error)))
    server.listen(socket, () => resume(Effect.succeed(server)))
  })

const make = Effect.fnUntraced(function* (place: string) {
  const keeper = yield* Keeper
  fs.mkdirSync(place, { recursive: true, mode: 0o700 })
  const folder = fs.realpathSync(place)
  const { path: longest } = pathOf(folder, "")
  const isTooLong = Buffer.byteLength(longest) > MAX_PATH_BYTES
  if (isTooLong)
    yield* Effect.logWarning(
      `Runs have no sockets of their own: ${longest} has ${Buffer.byteLength(longest)} bytes and may have ${MAX_PATH_BYTES}. Choose a shorter state folder with --state DIR.`
    )
  let answering: Take | undefined

  const open = Effect.fnUntraced(function* (runId: string) {
    if (isTooLong) return undefined
    const socket = pathOf(folder, runId)
    const conns = new Set<net.Socket>()
    const connected = (conn: net.Socket) => {
      // nothing of it is lost before its reader is there
      conn.pause()
      conns.add(conn)
      conn.on("error", () => {})
      conn.once("close", () => conns.delete(conn))
      if (answering === undefined) conn.destroy()
      else answering(conn, runId)
    }
    /** Takes its name away at once; nothing that came is heard any more. */
    const close = (server: net.Server) =>
      Effect.sync(() => {
        server.close()
        for (const conn of conns) conn.destroy()
      })
    yield* Effect.acquireRelease(makeFolder(socket.folder), () =>
      keeper.isLeaving() ? Effect.void : remove(socket.folder)
    )
    yield* Effect.acquireRelease(listen(socket.path, connected), close)
    fs.chmodSync(socket.path, 0o600)
    return socket
  })

  return RunSockets.of({
    open: (runId) =>
      open(runId).pipe(
        Effect.catchDefect(Effect.fail),
        Effect.mapError((error) => failed(pathOf(folder, runId).path, error))
      ),
    clear: (runIds) =>
      Effect.sync(() => {
        const kept = new Set(runIds.map((runId) => path.basename(pathOf(folder, runId).folder)))
        const left = fs.readdirSync(folder).filter((name) => !kept.has(name))
        for (const name of left) fs.rmSync(path.join(folder, name), { recursive: true, force: true })
      }),
    answer: (take) =>
      Effect.acquireRelease(
        Effect.sync(() => void (answering = take)),
        () =>
          Effect.sync(() => {
            if (answering === take) answering = undefined
          })
      )
  })
})

/** The run is told of its socket, and so are the servers of agentd's that it is given. */
const told = (spec: RunSpec, socket: RunSocket): RunSpec => ({
  ...spec,
  socket,
  env: { ...spec.env, [VARIABLE]: socket.path },
  mcp: Object.fromEntries(
    Object.entries(spec.mcp).map(([name, server]) => [
      name,
      VARIABLE in server.env ? { ...server, env: { ...server.env, [VARIABLE]: socket.path } } : server
    ])
  )
})

/** The run as it is told of the socket that it would have in this folder. */
export const outlined = (spec: RunSpec, folder: string): RunSpec => told(spec, pathOf(folder, spec.runId))

/** Each run of the backend has a socket. */
export const giving = (sockets: RunSockets["Service"], backend: Backend): Backend => ({
  ...backend,
  start: (spec) =>
    Effect.flatMap(sockets.open(spec.runId), (socket) =>
      backend.start(socket === undefined ? spec : told(spec, socket))
    )
})
