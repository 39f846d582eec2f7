/**
 * Server: the daemon's HTTP listeners: a unix socket for hooks and agentd's own commands, and TCP on the loopback
 * address if the user configures it.
 *
 * Guarantees: if its port is not available, the daemon continues without the port, reports the reason and which user's
 * program has the port, and takes the port as soon as it is free. Only the owner can use the socket. A client that is
 * slow or silent, and clients in too large a number, cost only limited time and a limited number of connections.
 * Clients without a token take no connections away from clients with one. A shutdown waits for no client.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { createServer, type IncomingMessage, type Server } from "node:http"
import type { Socket } from "node:net"
import { dirname } from "node:path"
import { Clock, Deferred, Effect, Exit, FileSystem, Layer, Schema, Scope } from "effect"
import { type HttpServerError, HttpServerRequest } from "effect/http"
import * as KeptSocket from "../../runs/KeptSocket.ts"
import { PendingConnections } from "../../domain/PendingConnections.ts"
import * as Api from "./Api.ts"
import { INVITED } from "../../access/Access.ts"
import type * as HttpRoutes from "./HttpRoutes.ts"
import type { Authorization } from "./Authorization.ts"
import { ListenerStatus } from "./ListenerStatus.ts"
import * as Pairing from "./Pairing.ts"
import { ownerOf } from "./PortOwner.ts"
import { refusal } from "./Refusal.ts"
import { shellWord } from "../../config/ShellWord.ts"
import * as Tokens from "./Tokens.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"

export const HOST = "127.0.0.1"
/**
 * The IPv6 loopback address. Browsers also try it for names below `localhost`, so if another program has the port
 * there, the port counts as taken.
 */
const HOST6 = "::1"
const NO_IPV6 = ["EADDRNOTAVAIL", "EAFNOSUPPORT"]

/** Maximum number of waiting permission requests per listener. Each keeps its connection open until a user answers. */
const WAITING = 256
/**
 * Maximum number of authorized connections per listener. It is higher than WAITING, because hooks that are answered at
 * once need connections, too.
 */
const CONNECTIONS = WAITING + 64
const WAITS = /^\/hooks\/claude\/permission\b/
/**
 * Maximum number of connections that have not been authorized yet, by a token or by the socket's folder. If there are
 * more, the oldest is closed. A hook loses its connection only if this many others arrive between its connect and its
 * first bytes.
 */
const STRANGERS = 1024
/**
 * Time limits for a client to send its headers and its whole request. They are long, because a slow client takes
 * nothing from others, and a hook may get no CPU time for seconds when two hundred sessions call at once.
 */
const PATIENCE: Patience = { headers: 60_000, request: 90_000, look: 30_000 }
const HEADER_BYTES = 16 * 1024
/** Time for which current requests may still run when the daemon stops. */
const GRACE = "500 millis"
/** Interval at which the daemon tries again to get a port that another program has. */
const AGAIN = Backoff.constant("2 seconds")

export interface Options<E, R> {
  /** The state directory, which contains the tokens. */
  readonly state: string
  /** Absolute path of the unix socket. */
  readonly socket: string
  /** Makes the socket's path free for listening. Fails if the path contains something other than a stale socket. */
  readonly claim: (path: string) => Effect.Effect<void, E, R>
  /** The TCP port; if undefined, the server listens only on the socket until a port is requested (`Listening.ask`). */
  readonly port: number | undefined
  /** The port to use when a port is requested (`Listening.ask`); undefined if the config forbids ports. */
  readonly spare?: number | undefined
  /** Ports on which systemd listens in place of the daemon. */
  readonly given?: ReadonlyArray<GivenPort>
  /** Additional host names of the server, for a proxy that provides https for them. */
  readonly names?: ReadonlyArray<string>
  /** The routes for pages and programs; undefined if only hooks are answered. */
  readonly doors?: HttpRoutes.HttpRoutes
  /** The data for the answers of `GET /status` and `GET /metrics`. */
  readonly about: Api.About
  /** Time limits for clients; undefined for the daemon's defaults. */
  readonly patience?: Patience
  /** Called when another program has the port, and again when the owner of that program changes. */
  readonly taken: (by: Taken) => Effect.Effect<void>
}

/** A loopback address and port on which another process (systemd) listens in place of the daemon. */
export interface GivenPort {
  readonly host: string
  readonly port: number
  readonly socket: {
    /** Passes all waiting and later connections to `take`, until the scope closes. */
    readonly answer: (take: (conn: Socket) => void) => Effect.Effect<void, never, Scope.Scope>
  }
}

/**
 * Time limits in ms for a client's headers and for its whole request. `look`: interval of the checks. The checks wake
 * up an idle daemon, so they should be rare.
 */
export interface Patience {
  readonly headers: number
  readonly request: number
  readonly look: number
}

/** Another program has the port. `uid`: user id of that program's owner; null if unknown. */
export interface Taken {
  readonly port: number
  readonly uid: number | null
  readonly foreign: boolean
}

/** Error: the server cannot listen on the socket. */
export class HttpRefused extends Schema.TaggedError<HttpRefused>()("HttpRefused", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/**
 * The connections of a listener with their limits: authorized connections, and connections that have not been
 * authorized yet.
 */
class Rooms {
  private readonly strangers = new PendingConnections<Socket>(STRANGERS, (conn) => void conn.destroy())
  private readonly guests = new Set<Socket>()
  /** Authorized connections with a request that waits for a user. */
  private readonly waiting = new Set<Socket>()

  enter(conn: Socket): void {
    this.strangers.enter(conn)
    conn.once("close", () => {
      this.strangers.leave(conn)
      this.guests.delete(conn)
      this.waiting.delete(conn)
    })
    // after two turns of the event loop, all data that had already arrived has been read
    setImmediate(() => setImmediate(() => this.strangers.settle(conn)))
  }

  /** Admits the connection of an authorized request. Returns false if the limit of connections is reached. */
  admit({ socket: conn, url = "" }: IncomingMessage): boolean {
    const waits = WAITS.test(url)
    if (waits && !this.waiting.has(conn) && this.waiting.size >= WAITING) return false
    if (!this.guests.has(conn)) {
      if (this.guests.size >= CONNECTIONS) return false
      this.strangers.leave(conn)
      this.guests.add(conn)
    }
    if (waits) this.waiting.add(conn)
    return true
  }
}

/** Makes an HTTP server that does not listen itself: connections are passed to it. */
const unlistened = (node: Server, { host, port }: GivenPort): Server => {
  node.listen = (...words: ReadonlyArray<unknown>) => {
    const listening = words.at(-1)
    if (typeof listening === "function") listening()
    return node
  }
  node.address = () => ({ address: host, port, family: host === HOST ? "IPv4" : "IPv6" })
  return node
}

/**
 * Serves HTTP at an address until the scope closes. `doorOf` is called when the port is known. `given`: a port on which
 * another process already listens.
 */
const listen = Effect.fnUntraced(function* (
  at: NodeHttpServer.Options,
  api: Api.Api,
  doorOf: (server: Server) => Authorization,
  { headers, look, request }: Patience = PATIENCE,
  given?: GivenPort
) {
  const node = createServer({
    headersTimeout: headers,
    requestTimeout: request,
    connectionsCheckingInterval: look,
    maxHeaderSize: HEADER_BYTES
  })
  const rooms = new Rooms()
  node.on("connection", (conn) => rooms.enter(conn))
  const makes = () => (given === undefined ? node : unlistened(node, given))
  const server = yield* NodeHttpServer.make(makes, { ...at, gracefulShutdownTimeout: GRACE })
  // close all connections after the grace period: otherwise the shutdown would wait for silent clients
  yield* Effect.addFinalizer(() => Effect.sync(() => node.closeAllConnections()))
  const answers = api(doorOf(node), (request) => rooms.admit(request as IncomingMessage))
  // with the connection, handlers can find the process of a local caller
  yield* server.serve(
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ source }) =>
      Effect.provideService(answers, NodeSocket.NetSocket, (source as IncomingMessage).socket)
    )
  )
  const take = (conn: Socket): void => {
    node.emit("connection", conn)
    conn.resume()
  }
  if (given !== undefined) yield* given.socket.answer(take)
  return node
})

const codeOf = ({ cause }: HttpServerError.ServeError): string =>
  typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : String(cause)

const onSocket = Effect.fnUntraced(function* <E, R>({ claim, patience, socket }: Options<E, R>, api: Api.Api) {
  const fs = yield* FileSystem.FileSystem
  const listening = yield* ListenerStatus
  yield* claim(socket)
  const node = yield* listen({ path: socket }, api, () => ({ _tag: "Unix" }), patience).pipe(
    Effect.tap(fs.chmod(socket, 0o600)),
    Effect.mapError(
      (error) =>
        new HttpRefused({
          message: `Cannot listen at ${socket}: ${error._tag === "ServeError" ? codeOf(error) : error.message}`,
          remedy: "Choose another state directory with --state DIR."
        })
    )
  )
  const take = (conn: Socket) => void node.emit("connection", conn)
  yield* KeptSocket.keep({ path: socket, claim: claim(socket), take, allowHalfOpen: true })
  yield* listening.update({ socket })
  yield* Effect.addFinalizer(() => listening.update({ socket: null }))
})

const portOf = (server: Server): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

/** The agentd command for this daemon, with `--state` if its sockets are in the state directory. */
const commandOf = ({ socket, state }: { readonly socket: string; readonly state: string }): string =>
  dirname(socket) === state ? `agentd --state ${shellWord(state)}` : "agentd"

const problemOf = (port: number, command: string, error: HttpServerError.ServeError, taken: Taken | undefined) => ({
  message:
    taken === undefined
      ? `cannot listen on port ${port} (${codeOf(error)})`
      : taken.foreign
        ? `a program of user ${taken.uid} listens on port ${port} in place of this daemon: it can read and answer what is sent there`
        : `another program listens on port ${port}`,
  remedy: `Find the program: ss -ltnp 'sport = :${port}'. End it, or set another http.port in the user's config.jsonc, then: ${command} restart. If hooks were installed with --http: ${command} hooks install`,
  ...(taken?.foreign === true ? { foreign: true } : {})
})

/** The program that has the port, described by its owner; undefined if the port is unavailable for another reason. */
const takenBy = Effect.fnUntraced(function* (port: number, error: HttpServerError.ServeError) {
  if (codeOf(error) !== "EADDRINUSE") return undefined
  const uid = yield* ownerOf(port)
  return { port, uid, foreign: uid !== null && uid !== process.getuid?.() } satisfies Taken
})

/**
 * Serves on the port until the scope closes, and tries again while the port is not available. `tried` completes after
 * the first attempt, whether it succeeds or fails.
 */
const onPort = Effect.fnUntraced(function* <E, R>(
  port: number,
  { taken, ...options }: Options<E, R>,
  tokens: Tokens.Tokens,
  api: Api.Api,
  tried: Deferred.Deferred<void>
) {
  const listening = yield* ListenerStatus
  let told: number | null | undefined = undefined
  yield* listening.update({ port })
  const once = Effect.gen(function* () {
    const { names = [] } = options
    const door = (node: Server) => ({ _tag: "Tcp", port: portOf(node), tokens, names }) as const
    const at = (host: string) => options.given?.find((one) => one.host === host && one.port === port)
    const node = yield* listen({ host: HOST, port }, api, door, options.patience, at(HOST))
    yield* listen({ host: HOST6, port: portOf(node) }, api, door, options.patience, at(HOST6)).pipe(
      Effect.catchIf(
        (error) => NO_IPV6.includes(codeOf(error)),
        () => Effect.void
      )
    )
    yield* listening.update({ port: portOf(node), listening: true, problem: null })
    yield* Effect.addFinalizer(() => listening.update({ listening: false }))
    yield* Deferred.succeed(tried, undefined)
    return yield* Effect.never
  })
  const refused = Effect.fnUntraced(function* (error: HttpServerError.ServeError) {
    const by = yield* takenBy(port, error)
    const { problem: before } = yield* listening.report
    const since = before?.since ?? (yield* Clock.currentTimeMillis)
    const problem = { ...problemOf(port, commandOf(options), error, by), since }
    yield* listening.update({ problem })
    if (by !== undefined && by.uid !== told) {
      told = by.uid
      yield* taken(by)
    }
    const first = yield* Deferred.succeed(tried, undefined)
    if (first) yield* Effect.logWarning(`${problem.message}. ${problem.remedy}`)
  })
  yield* Effect.scoped(once).pipe(
    Effect.tapError(refused),
    Effect.retry(Backoff.waits(AGAIN)),
    Effect.catchTag("ServeError", () => Effect.void)
  )
})

const forbidden = {
  message: "the user's config forbids listening on a port (http.enabled: false)",
  remedy: "Remove that from the user's config.jsonc, then: agentd restart"
}

/**
 * Serves on the spare port when a port is requested. If access was granted before, this happens at once, because the
 * page or program with that access will reconnect.
 */
const whenAsked = Effect.fnUntraced(function* <E, R>(options: Options<E, R>, api: Api.Api) {
  const { asked, update } = yield* ListenerStatus
  const { doors, spare: port } = options
  const granted = doors === undefined ? Effect.succeed([]) : Effect.orElseSucceed(doors.access.list, () => [])
  if (port === undefined || (yield* granted).length === 0) yield* asked
  if (port === undefined) return yield* update({ problem: forbidden })
  const tokens = yield* Tokens.all(options.state)
  yield* onPort(port, options, tokens, api, yield* Deferred.make<void>())
})

/**
 * Opens ports that each serve a single page, as the page's own origin. They are for browsers that do not resolve names
 * below `localhost` to this machine. The daemon keeps a port until the page's access is revoked.
 */
const onPagePorts = Effect.fnUntraced(function* <E, R>(
  options: Options<E, R>,
  api: Api.Api,
  { access }: HttpRoutes.HttpRoutes
) {
  const scope = yield* Effect.scope
  const fs = yield* FileSystem.FileSystem
  const { opensPages, page } = yield* ListenerStatus
  const on = Effect.fnUntraced(function* (port: number) {
    const tokens = yield* Tokens.all(options.state)
    const door = (node: Server) => ({ _tag: "Tcp", port: portOf(node), tokens, names: [] }) as const
    return yield* listen({ host: HOST, port }, api, door, options.patience)
  })
  const refused = (port: number, id: string, told = new Set<number | null>()) =>
    Effect.fnUntraced(function* (error: HttpServerError.ServeError) {
      const by = yield* takenBy(port, error)
      const since = yield* Clock.currentTimeMillis
      const command = commandOf(options)
      const { message, ...problem } = problemOf(port, command, error, by)
      yield* page(port, {
        ...problem,
        message: `${message}; this port is the address of page ${id}`,
        remedy: `Find the program: ss -ltnp 'sport = :${port}'. End it, or open the page on another port: ${command} access revoke ${id}, then: ${command} open --own-port`,
        since
      })
      if (by === undefined || told.has(by.uid)) return
      told.add(by.uid)
      yield* options.taken(by)
    })
  const keep = (port: number, id: string) =>
    Effect.scoped(Effect.andThen(Effect.andThen(on(port), page(port, null)), Effect.never)).pipe(
      Effect.tapErrorTag("ServeError", refused(port, id)),
      Effect.retry(Backoff.waits(AGAIN)),
      Effect.raceFirst(access.ended(id)),
      Effect.ensuring(page(port, null)),
      Effect.ignore
    )
  const open = Effect.gen(function* () {
    const own = yield* Scope.fork(scope)
    const node = yield* Scope.provide(on(0), own).pipe(Effect.tapError(() => Scope.close(own, Exit.void)))
    const port = portOf(node)
    const claimed = Effect.map(access.list, (all) => all.find((grant) => grant.port === port))
    yield* Effect.sleep(INVITED).pipe(
      Effect.andThen(claimed),
      Effect.flatMap((grant) => (grant === undefined ? Effect.void : access.ended(grant.id))),
      Effect.ignore,
      Effect.ensuring(Scope.close(own, Exit.void)),
      Effect.forkIn(scope)
    )
    return port
  })
  yield* opensPages(
    Effect.mapError(open, (error) => ({
      message: `no port is available: ${error._tag === "ServeError" ? codeOf(error) : error.message}`,
      remedy: "Try again."
    })).pipe(Effect.provideService(FileSystem.FileSystem, fs))
  )
  const granted = Effect.orElseSucceed(access.list, () => [])
  yield* Effect.flatMap(granted, (all) =>
    Effect.forEach(all, ({ id, port }) => (port === undefined ? Effect.void : Effect.forkIn(keep(port, id), scope)))
  ).pipe(Effect.forkIn(scope))
})

/**
 * The pairing of pages. The keys of all pages are derived from one secret, which is created when the first page
 * connects.
 */
const pairingOf = Effect.fnUntraced(function* (state: string, { access }: HttpRoutes.HttpRoutes) {
  const fs = yield* FileSystem.FileSystem
  const { update } = yield* ListenerStatus
  const workers = new Map<string, string>()
  let known: string | undefined
  const read = Tokens.read(state, "pages").pipe(
    Effect.provideService(FileSystem.FileSystem, fs),
    Effect.mapBoth({
      onSuccess: (text) => (known = text),
      onFailure: ({ message, remedy }) => refusal("unavailable", message, remedy)
    })
  )
  return Pairing.make(
    access,
    Effect.suspend(() => (known === undefined ? read : Effect.succeed(known))),
    (id, found) => {
      if (found.length === 0) workers.delete(id)
      else workers.set(id, `${found.join(" ")} (page ${id})`)
      return update({ workers: [...workers.values()] })
    }
  )
})

/** Serves until the scope closes: always on the socket, and on the port when it is available. */
export const layer = <E, R>(options: Options<E, R>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { about, doors, state } = options
      const api = yield* Api.make(about, doors, doors === undefined ? undefined : yield* pairingOf(state, doors))
      yield* onSocket(options, api)
      const isForbidden = options.port === undefined && options.spare === undefined
      if (doors !== undefined && !isForbidden) yield* onPagePorts(options, api, doors)
      if (options.port === undefined) return yield* Effect.forkScoped(whenAsked(options, api))
      const tokens = yield* Tokens.all(options.state)
      const tried = yield* Deferred.make<void>()
      yield* Effect.forkScoped(onPort(options.port, options, tokens, api, tried))
      yield* Deferred.await(tried)
    })
  )
