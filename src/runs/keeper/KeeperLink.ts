/**
 * KeeperLink: a connection to one keeper.
 *
 * Guarantees: A line that is too long, or is not JSON, ends the connection. Every order gets an answer: the keeper's
 * answer, the error "gone" if the connection has ended, or "late" after a timeout.
 */
import { Deferred, type Duration, Effect } from "effect"
import * as net from "node:net"
import { attempt } from "../../config/Attempt.ts"
import { MessageLines } from "../../config/LineSplitter.ts"
import type { Order, Reply, Tale } from "./Protocol.ts"

/** Timeout for an answer. A keeper that takes longer is treated as hung. */
const LIMIT = "5 seconds"
/** Maximum length of a line, UTF-16 code units. The keeper has the same limit for orders. */
const MAX_LINE = 64 * 1024 * 1024

export class KeeperLink {
  readonly gone = Deferred.makeUnsafe<void>()
  /**
   * Called when the connection ends, before pending orders are answered. New orders can then wait for the next
   * connection.
   */
  ended: () => void = () => {}
  private readonly socket: net.Socket
  private readonly waiting = new Map<number, Deferred.Deferred<Reply>>()
  private readonly lines = new MessageLines(MAX_LINE)
  private last = 0

  constructor(socket: net.Socket, heard: (tale: Tale) => void) {
    this.socket = socket
    socket.on("data", (chunk: Buffer) => this.hear(chunk, heard))
    socket.on("error", () => socket.destroy())
    socket.on("close", () => {
      this.ended()
      for (const [re, one] of this.waiting) Deferred.doneUnsafe(one, Effect.succeed({ re, error: "gone" }))
      this.waiting.clear()
      Deferred.doneUnsafe(this.gone, Effect.void)
    })
  }

  private hear(chunk: Buffer, heard: (tale: Tale) => void): void {
    for (const line of this.lines.push(chunk)) {
      const message = line === undefined ? undefined : attempt((): Reply | Tale => JSON.parse(line))
      if (message === undefined) return void this.socket.destroy()
      if ("tell" in message) heard(message)
      else {
        const one = this.waiting.get(message.re)
        this.waiting.delete(message.re)
        if (one !== undefined) Deferred.doneUnsafe(one, Effect.succeed(message))
      }
    }
  }

  private send(order: Order): number {
    const id = ++this.last
    this.socket.write(`${JSON.stringify({ id, ...order })}\n`)
    return id
  }

  /**
   * Sends an order and waits for the answer. `limit`: timeout; null if the answer does not depend on the keeper alone.
   */
  ask(order: Order, limit: Duration.Input | null = LIMIT): Effect.Effect<Reply> {
    return Effect.suspend(() => {
      if (this.socket.destroyed) return Effect.succeed<Reply>({ re: 0, error: "gone" })
      const answered = Deferred.makeUnsafe<Reply>()
      const re = this.send(order)
      this.waiting.set(re, answered)
      const answer = Deferred.await(answered)
      const late = Effect.sync((): Reply => {
        this.waiting.delete(re)
        return { re, error: "late" }
      })
      return limit === null ? answer : Effect.timeoutOrElse(answer, { duration: limit, orElse: () => late })
    })
  }

  /** Sends an order without waiting for an answer. */
  tell(order: Order): void {
    if (!this.socket.destroyed) this.send(order)
  }

  /** Closes the connection when everything that was sent before has been written. */
  close(): void {
    this.socket.destroySoon()
  }
}

/** Connects to a keeper. Fails with the system's error code if no process is listening. */
export const connect = (file: string, heard: (tale: Tale) => void): Effect.Effect<KeeperLink, string> =>
  Effect.callback((resume) => {
    const socket = net.connect(file)
    socket.once("connect", () => {
      socket.removeAllListeners("error")
      resume(Effect.succeed(new KeeperLink(socket, heard)))
    })
    socket.once("error", ({ code = "" }: NodeJS.ErrnoException) => resume(Effect.fail(code)))
    return Effect.sync(() => void socket.destroy())
  })
