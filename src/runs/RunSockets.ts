/**
 * RunSockets: a unix socket for each live run, in a folder of its own. The daemon knows by the socket which run is
 * calling.
 *
 * A run owns its socket. The socket opens with the run's scope, before any process of the run exists, and closes after
 * the last process has ended. For a resumed run, the socket opens again in the folder that the run sees. The handler
 * (`answer`) can be replaced while the sockets stay open.
 *
 * Guarantees: The folder has mode 0700, the socket 0600. A connection that arrives while there is no handler is closed.
 * No connection outlives its socket. A socket whose file is removed is created again. Sockets of ended runs that an
 * earlier daemon left are removed.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { Keeper } from "./keeper/Keeper.ts"
import * as KeptSocket from "./KeptSocket.ts"
import { type Backend, BackendError, type RunSocket, type RunSpec } from "./Backend.ts"

/** Receives a new connection, which is paused. */
export type Take = (conn: net.Socket, runId: string) => void

export class RunSockets extends Context.Service<
  RunSockets,
  {
    /** Opens the run's socket until the scope closes; undefined if the path would be too long. */
    readonly open: (runId: string) => Effect.Effect<RunSocket | undefined, BackendError, Scope.Scope>
    /** Prepares the socket of a run that is about to start. `comes`: false if the run does not start after all. */
    readonly expect: (runId: string, comes: boolean) => void
    /** Removes sockets that an earlier daemon left, except those of runs in `runIds`. */
    readonly clear: (runIds: ReadonlyArray<string>) => Effect.Effect<void>
    /** Passes each new connection to `take` until the scope closes. */
    readonly answer: (take: Take) => Effect.Effect<void, never, Scope.Scope>
  }
>()("agentd/backends/RunSockets") {
  /** Provides the service. `folder`: a folder that contains only the sockets of runs. */
  static readonly layer = (folder: string): Layer.Layer<RunSockets> => Layer.effect(RunSockets, make(folder))

  static readonly layerNone = Layer.succeed(RunSockets, {
    open: () => Effect.succeed(undefined),
    expect: () => {},
    clear: () => Effect.void,
    answer: () => Effect.void
  })
}

/** Maximum length of a socket's path (`sun_path`) in bytes, without the final zero byte. */
const MAX_PATH_BYTES = 107
const NAME = "api"
/** Environment variable that tells a run and its MCP servers the path of the socket. */
const VARIABLE = "AGENTD_SOCKET"

const pathOf = (folder: string, runId: string): RunSocket => {
  const own = path.join(folder, createHash("sha256").update(runId).digest("hex").slice(0, 12))
  return { folder: own, path: path.join(own, NAME) }
}

const remove = (folder: string): void => fs.rmSync(folder, { recursive: true, force: true })

const failed = (socket: string, error: unknown): BackendError =>
  new BackendError({
    message: `the run's socket ${socket} could not be opened: ${error instanceof Error ? error.message : String(error)}`,
    remedy: "free disk space, and check that the state directory is writable",
    fatal: false
  })

/** Removes an old socket file but keeps its folder, because the folder is mounted in a confined run. */
const makeFolder = (folder: string): void => {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
  fs.rmSync(path.join(folder, NAME), { force: true })
}

/** A socket that is listening or about to listen. */
interface Opened {
  readonly socket: RunSocket
  readonly server: net.Server
  readonly conns: Set<net.Socket>
  readonly take: (conn: net.Socket) => void
}

const listenAt = (socket: RunSocket, take: (conn: net.Socket) => void): Opened => {
  const conns = new Set<net.Socket>()
  const entered = (conn: net.Socket) => {
    // paused, so that no data is lost until it is read
    conn.pause()
    conns.add(conn)
    conn.on("error", () => {})
    conn.once("close", () => conns.delete(conn))
    take(conn)
  }
  const server = net.createServer(entered)
  makeFolder(socket.folder)
  server.on("error", () => {})
  server.listen(socket.path)
  return { socket, server, conns, take: entered }
}

/**
 * Waits until Node reports that the server listens. The operating system already listens when `server.listen` returns.
 */
const listening = (opened: Opened): Effect.Effect<Opened, unknown> =>
  Effect.callback((resume) => {
    const { server } = opened
    if (server.listening) return resume(Effect.succeed(opened))
    server.on("error", (error) => resume(Effect.fail(error)))
    server.on("listening", () => resume(Effect.succeed(opened)))
  })

/** Removes the socket's file at once, and ends all connections. */
const close = ({ conns, server }: Opened): void => {
  server.close()
  for (const conn of conns) conn.destroy()
}

const make = Effect.fnUntraced(function* (place: string) {
  const keeper = yield* Keeper
  fs.mkdirSync(place, { recursive: true, mode: 0o700 })
  const folder = fs.realpathSync(place)
  const { path: longest } = pathOf(folder, "")
  const isTooLong = Buffer.byteLength(longest) > MAX_PATH_BYTES
  if (isTooLong)
    yield* Effect.logWarning(
      `Runs have no sockets of their own: ${longest} has ${Buffer.byteLength(longest)} bytes and may have ${MAX_PATH_BYTES}. Choose a shorter state directory with --state DIR.`
    )
  let answering: Take | undefined

  /** Sockets of runs that are about to start. */
  const early = new Map<string, Opened>()

  const listen = (runId: string): Opened =>
    listenAt(pathOf(folder, runId), (conn) => (answering === undefined ? void conn.destroy() : answering(conn, runId)))

  const dismiss = (runId: string): void => {
    const opened = early.get(runId)
    if (opened === undefined) return
    early.delete(runId)
    close(opened)
    remove(opened.socket.folder)
  }

  yield* Effect.addFinalizer(() => Effect.sync(() => [...early.keys()].forEach(dismiss)))

  const open = Effect.fnUntraced(function* (runId: string) {
    if (isTooLong) return undefined
    yield* Effect.addFinalizer(() => Effect.sync(() => keeper.isLeaving() || remove(pathOf(folder, runId).folder)))
    const { socket, take } = yield* Effect.acquireRelease(
      Effect.suspend(() => {
        const ready = early.get(runId)
        early.delete(runId)
        return listening(ready?.server.listening === true ? ready : listen(runId))
      }),
      (opened) => Effect.sync(() => close(opened))
    )
    // until this call, other users are kept out by the folder's mode 0700
    fs.chmodSync(socket.path, 0o600)
    const claim = Effect.sync(() => makeFolder(socket.folder))
    yield* KeptSocket.keep({ path: socket.path, claim, take })
    return socket
  })

  return RunSockets.of({
    open: (runId) =>
      open(runId).pipe(
        Effect.catchDefect(Effect.fail),
        Effect.mapError((error) => failed(pathOf(folder, runId).path, error))
      ),
    expect: (runId, comes) => {
      dismiss(runId)
      if (!comes || isTooLong) return
      try {
        early.set(runId, listen(runId))
      } catch {
        // ignored: `open` tries again when the run starts, and reports the error then
      }
    },
    clear: (runIds) =>
      Effect.sync(() => {
        const kept = new Set(runIds.map((runId) => path.basename(pathOf(folder, runId).folder)))
        const left = fs.readdirSync(folder).filter((name) => !kept.has(name))
        for (const name of left) fs.rmSync(path.join(folder, name), { recursive: true, force: true })
      }),
    answer: (take) =>
      Effect.acquireRelease(
        Effect.sync(() => void (answering = take)),
        () => Effect.sync(() => void (answering = answering === take ? undefined : answering))
      )
  })
})

/** Returns the run's spec with the socket's path in the environment of the run and of agentd's own MCP servers. */
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

/** Returns the run's spec as it would be with a socket in this folder. */
export const outlined = (spec: RunSpec, folder: string): RunSpec => told(spec, pathOf(folder, spec.runId))

export const giving = (sockets: RunSockets["Service"], backend: Backend): Backend => ({
  ...backend,
  expect: sockets.expect,
  start: (spec) =>
    Effect.flatMap(sockets.open(spec.runId), (socket) =>
      backend.start(socket === undefined ? spec : told(spec, socket))
    )
})
