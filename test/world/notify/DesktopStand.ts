/**
 * DesktopStand: a desktop that takes notifications, for one test's scope: behind a real dbus-daemon where there is one,
 * or as a bus that is played. Its bytes of D-Bus are made here, and not by what is tested.
 */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { createConnection, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Shown {
  readonly id: number
  readonly title: string
  readonly body: string
  readonly actions: ReadonlyArray<string>
  readonly urgency: number
}

export interface Desktop {
  readonly address: string
  readonly shown: ReadonlyArray<Shown>
  readonly closed: ReadonlyArray<number>
  /** A person clicks. */
  readonly act: (id: number, key: string) => void
  /** Connections that are open, and those that ever were. */
  readonly sockets: () => { readonly open: number; readonly all: number }
}

/** How a bus that is played treats calls of some names. */
export interface Manners {
  readonly refused?: ReadonlySet<string>
  readonly unanswered?: ReadonlySet<string>
}

type Arg = readonly [type: string, value: unknown]

class Out {
  bytes: Array<number> = []
  pad(to: number) {
    while (this.bytes.length % to !== 0) this.bytes.push(0)
  }
  put(type: string, value: unknown): void {
    if (type === "y") return void this.bytes.push(value as number)
    if (type === "u") {
      this.pad(4)
      const four = Buffer.alloc(4)
      four.writeUInt32LE(value as number)
      return void this.bytes.push(...four)
    }
    if (type === "g") return void this.bytes.push((value as string).length, ...Buffer.from(`${value as string}\0`))
    if (type === "s" || type === "o") {
      this.put("u", Buffer.byteLength(value as string))
      return void this.bytes.push(...Buffer.from(`${value as string}\0`))
    }
    if (type === "as") {
      const inner = new Out()
      for (const one of value as ReadonlyArray<string>) inner.put("s", one)
      this.put("u", inner.bytes.length)
      return void this.bytes.push(...inner.bytes)
    }
    throw new Error(`no ${type}`)
  }
}

/** kind 1: call, 2: return, 4: signal. */
const message = (
  kind: number,
  serial: number,
  fields: ReadonlyArray<readonly [number, Arg]>,
  body: ReadonlyArray<Arg>
) => {
  const content = new Out()
  for (const [type, value] of body) content.put(type, value)
  const list = new Out()
  const signature = body.map(([type]) => type).join("")
  const all = signature === "" ? fields : [...fields, [8, ["g", signature]] as const]
  for (const [code, [type, value]] of all) {
    list.pad(8)
    list.put("y", code)
    list.put("g", type)
    list.put(type, value)
  }
  const head = new Out()
  for (const byte of [0x6c, kind, kind === 1 ? 0 : 1, 1]) head.put("y", byte)
  head.put("u", content.bytes.length)
  head.put("u", serial)
  head.put("u", list.bytes.length)
  head.bytes.push(...list.bytes)
  head.pad(8)
  return Buffer.from([...head.bytes, ...content.bytes])
}

class In {
  at: number
  readonly bytes: Buffer
  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.at = at
  }
  pad(to: number) {
    this.at = Math.ceil(this.at / to) * to
  }
  take(type: string): unknown {
    if (type === "y") return this.bytes[this.at++]
    if (type === "u" || type === "i") {
      this.pad(4)
      this.at += 4
      return type === "u" ? this.bytes.readUInt32LE(this.at - 4) : this.bytes.readInt32LE(this.at - 4)
    }
    if (type === "s" || type === "o" || type === "g") {
      const length = type === "g" ? this.bytes[this.at++]! : (this.take("u") as number)
      this.at += length + 1
      return this.bytes.subarray(this.at - length - 1, this.at - 1).toString()
    }
    if (type === "v") return this.take(this.take("g") as string)
    const all: Array<unknown> = []
    const end = (this.take("u") as number) + (type === "as" ? this.at : Math.ceil(this.at / 8) * 8)
    while (this.at < end) {
      if (type === "as") all.push(this.take("s"))
      else {
        this.pad(8)
        all.push([this.take(type === "a{sv}" ? "s" : "y"), this.take("v")])
      }
    }
    return all
  }
}

interface Heard {
  readonly kind: number
  readonly serial: number
  readonly member: string
  readonly sender: string | undefined
  readonly bytes: Buffer
  readonly body: number
}

const heardIn = (bytes: Buffer): { readonly heard: Heard; readonly length: number } | undefined => {
  if (bytes.length < 16) return undefined
  const start = Math.ceil((16 + bytes.readUInt32LE(12)) / 8) * 8
  const length = start + bytes.readUInt32LE(4)
  if (bytes.length < length) return undefined
  const fields = new Map(new In(bytes, 12).take("a(yv)") as ReadonlyArray<readonly [number, unknown]>)
  const heard = {
    kind: bytes[1]!,
    serial: bytes.readUInt32LE(8),
    member: String(fields.get(3) ?? ""),
    sender: fields.get(7) as string | undefined,
    bytes: bytes.subarray(0, length),
    body: start
  }
  return { heard, length }
}

const PATH: readonly [number, Arg] = [1, ["o", "/org/freedesktop/Notifications"]]
const FROM: readonly [number, Arg] = [2, ["s", "org.freedesktop.Notifications"]]

class Server {
  readonly shown: Array<Shown> = []
  readonly closed: Array<number> = []
  private serial = 100
  private readonly sockets = new Set<Socket>()
  private readonly manners: Manners

  constructor(manners: Manners = {}) {
    this.manners = manners
  }

  readonly act = (id: number, key: string) => {
    const body: ReadonlyArray<Arg> = [
      ["u", id],
      ["s", key]
    ]
    for (const socket of this.sockets)
      socket.write(message(4, ++this.serial, [PATH, FROM, [3, ["s", "ActionInvoked"]]], body))
  }

  /** Messages from a socket on which the greeting is over. */
  hear(socket: Socket, rest: Buffer) {
    this.sockets.add(socket)
    socket.on("close", () => this.sockets.delete(socket))
    let bytes = rest
    const take = () => {
      for (let found = heardIn(bytes); found !== undefined; found = heardIn(bytes)) {
        bytes = bytes.subarray(found.length)
        if (found.heard.kind === 1) this.answer(socket, found.heard)
      }
    }
    socket.on("data", (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      take()
    })
    take()
  }

  private answer(socket: Socket, heard: Heard) {
    const fields: Array<readonly [number, Arg]> = [[5, ["u", heard.serial]]]
    if (heard.sender !== undefined) fields.push([6, ["s", heard.sender]])
    if (this.manners.unanswered?.has(heard.member)) return
    if (this.manners.refused?.has(heard.member)) {
      const error: readonly [number, Arg] = [4, ["s", "org.freedesktop.DBus.Error.Failed"]]
      socket.write(message(3, ++this.serial, [...fields, error], [["s", "not now"]]))
      return
    }
    socket.write(message(2, ++this.serial, fields, this.reply(heard)))
  }

  private reply({ body, bytes, member }: Heard): ReadonlyArray<Arg> {
    const args = new In(bytes, body)
    switch (member) {
      case "Hello":
        return [["s", ":1.7"]]
      case "GetCapabilities":
        return [["as", ["body", "body-markup", "actions"]]]
      case "Notify": {
        const [, , , title, text, actions, hints] = ["s", "u", "s", "s", "s", "as", "a{sv}", "i"].map((type) =>
          args.take(type)
        )
        const { urgency } = Object.fromEntries(hints as ReadonlyArray<readonly [string, unknown]>)
        const id = this.shown.length + 1
        this.shown.push({
          id,
          title: title as string,
          body: text as string,
          actions: actions as ReadonlyArray<string>,
          urgency: urgency as number
        })
        return [["u", id]]
      }
      case "CloseNotification":
        this.closed.push(args.take("u") as number)
        return []
      default:
        return []
    }
  }
}

export const hasBus = existsSync("/usr/bin/dbus-daemon")

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-bus-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const desktopOf = (server: Server, path: string, sockets: Desktop["sockets"]): Desktop => ({
  sockets,
  address: `unix:path=${path}`,
  shown: server.shown,
  closed: server.closed,
  act: server.act
})

/** A bus and a desktop in one, both played. */
export const playing = Effect.fnUntraced(function* (manners: Manners) {
  const path = join(yield* folder, "bus")
  const server = new Server(manners)
  const sockets = new Set<Socket>()
  let all = 0
  const listener = createServer((socket) => {
    sockets.add(socket)
    all++
    socket.on("close", () => sockets.delete(socket))
    let said = Buffer.alloc(0)
    const greet = (chunk: Buffer) => {
      said = Buffer.concat([said, chunk])
      if (said.includes("AUTH EXTERNAL") && !said.includes("BEGIN\r\n")) socket.write("OK 0123\r\n")
      const end = said.indexOf("BEGIN\r\n")
      if (end < 0) return
      socket.off("data", greet)
      server.hear(socket, said.subarray(end + 7))
    }
    socket.on("data", greet)
    socket.on("error", () => {})
  })
  yield* Effect.callback<void>((resume) => void listener.listen(path, () => resume(Effect.void)))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const socket of sockets) socket.destroy()
      listener.close()
    })
  )
  return desktopOf(server, path, () => ({ open: sockets.size, all }))
})

export const played: Effect.Effect<Desktop, never, Scope.Scope> = playing({})

const ended = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill()
  })

/** A desktop behind a real dbus-daemon, which checks every message. */
export const real: Effect.Effect<Desktop, never, Scope.Scope> = Effect.gen(function* () {
  const path = join(yield* folder, "bus")
  yield* Effect.acquireRelease(
    Effect.callback<ChildProcess>((resume) => {
      const args = ["--session", "--nofork", "--nopidfile", "--print-address", `--address=unix:path=${path}`]
      const child = spawn("/usr/bin/dbus-daemon", args, { stdio: ["ignore", "pipe", "ignore"] })
      child.stdout.once("data", () => resume(Effect.succeed(child)))
    }),
    ended
  )
  const server = new Server()
  yield* Effect.callback<void>((resume) => {
    const socket = createConnection({ path })
    const uid = Buffer.from(String(process.getuid?.() ?? 0)).toString("hex")
    const call = (serial: number, member: string, body: ReadonlyArray<Arg>) =>
      message(
        1,
        serial,
        [
          [1, ["o", "/org/freedesktop/DBus"]],
          [2, ["s", "org.freedesktop.DBus"]],
          [3, ["s", member]],
          [6, ["s", "org.freedesktop.DBus"]]
        ],
        body
      )
    socket.write(`\0AUTH EXTERNAL ${uid}\r\n`)
    socket.once("data", () => {
      const name: ReadonlyArray<Arg> = [
        ["s", "org.freedesktop.Notifications"],
        ["u", 0]
      ]
      socket.write("BEGIN\r\n")
      socket.write(Buffer.concat([call(1, "Hello", []), call(2, "RequestName", name)]))
      // the answers, and the news that the name is had
      let seen = Buffer.alloc(0)
      const wait = (chunk: Buffer) => {
        seen = Buffer.concat([seen, chunk])
        if (!seen.includes("NameAcquired\0") || !seen.includes("org.freedesktop.Notifications\0")) return
        socket.off("data", wait)
        server.hear(socket, Buffer.alloc(0))
        resume(Effect.void)
      }
      socket.on("data", wait)
    })
    socket.on("error", () => {})
  })
  // those of a real bus nobody counts
  return desktopOf(server, path, () => ({ open: 0, all: 0 }))
})
