/**
 * Rooms: what the connections of a socket may take: how many there are, how long they may be silent, and how
 * much they send by halves. The control socket and the runs' own sockets each have theirs.
 *
 * Guarantees: those that have not sent a line yet take no room from those that have; half lines take no
 * memory beyond a limit; what is hung up on is not read further; of a client that reads no answers no
 * further questions are read, and of one that is to wait none until then. Each run has its bounds, and all have theirs
 * together: a run that floods its socket is hung up on, and takes no room from another run.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import type { Socket } from "node:net"
import { Effect, Latch } from "effect"
import { type Socket as EffectSocket, SocketServer } from "effect/socket"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import { Strangers } from "../../domain/Strangers.ts"
import { FairShare } from "./FairShare.ts"
import { Limits } from "../../board/Limits.ts"

/** ms in which a client sends its first line, and ends each line that it has begun. */
export const LINE_TIME = 5_000
/** ms between two looks at what takes too long. */
const SWEEP = 1_000

/** Until what has come of a connection could be read once. */
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
  /** Returns the owner whose share the connection takes: its run; on the control socket it is the same for all. */
  readonly ownerOf: (conn: Socket) => string
  readonly connections: FairShare<string, Socket>
  /** Bytes of lines that are not whole. */
  readonly halfLines: FairShare<string, Socket>
  /** Connections that have not sent a line yet. If omitted, these count as connections from the start. */
  readonly strangers?: Strangers<Socket>
  /** Pace of an owner. After a burst, lines that come faster wait unread. */
  readonly lines?: { readonly perSecond: number; readonly burst: number }
}

/** Decides which connections stay; hangs up on the others. */
export class ConnectionRooms {
  private readonly bounds: Bounds
  /** Since when each connection is to end a line: its first one, or one that it has begun. */
  private readonly since = new Map<Socket, number>()
  /** By owner: when what it has said would have been said at its pace. */
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

  /** Tells that what had come of it could be read once. */
  settle(conn: Socket): void {
    this.bounds.strangers?.settle(conn)
  }

  /** A part of what it says was read. */
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

  /** ms before more of it is read. */
  wait(conn: Socket, now: number): number {
    const { lines, ownerOf } = this.bounds
    const pace = this.paces.get(ownerOf(conn))
    return lines === undefined || pace === undefined ? 0 : pace - (1000 / lines.perSecond) * lines.burst - now
  }

  /**
   * Hangs up on all that have taken too long. `late`: ms by which this look itself comes too late. The daemon was busy
   * then and read nobody: no client is charged for that time.
   */
  sweep(now: number, late = 0): void {
    for (const [owner, pace] of this.paces) if (pace <= now) this.paces.delete(owner)
    for (const [conn, since] of this.since) {
      if (late > 0) this.since.set(conn, since + late)
      if (since + late <= now - LINE_TIME) this.end([conn])
    }
  }

  /** Something is there that may take too long; else no clock ticks. */
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
   * A stranger that ends a line counts as a connection from then on; one that counts already is the newest again. If
   * there are too many, the one goes that was silent longest, so that whoever asks now is heard, however many follow
   * something.
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

export type Rooms = Pick<ConnectionRooms, keyof ConnectionRooms>

const oldest = (all: number) => new FairShare<string, Socket>({ each: all, all }, "oldest")

/** Rooms of the control socket: clients, strangers, and what they have sent by halves. */
export const controlRooms = (
  limits: { readonly connections: number; readonly strangers: number; readonly halfLines: number } = Limits
): Rooms =>
  new ConnectionRooms({
    ownerOf: () => "",
    connections: oldest(limits.connections),
    halfLines: oldest(limits.halfLines),
    strangers: new Strangers<Socket>(limits.strangers, (conn) => void conn.destroy())
  })

/** Rooms of the runs' own sockets. */
export const runRooms = (runOf: (conn: Socket) => string): Rooms =>
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

/** Until the client has read what it was answered, and its wait is over; or it is gone. */
const ready = (conn: Socket, rooms: Rooms) =>
  Effect.gen(function* () {
    if (conn.writableNeedDrain && !conn.destroyed) yield* next(conn, "drain", "close")
    const wait = rooms.wait(conn, yield* Monotonic.now)
    if (wait > 0 && !conn.destroyed) yield* Effect.raceFirst(Effect.sleep(wait), next(conn, "close"))
  })

/** A socket of which each part that is read is told. */
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

/** Hangs up on what is too much or takes too long; what is hung up on is not read further. */
export const limited = Effect.fnUntraced(function* (server: SocketServer.SocketServer["Service"], rooms: Rooms) {
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
          // every connection of a real server has one
          if (found._tag === "None") return
          const conn = found.value
          // each answer that waits for the client to read listens: as many as there may be calls
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
          // Whatever ends a connection is that connection's own affair.
          yield* Effect.catchCause(Effect.asVoid(handler(heard(socket, ready(conn, rooms), tell))), (cause) =>
            Effect.logDebug("a control connection broke", cause)
          ).pipe(Effect.ensuring(Effect.sync(() => rooms.leave(conn))))
        })
      )
  })
})
