/**
 * Rooms: what the connections of a socket may take: how many there are, how long they may be silent, and how
 * much they send by halves.
 *
 * Guarantees: those that have not sent a line yet take no room from those that have; half lines take no
 * memory beyond a limit; what is hung up on is not read further; of a client that reads no answers no
 * further questions are read, and of one that is to wait none until then.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import type { Socket } from "node:net"
import { Effect, Latch } from "effect"
import { type Socket as EffectSocket, SocketServer } from "effect/socket"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import { Strangers } from "../../domain/Strangers.ts"
import { HalfLines } from "./HalfLines.ts"
import { Limits } from "../../board/Limits.ts"

/** Decides which connections stay; hangs up on the others. */
export interface Rooms {
  readonly enter: (conn: Socket, now: number) => void
  /** Tells that what had come of it could be read once. */
  readonly settle: (conn: Socket) => void
  /** A part of what it says was read. */
  readonly take: (conn: Socket, part: Uint8Array | string, now: number) => void
  readonly leave: (conn: Socket) => void
  /** ms before more of it is read. */
  readonly wait: (conn: Socket, now: number) => number
  /** Hangs up on all that have taken too long. */
  readonly sweep: (now: number) => void
  /** Something is there that may take too long; else no clock ticks. */
  readonly isWatching: () => boolean
}

/** ms in which a client sends its first line, and ends each line that it has begun. */
export const LINE_TIME = 5_000
const SWEEP = "1 second"

/** Until what has come of a connection could be read once. */
const readOnce = Effect.callback<void>((resume) => {
  const waiting = setImmediate(() => setImmediate(() => resume(Effect.void)))
  return Effect.sync(() => clearImmediate(waiting))
})

/** Rooms of the control socket: clients, strangers, and what they have sent by halves. */
export class ControlRooms implements Rooms {
  private readonly strangers = new Strangers<Socket>(Limits.strangers, (conn) => void conn.destroy())
  private readonly since = new Map<Socket, number>()
  private readonly halves = new HalfLines<Socket>(Limits.halfLines)
  /** Clients: they have sent a line; the one that was silent longest first. */
  private readonly clients = new Set<Socket>()

  enter(conn: Socket, now: number): void {
    this.since.set(conn, now)
    this.strangers.enter(conn)
  }

  settle(conn: Socket): void {
    this.strangers.settle(conn)
  }

  /**
   * A part that was read. Who ends a line is a client from then on; where they are too many, the one goes that was
   * silent longest, so that whoever asks now is heard, however many follow something.
   */
  take(conn: Socket, part: Uint8Array | string, now: number): void {
    const isLine = this.halves.take(conn, part, now)
    if (isLine && this.strangers.leave(conn)) {
      this.since.delete(conn)
      this.clients.add(conn)
      conn.once("close", () => void this.clients.delete(conn))
    } else if (isLine && this.clients.delete(conn)) this.clients.add(conn)
    for (const oldest of this.clients) {
      if (this.clients.size <= Limits.connections) break
      this.clients.delete(oldest)
      this.end(oldest)
    }
    for (const one of this.halves.overdue(Number.NEGATIVE_INFINITY)) this.end(one)
  }

  leave(conn: Socket): void {
    this.strangers.leave(conn)
    this.since.delete(conn)
    this.clients.delete(conn)
    this.halves.forget(conn)
  }

  wait(): number {
    return 0
  }

  sweep(now: number): void {
    for (const conn of this.halves.overdue(now - LINE_TIME)) this.end(conn)
    for (const [conn, since] of this.since) if (since <= now - LINE_TIME) this.end(conn)
  }

  isWatching(): boolean {
    return this.since.size > 0 || this.halves.size > 0
  }

  private end(conn: Socket): void {
    this.leave(conn)
    conn.destroy()
  }
}

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
    yield* Effect.sleep(SWEEP)
    rooms.sweep(yield* Monotonic.now)
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
