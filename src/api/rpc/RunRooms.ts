/**
 * RunRooms: what the connections of the runs' own sockets may take.
 *
 * Guarantees: each run has its bounds, and all have theirs together (FairShare): a run that floods its socket
 * is hung up on, and takes no room from another run; nor does any of them from the control socket, whose
 * rooms are its own; what a run says faster than its pace waits unread. A connection that says nothing, or ends no
 * line, goes after its time.
 */
import type { Socket } from "node:net"
import { FairShare } from "./FairShare.ts"
import { HalfLines } from "./HalfLines.ts"
import { Limits } from "../../board/Limits.ts"
import { LINE_TIME, type Rooms } from "./Rooms.ts"

const LINE = 1000 / Limits.runs.lines.perSecond
const BURST = LINE * Limits.runs.lines.burst

const linesIn = (part: Uint8Array | string): number => {
  const find = (from: number) => (typeof part === "string" ? part.indexOf("\n", from) : part.indexOf(0x0a, from))
  let count = 0
  for (let at = find(0); at >= 0; at = find(at + 1)) count++
  return count
}

export class RunRooms implements Rooms {
  private readonly runOf: (conn: Socket) => string
  private readonly connections = new FairShare<string, Socket>(Limits.runs.connections)
  private readonly bytes = new FairShare<string, Socket>(Limits.runs.halfLines)
  private readonly halves = new HalfLines<Socket>(Number.POSITIVE_INFINITY)
  /** By run: when what it has said would have been said at its pace. */
  private readonly paces = new Map<string, number>()
  /** Since when they say nothing. */
  private readonly silent = new Map<Socket, number>()

  constructor(runOf: (conn: Socket) => string) {
    this.runOf = runOf
  }

  enter(conn: Socket, now: number): void {
    this.silent.set(conn, now)
    for (const one of this.connections.hold(this.runOf(conn), conn, 1)) this.end(one)
  }

  settle(): void {}

  take(conn: Socket, part: Uint8Array | string, now: number): void {
    if (this.halves.take(conn, part, now)) this.silent.delete(conn)
    const run = this.runOf(conn)
    const lines = linesIn(part)
    if (lines > 0) this.paces.set(run, Math.max(this.paces.get(run) ?? 0, now) + lines * LINE)
    const size = this.halves.of(conn)
    if (size === 0) return this.bytes.drop(run, conn)
    for (const one of this.bytes.hold(run, conn, size)) this.end(one)
  }

  leave(conn: Socket): void {
    const run = this.runOf(conn)
    this.silent.delete(conn)
    this.halves.forget(conn)
    this.bytes.drop(run, conn)
    this.connections.drop(run, conn)
  }

  wait(conn: Socket, now: number): number {
    return (this.paces.get(this.runOf(conn)) ?? 0) - BURST - now
  }

  sweep(now: number): void {
    for (const [run, pace] of this.paces) if (pace <= now) this.paces.delete(run)
    for (const conn of this.halves.overdue(now - LINE_TIME)) this.end(conn)
    for (const [conn, since] of this.silent) if (since <= now - LINE_TIME) this.end(conn)
  }

  isWatching(): boolean {
    return this.paces.size > 0 || this.halves.size > 0 || this.silent.size > 0
  }

  private end(conn: Socket): void {
    this.leave(conn)
    conn.destroy()
  }
}
