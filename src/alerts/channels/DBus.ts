/**
 * DBus: a connection to the session's bus, for calls and signals.
 *
 * No library and no program is used. On many systems, `notify-send` has no actions and cannot withdraw a notification.
 * `gdbus` belongs to GNOME. Each of these programs would also need a process for every notice.
 *
 * Guarantees: each call ends within its timeout. If a bus closes or sends invalid data, the connection and every call
 * on it end. Received data never uses more memory than one message. If connecting fails or is abandoned, no socket
 * stays open.
 */
import { Effect } from "effect"
import { createConnection, type Socket } from "node:net"
import { SendError } from "../SendError.ts"
import * as DBusMessage from "./DBusMessage.ts"

const WITHIN = "5 seconds"

const away = (message: string): SendError =>
  new SendError({
    message,
    remedy:
      "A desktop is notified only while its session runs and the daemon finds its bus: see bus in docs/notifications.md.",
    class: "transient"
  })

type Answer = (received: DBusMessage.Received | SendError) => void

export class DBus {
  private readonly socket: Socket
  private readonly waiting = new Map<number, Answer>()
  private readonly onSignal: (signal: DBusMessage.Received) => void
  private serial = 0
  private bytes: Buffer = Buffer.alloc(0)

  constructor(socket: Socket, rest: Buffer, onSignal: (signal: DBusMessage.Received) => void) {
    this.socket = socket
    this.onSignal = onSignal
    socket.on("data", (chunk: Buffer) => this.take(chunk))
    socket.on("close", () => this.end("the session's bus was closed"))
    this.take(rest)
  }

  get isOpen(): boolean {
    return !this.socket.destroyed
  }

  end(why: string): void {
    this.socket.destroy()
    for (const answer of this.waiting.values()) answer(away(why))
    this.waiting.clear()
  }

  private take(chunk: Buffer): void {
    this.bytes = Buffer.concat([this.bytes, chunk])
    try {
      for (let found = DBusMessage.decode(this.bytes); found !== undefined; found = DBusMessage.decode(this.bytes)) {
        this.bytes = this.bytes.subarray(found.length)
        this.hear(found.message)
      }
    } catch {
      this.end("the session's bus does not speak D-Bus")
    }
  }

  private hear(message: DBusMessage.Received): void {
    if (message.kind === "signal") return this.onSignal(message)
    const answer = this.waiting.get(message.replyTo)
    this.waiting.delete(message.replyTo)
    answer?.(message.kind === "error" ? away(`the desktop refuses: ${String(message.body[0] ?? "")}`) : message)
  }

  call(call: DBusMessage.Call): Effect.Effect<DBusMessage.Received, SendError> {
    return Effect.callback<DBusMessage.Received, SendError>((resume) => {
      if (!this.isOpen) return resume(Effect.fail(away("the session's bus was closed")))
      const serial = ++this.serial
      this.waiting.set(serial, (answer) =>
        resume(answer instanceof SendError ? Effect.fail(answer) : Effect.succeed(answer))
      )
      this.socket.write(DBusMessage.encode(call, serial))
      return Effect.sync(() => this.waiting.delete(serial))
    }).pipe(
      Effect.timeoutOrElse({ duration: WITHIN, orElse: () => Effect.fail(away("the desktop did not answer in time")) })
    )
  }
}

const BUS = {
  destination: "org.freedesktop.DBus",
  path: "/org/freedesktop/DBus",
  interface: "org.freedesktop.DBus"
} as const

/** Authenticates as the daemon's user; returns the bytes that the bus sent after its answer. */
const greeted = (socket: Socket): Effect.Effect<Buffer, SendError> =>
  Effect.callback((resume) => {
    const uid = Buffer.from(String(process.getuid?.() ?? 0)).toString("hex")
    let said = Buffer.alloc(0)
    const failed = (why: string) => resume(Effect.fail(away(why)))
    const closed = () => failed("the session's bus rejects the daemon")
    const heard = (chunk: Buffer) => {
      said = Buffer.concat([said, chunk])
      const end = said.indexOf("\r\n")
      if (end < 0 && said.length < 4_096) return
      if (!said.subarray(0, end).toString().startsWith("OK ")) return closed()
      socket.off("data", heard)
      socket.off("close", closed)
      socket.write("BEGIN\r\n")
      resume(Effect.succeed(said.subarray(end + 2)))
    }
    socket.on("error", (error: NodeJS.ErrnoException) => failed(`there is no session bus: ${error.code ?? "?"}`))
    socket.on("close", closed)
    socket.on("data", heard)
    socket.write(`\0AUTH EXTERNAL ${uid}\r\n`)
  })

const ready = Effect.fnUntraced(function* (socket: Socket, onSignal: (signal: DBusMessage.Received) => void) {
  const rest = yield* Effect.timeoutOrElse(greeted(socket), {
    duration: WITHIN,
    orElse: () => Effect.fail(away("the session's bus did not answer in time"))
  })
  const bus = new DBus(socket, rest, onSignal)
  yield* bus.call({ ...BUS, member: "Hello", body: [] })
  return bus
})

/** Connects, and runs `prepare` before the connection is used. If that succeeds, the caller must end the connection. */
export const connect = <A>(
  address: string,
  onSignal: (signal: DBusMessage.Received) => void,
  prepare: (bus: DBus) => Effect.Effect<A, SendError>
): Effect.Effect<A, SendError> => {
  const path = DBusMessage.socketOf(address)
  if (path === undefined)
    return Effect.fail(away(`the bus ${address} cannot be reached: its address does not begin with unix:path=`))
  return Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const socket = createConnection({ path })
      return restore(Effect.flatMap(ready(socket, onSignal), prepare)).pipe(
        Effect.onError(() => Effect.sync(() => socket.destroy()))
      )
    })
  )
}

export const listen = (bus: DBus, name: string) =>
  bus.call({ ...BUS, member: "AddMatch", body: [{ type: "s", value: `type='signal',interface='${name}'` }] })
