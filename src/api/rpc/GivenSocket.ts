/**
 * GivenSocket: a socket that somebody else listens on, and has handed over: systemd. It stays with that one while this
 * process comes and goes, so that nobody who connects meanwhile is refused.
 *
 * Guarantees: whoever answers may come and go; a connection that comes meanwhile waits for the next, up
 * to a limit. Once it is handed over, who connects is left to the process that is started next.
 */
import { createServer, type Server, type ServerOpts, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { Limits } from "../../board/Limits.ts"

/** Most answers take some milliseconds; who follows something stays, and is not waited for long. */
const LOOK = "20 millis"
const LOOKS = 50
/** Time enough for all that had come. */
const TURNED_AWAY = "200 millis"
/** Of an introduction. */
const LONGEST = 4_096

/** Why no daemon can be started. */
export interface Why {
  readonly message: string
  readonly remedy: string
}

/** Pure. The answer to a connection's first line, which introduces a client; others are told nothing. */
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
  let said = ""
  conn.on("error", () => {})
  conn.setEncoding("utf8").on("data", (text: string) => {
    said += text
    const end = said.indexOf("\n")
    if (end < 0 && said.length <= LONGEST) return
    conn.removeAllListeners("data").resume()
    conn.end(end < 0 ? "" : refusalOf(said.slice(0, end), why))
  })
}

export class GivenSocket {
  /** The path, or the address, that it is bound to. */
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

  /** Hands over each connection that has come or comes, for the length of the scope. */
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

  /** The process is to end: who connects from now on is left to the next. */
  readonly leave = Effect.sync(() => {
    this.isOver = true
    this.server?.close()
  })

  /** The same. Returns when who has connected has been answered and is gone, or some time has passed. */
  readonly handOver = Effect.gen({ self: this }, function* () {
    yield* this.leave
    if (this.take === undefined) for (const conn of this.waiting) conn.destroy()
    for (let looks = 0; this.open.size > 0 && looks < LOOKS; looks++) yield* Effect.sleep(LOOK)
  })

  /**
   * Tells who waits why there is no daemon, and hangs up: no start helps them. Who heard nothing would ask again, and
   * be waited for with one start after the other.
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
      // nothing of it is lost before its reader is there
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
