/**
 * ConnectionLimits: limits the number of a socket's connections, the time that a client may take for a line, and the
 * number of bytes in incomplete lines. The control socket and the runs' own sockets have different limits.
 *
 * Guarantees: connections that have not sent a line yet take no slots from those that have. Incomplete lines use a
 * bounded amount of memory. After a connection has been closed, nothing more is read from it. No more requests are read
 * from a client that does not read its answers, or that sends too fast. Each run has its own limits, and so do all runs
 * together. A run that floods its socket is disconnected, and takes nothing from other runs.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import type { Socket } from "node:net"
import { Effect, Latch } from "effect"
import { type Socket as EffectSocket, SocketServer } from "effect/socket"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import { PendingConnections } from "../../domain/PendingConnections.ts"
import { FairShare } from "./FairShare.ts"
import { Limits } from "../../board/Limits.ts"

/** Time in ms within which a client must send its first line, and complete each line that it has begun. */
export const LINE_TIME = 5_000
/** Interval at which connections are checked for their time limits, in ms. */
const SWEEP = 1_000

/** Waits until all data that had already arrived on a connection has been read. */
const readOnce = Effect.callback<void>((resume) => {
  const waiting = setImmediate(() => setImmediate(() => resume(Effect.void)))
  return Effect.sync(() => clearImmediate(waiting))
})

const linesIn = (part: Uint8Array | string): number => {
  const find = (from: number) => (typeof part === "string" ? part.indexOf("\n", from) : part.indexOf(0x0a, from))
  let count = 0
  for (let at = find(0); at >= 0; at = find(at + 1)) count++
  return count
}

interface Bounds {
  /**
   * The owner whose limits apply to a connection: its run. On the control socket all connections have the same owner.
   */
  readonly ownerOf: (conn: Socket) => string
  readonly connections: FairShare<string, Socket>
  /** Number of bytes in incomplete lines, by owner and connection. */
  readonly halfLines: FairShare<string, Socket>
  /**
   * Connections that have not sent a line yet. If omitted, every new connection counts as a normal connection at once.
   */
  readonly strangers?: PendingConnections<Socket>
  /** Maximum rate of an owner's lines. After a burst, lines above this rate are left unread for a while. */
  readonly lines?: { readonly perSecond: number; readonly burst: number }
}

/** Decides which connections may stay open, and closes the others. */
export class ConnectionRooms {
  private readonly bounds: Bounds
  /**
   * For each connection: the time since which the client has owed a complete line, the first one or one that it has
   * begun.
   */
  private readonly since = new Map<Socket, number>()
  /** For each owner: the time by which the owner's lines so far would have been sent at the allowed rate. */
  private readonly paces = new Map<string, number>()

  constructor(bounds: Bounds) {
    this.bounds = bounds
  }

  enter(conn: Socket, now: number): void {
    const { connections, ownerOf, strangers } = this.bounds
    this.since.set(conn, now)
    if (strangers === undefined) this.end(connections.hold(ownerOf(conn), conn, 1))
    else strangers.enter(conn)
  }

  /** Records that all data that had already arrived on a connection has been read. */
  settle(conn: Socket): void {
    this.bounds.strangers?.settle(conn)
  }

  /** Records a piece of data that has been read from a connection. */
  take(conn: Socket, part: Uint8Array | string, now: number): void {
    const { halfLines, ownerOf } = this.bounds
    const owner = ownerOf(conn)
    const end = typeof part === "string" ? part.lastIndexOf("\n") : part.lastIndexOf(0x0a)
    if (end >= 0) {
      halfLines.drop(owner, conn)
      this.since.delete(conn)
      this.pace(owner, part, now)
      this.heard(owner, conn)
    }
    const rest = part.length - end - 1
    if (rest === 0) return
    if (!this.since.has(conn)) this.since.set(conn, now)
    this.end(halfLines.hold(owner, conn, halfLines.of(owner, conn) + rest))
  }

  leave(conn: Socket): void {
    const { connections, halfLines, ownerOf, strangers } = this.bounds
    this.since.delete(conn)
    strangers?.leave(conn)
    connections.drop(ownerOf(conn), conn)
    halfLines.drop(ownerOf(conn), conn)
  }

  /** Time in ms until more data may be read from the connection; not positive if more may be read now. */
  wait(conn: Socket, now: number): number {
    const { lines, ownerOf } = this.bounds
    const pace = this.paces.get(ownerOf(conn))
    return lines === undefined || pace === undefined ? 0 : pace - (1000 / lines.perSecond) * lines.burst - now
  }

  /**
   * Closes all connections that have exceeded their time limit. `late`: time in ms by which this check is late; the
   * limits are extended by it.
   */
  sweep(now: number, late = 0): void {
    for (const [owner, pace] of this.paces) if (pace <= now) this.paces.delete(owner)
    for (const [conn, since] of this.since) {
      if (late > 0) this.since.set(conn, since + late)
      if (since + late <= now - LINE_TIME) this.end([conn])
    }
  }

  /** True if any connection has a running time limit, or any owner must wait. Otherwise no timer runs. */
  isWatching(): boolean {
    return this.paces.size > 0 || this.since.size > 0
  }

  private pace(owner: string, part: Uint8Array | string, now: number): void {
    const { lines } = this.bounds
    if (lines === undefined) return
    const cost = (linesIn(part) * 1000) / lines.perSecond
    this.paces.set(owner, Math.max(this.paces.get(owner) ?? 0, now) + cost)
  }

  /**
   * Called when a connection has completed a line. A pending connection becomes a normal one; a normal one becomes the
   * most recently active. If there are too many, the one that has been silent longest is closed. So active clients are
   * served, however many others only follow a stream.
   */
  private heard(owner: string, conn: Socket): void {
    const { connections, strangers } = this.bounds
    if (strangers === undefined) return
    const isNew = strangers.leave(conn)
    if (isNew) conn.once("close", () => void connections.drop(owner, conn))
    if (isNew || connections.drop(owner, conn)) this.end(connections.hold(owner, conn, 1))
  }

  private end(gone: ReadonlyArray<Socket>): void {
    for (const conn of gone) {
      this.leave(conn)
      conn.destroy()
    }
  }
}

export type ConnectionLimits = Pick<ConnectionRooms, keyof ConnectionRooms>

const oldest = (all: number) => new FairShare<string, Socket>({ each: all, all }, "oldest")

export const controlRooms = (
  limits: { readonly connections: number; readonly strangers: number; readonly halfLines: number } = Limits
): ConnectionLimits =>
  new ConnectionRooms({
    ownerOf: () => "",
    connections: oldest(limits.connections),
    halfLines: oldest(limits.halfLines),
    strangers: new PendingConnections<Socket>(limits.strangers, (conn) => void conn.destroy())
  })

export const runRooms = (runOf: (conn: Socket) => string): ConnectionLimits =>
  new ConnectionRooms({
    ownerOf: runOf,
    connections: new FairShare<string, Socket>(Limits.runs.connections, "newest"),
    halfLines: new FairShare<string, Socket>(Limits.runs.halfLines, "newest"),
    lines: Limits.runs.lines
  })

const next = (conn: Socket, ...events: ReadonlyArray<"close" | "drain">) =>
  Effect.callback<void>((resume) => {
    const done = () => resume(Effect.void)
    for (const event of events) conn.once(event, done)
    return Effect.sync(() => {
      for (const event of events) conn.off(event, done)
    })
  })

/** Waits until the client has read its answers and may send again, or until it has disconnected. */
const ready = (conn: Socket, rooms: ConnectionLimits) =>
  Effect.gen(function* () {
    if (conn.writableNeedDrain && !conn.destroyed) yield* next(conn, "drain", "close")
    const wait = rooms.wait(conn, yield* Monotonic.now)
    if (wait > 0 && !conn.destroyed) yield* Effect.raceFirst(Effect.sleep(wait), next(conn, "close"))
  })

/** Wraps a socket, so that `tell` is called with each piece of data that is read. */
const heard = (
  socket: EffectSocket.Socket,
  before: Effect.Effect<void>,
  tell: (part: Uint8Array | string) => Effect.Effect<void>
) => ({
  ...socket,
  reader: Effect.map(socket.reader, (reader) => ({
    ...reader,
    pull: Effect.andThen(
      before,
      Effect.tap(reader.pull, (parts) => Effect.forEach(parts, tell, { discard: true }))
    )
  }))
})

/** Applies the limits to a server. Connections that send too much or take too long are closed. */
export const limited = Effect.fnUntraced(function* (
  server: SocketServer.SocketServer["Service"],
  rooms: ConnectionLimits
) {
  const watching = Latch.makeUnsafe(false)
  const look = () => void (rooms.isWatching() ? watching.openUnsafe() : watching.closeUnsafe())
  const sweep = Effect.gen(function* () {
    yield* watching.await
    const before = yield* Monotonic.now
    yield* Effect.sleep(SWEEP)
    const now = yield* Monotonic.now
    rooms.sweep(now, Math.max(0, now - before - SWEEP))
    look()
  })
  look()
  yield* Effect.forkScoped(Effect.forever(sweep))
  return SocketServer.SocketServer.of({
    address: server.address,
    run: (handler) =>
      server.run((socket) =>
        Effect.gen(function* () {
          const found = yield* Effect.serviceOption(NodeSocket.NetSocket)
          // every connection of a real server has a NetSocket; without one there is nothing to serve
          if (found._tag === "None") return
          const conn = found.value
          // each answer that waits until the client reads adds a listener; there can be as many as calls
          conn.setMaxListeners(2 * Limits.calls)
          rooms.enter(conn, yield* Monotonic.now)
          look()
          yield* Effect.forkChild(
            Effect.andThen(
              readOnce,
              Effect.sync(() => rooms.settle(conn))
            )
          )
          const tell = (part: Uint8Array | string) =>
            Effect.map(Monotonic.now, (now) => {
              rooms.take(conn, part, now)
              look()
            })
          // an error in a connection concerns only that connection
          yield* Effect.catchCause(Effect.asVoid(handler(heard(socket, ready(conn, rooms), tell))), (cause) =>
            Effect.logDebug("a control connection broke", cause)
          ).pipe(Effect.ensuring(Effect.sync(() => rooms.leave(conn))))
        })
      )
  })
})
