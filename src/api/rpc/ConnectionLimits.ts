/**
 * ConnectionLimits: limits for the connections of a socket: how many there are, how long they may be silent, and how many bytes of
 * incomplete lines they send. The control socket and the runs' own sockets each have their own limits.
 *
 * Guarantees: connections that have not sent a line yet take no room from those that have. Incomplete lines use a
 * bounded amount of memory. A connection that was closed is not read further. No further requests are read from a
 * client that reads no answers, or that is told to wait. Each run has its limits, and all runs together have theirs. A
 * run that floods its socket is disconnected, and takes no room from another run.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import type { Socket } from "node:net"
import { Effect, Latch } from "effect"
import { type Socket as EffectSocket, SocketServer } from "effect/socket"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import { PendingConnections } from "../../domain/PendingConnections.ts"
import { FairShare } from "./FairShare.ts"
import { Limits } from "../../board/Limits.ts"

/** ms within which a client must send its first line, and complete each line that it has begun. */
export const LINE_TIME = 5_000
/** Interval of the check for connections that take too long, in ms. */
const SWEEP = 1_000

/** Waits until everything that has arrived on a connection was read once. */
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
  /** The owner whose share the connection uses: its run; on the control socket one owner for all connections. */
  readonly ownerOf: (conn: Socket) => string
  readonly connections: FairShare<string, Socket>
  /** Number of bytes of incomplete lines, by connection. */
  readonly halfLines: FairShare<string, Socket>
  /**
   * Connections that have not sent a line yet. If omitted, every connection counts as a normal connection from the
   * start.
   */
  readonly strangers?: PendingConnections<Socket>
  /** Maximum pace of an owner's lines. After a burst, lines that come faster wait unread. */
  readonly lines?: { readonly perSecond: number; readonly burst: number }
}

/** Decides which connections stay, and closes the others. */
export class ConnectionRooms {
  private readonly bounds: Bounds
  /** Time since which each connection must complete a line: its first one, or one that it has begun. */
  private readonly since = new Map<Socket, number>()
  /** By owner: the time at which the owner's lines so far would have been sent at the allowed pace. */
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

  /** Records that everything that had arrived was read once. */
  settle(conn: Socket): void {
    this.bounds.strangers?.settle(conn)
  }

  /** Records that a part of the connection's data was read. */
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

  /** Time in ms until more data of the connection may be read. */
  wait(conn: Socket, now: number): number {
    const { lines, ownerOf } = this.bounds
    const pace = this.paces.get(ownerOf(conn))
    return lines === undefined || pace === undefined ? 0 : pace - (1000 / lines.perSecond) * lines.burst - now
  }

  /** Closes all connections that have taken too long. */
  sweep(now: number, late = 0): void {
    for (const [owner, pace] of this.paces) if (pace <= now) this.paces.delete(owner)
    for (const [conn, since] of this.since) {
      if (late > 0) this.since.set(conn, since + late)
      if (since + late <= now - LINE_TIME) this.end([conn])
    }
  }

  /** Whether any connection could exceed its time; otherwise no timer runs. */
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
   * A stranger that completes a line counts as a connection from then on; an existing connection becomes the newest
   * again. If there are too many, the one that was silent longest is closed. So an active client is served, however
   * many only follow a stream.
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

/** Waits until the client has read its answers and its waiting time is over, or until the client has disconnected. */
const ready = (conn: Socket, rooms: ConnectionLimits) =>
  Effect.gen(function* () {
    if (conn.writableNeedDrain && !conn.destroyed) yield* next(conn, "drain", "close")
    const wait = rooms.wait(conn, yield* Monotonic.now)
    if (wait > 0 && !conn.destroyed) yield* Effect.raceFirst(Effect.sleep(wait), next(conn, "close"))
  })

/** A socket that reports each part that is read. */
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

/** Applies the limits to a server: connections that send too much or take too long are closed, and not read further. */
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
          // every connection of a real server has a NetSocket
          if (found._tag === "None") return
          const conn = found.value
          // each answer that waits for the client to read it adds a listener: up to the number of calls
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
          // an error of a connection concerns only that connection
          yield* Effect.catchCause(Effect.asVoid(handler(heard(socket, ready(conn, rooms), tell))), (cause) =>
            Effect.logDebug("a control connection broke", cause)
          ).pipe(Effect.ensuring(Effect.sync(() => rooms.leave(conn))))
        })
      )
  })
})
