/**
 * InheritedSocket: a listening socket that systemd has passed to this process. The socket outlives a restart of this
 * process, so that no client is refused in between.
 *
 * Guarantees: the handler of connections can be removed and replaced. A connection that arrives in between waits for
 * the next handler; the number of waiting connections is limited. After the hand-over, new connections are left to the
 * next process.
 */
import { createServer, type Server, type ServerOpts, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { Limits } from "../../board/Limits.ts"
import { MessageLines } from "../../config/LineSplitter.ts"

/**
 * Interval at which a hand-over checks for open connections. Most answers take a few ms. Clients that follow a stream
 * are not waited for.
 */
const LOOK = "20 millis"
const LOOKS = 50
/** Time for which connections are refused: long enough for all those that have already arrived. */
const TURNED_AWAY = "200 millis"
/** Maximum length of a client's introduction, in characters. */
const LONGEST = 4_096

/** The reason why no daemon can be started. */
export interface Why {
  readonly message: string
  readonly remedy: string
}

/** The answer to the first line of a connection if the line introduces a client; empty for other lines. Pure. */
export const refusalOf = (line: string, { message, remedy }: Why): string => {
  try {
    const frame: unknown = JSON.parse(line)
    if (typeof frame !== "object" || frame === null || !("tag" in frame && "id" in frame) || frame.tag !== "Hello")
      return ""
    const error = {
      _tag: "CommandRefused",
      code: "unavailable",
      message: `The daemon cannot be started. ${message}`,
      remedy
    }
    const exit = { _tag: "Failure", cause: [{ _tag: "Fail", error }] }
    return `${JSON.stringify({ _tag: "Exit", requestId: frame.id, exit })}\n`
  } catch {
    return ""
  }
}

const tell = (conn: Socket, why: Why): void => {
  const lines = new MessageLines(LONGEST)
  conn.on("error", () => {})
  conn.on("data", (chunk: Buffer) => {
    const found = lines.push(chunk)
    if (found.length === 0) return
    conn.removeAllListeners("data").resume()
    conn.end(refusalOf(found[0] ?? "", why))
  })
}

export class InheritedSocket {
  /** The path or address to which the socket is bound. */
  readonly path: string
  private readonly descriptor: number
  private readonly options: Pick<ServerOpts, "allowHalfOpen">
  private server: Server | undefined = undefined
  private take: ((conn: Socket) => void) | undefined = undefined
  private readonly waiting = new Set<Socket>()
  private readonly open = new Set<Socket>()
  private isOver = false

  constructor(path: string, descriptor: number, options: Pick<ServerOpts, "allowHalfOpen"> = {}) {
    this.path = path
    this.descriptor = descriptor
    this.options = options
  }

  /** Passes each waiting and later connection to `take`, until the scope closes. */
  readonly answer = (take: (conn: Socket) => void): Effect.Effect<void, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.sync(() => {
        this.take = take
        for (const conn of this.waiting) this.pass(conn)
        this.listen()
      }),
      () =>
        Effect.sync(() => {
          if (this.take === take) this.take = undefined
        })
    )

  /** Stops accepting connections because this process is about to end. New connections are left to the next process. */
  readonly leave = Effect.sync(() => {
    this.isOver = true
    this.server?.close()
  })

  /** Stops accepting connections, then waits for a limited time until the current ones are closed. */
  readonly handOver = Effect.gen({ self: this }, function* () {
    yield* this.leave
    if (this.take === undefined) for (const conn of this.waiting) conn.destroy()
    for (let looks = 0; this.open.size > 0 && looks < LOOKS; looks++) yield* Effect.sleep(LOOK)
  })

  /**
   * Tells waiting clients why there is no daemon, and disconnects them. Clients without an answer would try again, and
   * so start the daemon again and again, although another start would not help.
   */
  readonly turnAway = Effect.fnUntraced({ self: this }, function* (why: Why) {
    if (this.isOver && this.server !== undefined) return
    const conns = new Set<Socket>()
    const server = createServer((conn) => {
      conns.add(conn)
      tell(conn, why)
    })
    server.listen({ fd: this.descriptor })
    yield* Effect.sleep(TURNED_AWAY)
    server.close()
    for (const conn of conns) conn.destroy()
  })

  private listen(): void {
    if (this.server !== undefined || this.isOver) return
    this.server = createServer(this.options, (conn) => {
      // pause the connection, so that no data is lost before a handler reads it
      conn.pause()
      conn.on("error", () => {})
      if (this.waiting.size === Limits.connections) return void conn.destroy()
      this.waiting.add(conn)
      this.open.add(conn)
      conn.once("close", () => (this.waiting.delete(conn), this.open.delete(conn)))
      this.pass(conn)
    })
    this.server.listen({ fd: this.descriptor })
  }

  private pass(conn: Socket): void {
    if (this.take === undefined) return
    this.waiting.delete(conn)
    this.take(conn)
  }
}
