/**
 * main: the gateway as a process. Its only argument is the path of the socket on which the daemon sends its orders. It
 * prints `ready` on its standard output.
 *
 * The gateway survives the daemon, as runs do. A route stays open while the daemon that opened it is connected, or
 * while its run lives. A route that is unused for about a minute is closed. If there is no route and no daemon for
 * about a minute, the gateway exits. It ends at once if the last daemon reports an orderly end and there is no route.
 *
 * Guarantees: If two gateways are started at once, the second finds the socket in use and exits. A gateway reads no
 * environment variable, and no file except the logins at remote MCP servers. A line that is too long, or is not a valid order, ends its connection.
 */
import * as fs from "node:fs"
import * as net from "node:net"
import { MessageLines } from "../../config/LineSplitter.ts"
import { open, type OpenRoute } from "./Gateway.ts"
import { type Learned, MAX_LINE, type Order, type Reply } from "./GatewayControl.ts"
import { RemoteLogins } from "./RemoteLogin.ts"

/** How often unused routes are searched, ms, and in how many consecutive searches a route may be unused. */
const LOOK = 5_000
const LOOKS = 12
const MAX_ROUTES = 1_000
/** Maximum number of tokens that a new daemon is told. */
const MAX_LEARNED = 1_000
const IGNORED = [
  ...(["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPWR"] as const),
  ...(["SIGSYS", "SIGXFSZ", "SIGSTKFLT"] as const)
]

interface Kept {
  readonly route: OpenRoute
  readonly asked: string
  owner: net.Socket | undefined
  idle: number
}

/** A line that is too long, or is not JSON, ends the connection. */
const orders = (daemon: net.Socket, take: (order: Order) => Promise<void>): void => {
  const lines = new MessageLines(MAX_LINE)
  daemon.on("data", (chunk: Buffer) => {
    for (const line of lines.push(chunk)) {
      try {
        // a line that is too long is not JSON either
        void take(JSON.parse(line ?? ""))
      } catch {
        daemon.destroy()
      }
    }
  })
  daemon.on("error", () => daemon.destroy())
}

const told = (daemon: net.Socket, message: Learned | Reply): void => void daemon.write(`${JSON.stringify(message)}\n`)

/** Tells the daemons each token that the gateway uses. `repeat` tells them to a new daemon. */
const telling = (daemons: ReadonlySet<net.Socket>) => {
  const learned = new Set<string>()
  const logins = new RemoteLogins((secrets) => {
    for (const secret of secrets) {
      if (learned.has(secret)) continue
      learned.add(secret)
      for (const daemon of daemons) told(daemon, { learned: [secret] })
    }
    for (const secret of [...learned].slice(0, -MAX_LEARNED)) learned.delete(secret)
  })
  const repeat = (daemon: net.Socket) => {
    for (const secret of learned) told(daemon, { learned: [secret] })
  }
  return { logins, repeat }
}

interface Opening {
  /** Whether the gateway has ended. */
  readonly isOver: () => boolean
  readonly order: Extract<Order, { readonly do: "open" }>
  readonly owner: net.Socket
  readonly logins: RemoteLogins
}

/** Opens a route, or gives the route of a run that has survived its daemon to the next one. */
const opened = async (
  routes: Map<string, Kept>,
  close: (name: string) => void,
  { isOver, logins, order: { id, name, route: given }, owner }: Opening
): Promise<Reply> => {
  const { remotes = {}, ...route } = given
  const asked = JSON.stringify(route)
  const known = routes.get(name)
  // the route is kept, so that its open requests continue; only its MCP servers may have changed
  if (known !== undefined && known.asked === asked) {
    known.owner = owner
    known.route.reach(remotes)
    return { id }
  }
  close(name)
  if (routes.size >= MAX_ROUTES) return { id, error: `it serves ${MAX_ROUTES} runs already` }
  const opened = await open(given, undefined, logins)
  // the order to end can come in between; a route that is left would keep the process alive
  if (isOver()) {
    opened.close()
    return { id, error: "it has ended" }
  }
  routes.set(name, { route: opened, asked, owner, idle: 0 })
  return { id }
}

/** Serves on the socket until the gateway is no longer needed. */
export const serve = (socket: string): void => {
  const routes = new Map<string, Kept>()
  const daemons = new Set<net.Socket>()
  const { logins, repeat } = telling(daemons)
  let idle = 0
  let isOver = false
  let next: NodeJS.Timeout | undefined

  /** Removes the socket's file: new daemons no longer find the gateway, but open connections are not closed. */
  const end = () => {
    isOver = true
    clearTimeout(next)
    server.close()
    fs.rmSync(socket, { force: true })
  }

  const close = (name: string) => {
    routes.get(name)?.route.close()
    routes.delete(name)
  }

  const act = async (order: Order, owner: net.Socket): Promise<Reply> => {
    const { id, name } = order
    if (order.do === "end") {
      if (routes.size === 0 && daemons.size === 1) end()
      return { id }
    }
    if (order.do === "open") return opened(routes, close, { isOver: () => isOver, order, owner, logins })
    if (order.do === "settle") routes.get(name)?.route.settle()
    const count = routes.get(name)?.route.count()
    if (order.do === "close") close(name)
    return count === undefined ? { id } : { id, count }
  }

  const hear = (daemon: net.Socket) => {
    daemons.add(daemon)
    repeat(daemon)
    orders(daemon, (order) =>
      act(order, daemon)
        .catch((error: unknown): Reply => ({ id: order.id, error: error instanceof Error ? error.message : "failed" }))
        .then((reply) => told(daemon, reply))
    )
    daemon.on("close", () => {
      daemons.delete(daemon)
      for (const kept of routes.values()) if (kept.owner === daemon) kept.owner = undefined
    })
  }

  // ignored, so that open requests still get their answers; SIGTERM, SIGINT and SIGQUIT end the gateway
  for (const signal of IGNORED) process.on(signal, () => {})
  const server = net.createServer(hear)
  const look = () => {
    for (const [name, kept] of routes) {
      kept.idle = kept.owner !== undefined || kept.route.held() ? 0 : kept.idle + 1
      if (kept.idle > LOOKS) close(name)
    }
    idle = daemons.size + routes.size > 0 ? 0 : idle + 1
    if (idle > LOOKS) return end()
    next = setTimeout(look, LOOK)
  }
  server.on("error", () => server.close())
  server.listen(socket, () => {
    fs.chmodSync(socket, 0o600)
    fs.writeSync(1, "ready\n")
    look()
  })
}

const [, , socket] = process.argv
if (socket !== undefined) serve(socket)
