/**
 * GatewayClient: the daemon's side of the gateway. Starts the gateway if none answers, and keeps a run's route open
 * until the run's scope closes.
 *
 * Guarantees: Keys go over the gateway's own socket and nowhere else. A gateway that died is started again and gets all
 * routes, whose sockets keep their paths. The gateway keeps running when the daemon ends, unless the daemon ends in an
 * orderly way and all runs have ended. Every wait for an answer has a time limit.
 */
import { Context, Deferred, Effect, Layer, Schema, Scope, Semaphore } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { MessageLines } from "../../config/LineSplitter.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"
import type { Count, Route } from "./Gateway.ts"
import { type Learned, MAX_LINE, type Order, type Reply } from "./GatewayControl.ts"
import { program } from "./GatewayFile.ts"

/** The gateway cannot be started, or cannot execute an order. */
export class GatewayFailed extends Schema.TaggedError<GatewayFailed>()("GatewayFailed", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** An order that has not been given its number yet. */
type Wanted = { readonly name: string } & (
  | { readonly do: "open"; readonly route: Route }
  | { readonly do: "close" | "count" | "end" | "settle" }
)

export interface GatewayOptions {
  /** Folder of the gateway's socket and of the runs' folders. Created with mode 0700. */
  readonly folder: string
  /** Extra certificates that the daemon trusts: NODE_EXTRA_CA_CERTS. */
  readonly certificates?: string | undefined
  /** Starts the gateway in a systemd unit of its own. A name is not reused while a unit with this name is active. */
  readonly via?: ((name: string) => Via) | undefined
  /** The PATH in which the command of `via` is searched. */
  readonly path?: string | undefined
  /** Registers secrets that the gateway has learned. */
  readonly learn?: ((values: ReadonlyArray<string>) => Effect.Effect<void>) | undefined
}

/** A command line that is put in front of another one, with the environment variables that it needs. */
export interface Via {
  readonly argv: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
}

export class Gateway extends Context.Service<
  Gateway,
  {
    /**
     * Opens a route until the scope ends. At that time, `outlives` is called: if it returns true, the route stays open,
     * because its run continues.
     */
    readonly open: (
      name: string,
      route: Route,
      outlives?: () => boolean
    ) => Effect.Effect<void, GatewayFailed, Scope.Scope>
    /**
     * Returns the counts of a route, if it is open. `isOver`: true if the run has ended, so that the gateway need not
     * wait for more counts.
     */
    readonly count: (name: string, isOver?: boolean) => Effect.Effect<Count | undefined, GatewayFailed>
    /** Process id of the gateway, if this daemon has started it. */
    readonly pid: Effect.Effect<number | undefined>
  }
>()("agentd/gateway/Gateway") {
  static readonly layer = (options: GatewayOptions) => Layer.effect(Gateway, make(options))
}

const REMEDY = "check that the state directory is writable and that node can be started; agentd tries again"
const failed = (message: string) =>
  new GatewayFailed({ message: `the gateway to the model ${message}`, remedy: REMEDY })

const START_LIMIT = "20 seconds"
const ANSWER_LIMIT = "10 seconds"
const AGAIN: Backoff.Policy = { base: 100, factor: 2, cap: 10_000, jitter: 0 }

/** A connection to the gateway, with the orders that have not been answered yet. */
class Link {
  readonly waiting = new Map<number, Deferred.Deferred<Reply, GatewayFailed>>()
  readonly gone = Deferred.makeUnsafe<void>()
  private readonly socket: net.Socket
  private readonly learn: GatewayOptions["learn"]
  private readonly lines = new MessageLines(MAX_LINE)
  private last = 0

  constructor(socket: net.Socket, learn: GatewayOptions["learn"]) {
    this.socket = socket
    this.learn = learn
    socket.on("data", (chunk: Buffer) => this.hear(chunk))
    socket.on("error", () => socket.destroy())
    socket.on("close", () => {
      for (const one of this.waiting.values()) Deferred.doneUnsafe(one, Effect.fail(failed("has ended")))
      Deferred.doneUnsafe(this.gone, Effect.void)
    })
  }

  private hear(chunk: Buffer): void {
    try {
      // a line that is too long is not JSON either
      for (const line of this.lines.push(chunk)) this.answered(JSON.parse(line ?? ""))
    } catch {
      this.socket.destroy()
    }
  }

  private answered(reply: Learned | Reply): void {
    if ("learned" in reply) return void Effect.runFork(this.learn?.(reply.learned) ?? Effect.void)
    const waits = this.waiting.get(reply.id)
    this.waiting.delete(reply.id)
    if (waits !== undefined) Deferred.doneUnsafe(waits, Effect.succeed(reply))
  }

  readonly ask = (wanted: Wanted): Effect.Effect<Reply, GatewayFailed> =>
    Effect.suspend(() => {
      const order: Order = { ...wanted, id: ++this.last }
      const waits = Deferred.makeUnsafe<Reply, GatewayFailed>()
      if (this.socket.destroyed) return Effect.fail(failed("has ended"))
      this.waiting.set(order.id, waits)
      this.socket.write(`${JSON.stringify(order)}\n`)
      return Deferred.await(waits).pipe(
        Effect.timeoutOrElse({ duration: ANSWER_LIMIT, orElse: () => Effect.fail(failed("does not answer")) }),
        Effect.flatMap((reply) =>
          reply.error === undefined ? Effect.succeed(reply) : Effect.fail(failed(`says: ${reply.error}`))
        )
      )
    })

  close(): void {
    this.socket.destroy()
  }
}

/** Connects to the socket; undefined if no process listens on it. */
const connect = (socket: string, learn: GatewayOptions["learn"]): Effect.Effect<Link | undefined> =>
  Effect.callback((resume) => {
    const connection = net.connect(socket)
    connection.once("connect", () => {
      connection.removeAllListeners("error")
      resume(Effect.succeed(new Link(connection, learn)))
    })
    connection.once("error", () => resume(Effect.succeed(undefined)))
  })

/** Starts a gateway in its own session. Returns when the gateway listens. Its environment contains no key. */
const start = (
  socket: string,
  { certificates, path: PATH = "" }: GatewayOptions,
  around: Via | undefined
): Effect.Effect<number, GatewayFailed> =>
  Effect.callback<number, GatewayFailed>((resume) => {
    fs.rmSync(socket, { force: true })
    const words = [process.execPath, "--disable-sigusr1", "--input-type=module", "-", socket]
    const [first = "", ...rest] = [...(around?.argv ?? []), ...words]
    const child = spawn(first, rest, {
      cwd: "/",
      env: {
        ...(around === undefined ? {} : { ...around.env, PATH }),
        ...(certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificates })
      },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"]
    })
    let said = ""
    child.stderr.on("data", (text) => (said = (said + String(text)).slice(-1000)))
    child.on("error", ({ message }) => resume(Effect.fail(failed(`could not be started: ${message}`))))
    child.on("exit", () => resume(Effect.fail(failed(`ended at its start: ${said.trim()}`))))
    child.stdin.on("error", () => {})
    child.stdin.end(program)
    child.stdout.once("data", () => {
      child.unref()
      for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
      resume(Effect.succeed(child.pid ?? 0))
    })
    return Effect.sync(() => void child.kill("SIGKILL"))
  }).pipe(Effect.timeoutOrElse({ duration: START_LIMIT, orElse: () => Effect.fail(failed("does not start")) }))

/** Starts the gateway in its own systemd unit if possible, otherwise as a plain process. */
const begin = (socket: string, options: GatewayOptions, number: number): Effect.Effect<number, GatewayFailed> => {
  const plainly = start(socket, options, undefined)
  if (options.via === undefined) return plainly
  return Effect.catch(start(socket, options, options.via(`gateway-${process.pid}-${number}`)), ({ message }) =>
    Effect.andThen(Effect.logWarning(`${message}: with no unit of its own it may end with the daemon's`), plainly)
  )
}

const make = Effect.fnUntraced(function* (
  options: GatewayOptions
): Effect.fn.Return<Gateway["Service"], never, Scope.Scope> {
  const scope = yield* Effect.scope
  const socket = path.join(options.folder, "control.sock")
  const routes = new Map<string, Route>()
  const one = Semaphore.makeUnsafe(1)
  let link: Link | undefined
  let pid: number | undefined
  let ended = false
  let starts = 0

  /** Returns the connection to the gateway. Connects first if there is none. */
  const reach: Effect.Effect<Link, GatewayFailed> = Effect.gen(function* () {
    if (link !== undefined) return link
    yield* Effect.try({
      try: () => fs.mkdirSync(options.folder, { recursive: true, mode: 0o700 }),
      catch: (error) => failed(`has no folder: ${error instanceof Error ? error.message : String(error)}`)
    })
    let found = yield* connect(socket, options.learn)
    if (found === undefined) {
      pid = yield* begin(socket, options, ++starts)
      found = yield* connect(socket, options.learn)
    }
    if (found === undefined) return yield* failed("does not listen")
    link = found
    yield* Effect.forkIn(watch(found), scope)
    return found
  })

  const all = Effect.gen(function* () {
    const live = yield* one.withPermit(reach)
    for (const [name, route] of routes) yield* live.ask({ do: "open", name, route })
  })

  /** Opens the routes again after the connection was lost. */
  const watch = (of: Link) =>
    Effect.gen(function* () {
      yield* Deferred.await(of.gone)
      link = undefined
      if (ended || routes.size === 0) return
      yield* Effect.logWarning("the gateway to the model has ended; it is started again")
      yield* Effect.retry(all, Backoff.waits(AGAIN))
    }).pipe(Effect.ignore)

  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      ended = true
      if (link === undefined) return
      yield* Effect.ignore(link.ask({ do: "end", name: "" }))
      link?.close()
    })
  )
  const ask = (wanted: Wanted) => Effect.flatMap(one.withPermit(reach), (live) => live.ask(wanted))
  return {
    open: (name, route, outlives) =>
      Effect.acquireRelease(
        Effect.andThen(
          ask({ do: "open", name, route }),
          Effect.sync(() => void routes.set(name, route))
        ),
        () =>
          Effect.suspend(() => {
            routes.delete(name)
            return link === undefined || outlives?.() === true
              ? Effect.void
              : Effect.ignore(link.ask({ do: "close", name }))
          })
      ),
    count: (name, isOver) => Effect.map(ask({ do: isOver === true ? "settle" : "count", name }), ({ count }) => count),
    pid: Effect.sync(() => pid)
  }
})
