/**
 * Server: the daemon's HTTP listeners: a unix socket for hooks and our own commands, and loopback TCP if the user
 * configures it.
 *
 * Guarantees: without its port the daemon continues, reports why and whose program has the port, and takes the port as
 * soon as it is free. Only the owner can use the socket. A client that is slow, silent or one of too many costs a
 * bounded time and a bounded number of connections. Clients without a token take no room from those with one. A
 * shutdown waits for no client.
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
import { quote } from "./HookCommand.ts"
import * as Tokens from "./Tokens.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"

export const HOST = "127.0.0.1"
/**
 * The IPv6 loopback address, which browsers also try for a name below localhost. If another program has it, the port
 * counts as taken.
 */
const HOST6 = "::1"
const NO_IPV6 = ["EADDRNOTAVAIL", "EAFNOSUPPORT"]

/** Maximum number of open permission requests per listener. Each occupies its connection until a user answers. */
const WAITING = 256
/** Maximum number of authorized connections per listener; leaves room for hooks, which are answered at once. */
const CONNECTIONS = WAITING + 64
const WAITS = /^\/hooks\/claude\/permission\b/
/**
 * Maximum number of further connections that are not authorized yet, by a token or by the socket's folder. If there are
 * more, the oldest is closed. A hook's connection is closed only if this many come between its connect and its first
 * bytes.
 */
const STRANGERS = 1024
/**
 * How long a client may take for its headers, and for its whole request. The time is long, because a waiting client
 * takes no room from others. When two hundred sessions call at once, a hook may get no CPU time for seconds.
 */
const PATIENCE: Patience = { headers: 60_000, request: 90_000, look: 30_000 }
const HEADER_BYTES = 16 * 1024
/** How long current requests may still run when the daemon stops. */
const GRACE = "500 millis"
/** Retry interval for a port that another program has. */
const AGAIN = Backoff.constant("2 seconds")

export interface Options<E, R> {
  /** The state directory, which contains the tokens. */
  readonly state: string
  /** Absolute path of the unix socket. */
  readonly socket: string
  /** Frees the path of the socket for listening. Fails if something else is at that path. */
  readonly claim: (path: string) => Effect.Effect<void, E, R>
  /** The TCP port; undefined: the server listens only on the socket, until a port is requested (`Listening.ask`). */
  readonly port: number | undefined
  /** The port to use when a port is requested (`Listening.ask`). Undefined: the config forbids a port. */
  readonly spare?: number | undefined
  /** Ports that systemd listens on in place of the daemon. */
  readonly given?: ReadonlyArray<GivenPort>
  /** Further host names of the port, for a proxy that provides https for them. */
  readonly names?: ReadonlyArray<string>
  /** The entry points for pages and programs; undefined: only hooks are answered. */
  readonly doors?: HttpRoutes.HttpRoutes
  /** The answers of `GET /status` and `GET /metrics`. */
  readonly about: Api.About
  /** Timeouts of clients; undefined: the defaults for a daemon. */
  readonly patience?: Patience
  /** Called when another program has the port, and again when that program's owner changes. */
  readonly taken: (by: Taken) => Effect.Effect<void>
}

/** A loopback address and port on which another process (systemd) listens for the daemon. */
export interface GivenPort {
  readonly host: string
  readonly port: number
  readonly socket: {
    /** Passes each existing and later connection to `take`, while the scope is open. */
    readonly answer: (take: (conn: Socket) => void) => Effect.Effect<void, never, Scope.Scope>
  }
}

/**
 * Timeouts in ms for a client's headers and for its request. `look`: interval of the check, which wakes an idle daemon.
 */
export interface Patience {
  readonly headers: number
  readonly request: number
  readonly look: number
}

/** Another program has the port; `uid` null: its owner is unknown. */
export interface Taken {
  readonly port: number
  readonly uid: number | null
  readonly foreign: boolean
}

/** The server cannot listen on the socket. */
export class HttpRefused extends Schema.TaggedError<HttpRefused>()("HttpRefused", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** Connection limits of a listener: for authorized connections, and for strangers. */
class Rooms {
  private readonly strangers = new PendingConnections<Socket>(STRANGERS, (conn) => void conn.destroy())
  private readonly guests = new Set<Socket>()
  /** The authorized connections whose request waits for a user. */
  private readonly waiting = new Set<Socket>()

  enter(conn: Socket): void {
    this.strangers.enter(conn)
    conn.once("close", () => {
      this.strangers.leave(conn)
      this.guests.delete(conn)
      this.waiting.delete(conn)
    })
    // by the second turn of the event loop, everything that had arrived has been read once
    setImmediate(() => setImmediate(() => this.strangers.settle(conn)))
  }

  /** Admits an authorized request. False: there is no room for its connection. */
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

/** An HTTP server that does not listen itself: connections are passed to it. */
const unlistened = (node: Server, { host, port }: GivenPort): Server => {
  node.listen = (...words: ReadonlyArray<unknown>) => {
    const listening = words.at(-1)
    if (typeof listening === "function") listening()
    return node
  }
  node.address = () => ({ address: host, port, family: host === HOST ? "IPv4" : "IPv6" })
  return node
}

/** Listens in the current scope; `doorOf` is called when the port is known. `given`: another process listens for us. */
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
  // closes connections between the grace period and the wait for the last connection, which a silent client would never
  // end
  yield* Effect.addFinalizer(() => Effect.sync(() => node.closeAllConnections()))
  const answers = api(doorOf(node), (request) => rooms.admit(request as IncomingMessage))
  // from the connection, handlers can find the process of a local caller
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

/** The agentd command for this daemon: with `--state` if the socket is in the state directory. */
const commandOf = ({ socket, state }: { readonly socket: string; readonly state: string }): string =>
  dirname(socket) === state ? `agentd --state ${/^[\w@%+=:,./-]+$/.test(state) ? state : quote(state)}` : "agentd"

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

/** The program that has the port, by its owner; undefined: the port is unavailable for another reason. */
const takenBy = Effect.fnUntraced(function* (port: number, error: HttpServerError.ServeError) {
  if (codeOf(error) !== "EADDRINUSE") return undefined
  const uid = yield* ownerOf(port)
  return { port, uid, foreign: uid !== null && uid !== process.getuid?.() } satisfies Taken
})

/**
 * Serves on the port until the scope closes. `tried` completes when the first attempt to take the port has succeeded or
 * failed.
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
 * Takes the spare port when it is requested. If a token was granted before, takes the port at once, because the token's
 * page will reconnect.
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
 * Opens ports for single pages. Each is the origin of one page, for a browser that does not resolve names below
 * localhost to this machine. The daemon keeps the port while the page has its right.
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

/** The keys of pages are derived from one secret, which is created when the first page connects. */
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

/** Serves while the scope is open: always on the socket, and on the port if it is available. */
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
