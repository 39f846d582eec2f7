/**
 * Connections that say nothing, by thousands, at each door of a real daemon: hooks and commands have room beside them,
 * and what is sent by halves holds no memory.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { connect, createServer, type NetConnectOpts, Socket } from "node:net"
import { join } from "node:path"
import { PendingConnections } from "../../src/domain/PendingConnections.ts"
import { call } from "../../src/api/rpc/ControlClient.ts"
import { controlRooms, LINE_TIME } from "../../src/api/rpc/ConnectionLimits.ts"
import { Limits } from "../../src/board/Limits.ts"
import * as Sandbox from "../support/Sandbox.ts"
import { long } from "../support/Long.ts"

const FLOOD = 1_300
const HOOKS = 46

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address() as { readonly port: number }
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** The other side of the flood, in a process of its own: each connection that is hung up on comes again. */
const FLOODING = `
const [to, says, count] = JSON.parse(process.argv[1])
const net = require("node:net")
let open = 0
const one = () => {
  const socket = net.connect(to, () => {
    socket.write(says)
    if (++open === count) console.log("all were there")
  })
  socket.on("error", () => {})
  socket.resume().on("close", () => setTimeout(one, 200))
}
for (let n = 0; n < count; n++) one()
`

/** Connections that begin to say something and never end; all of them have been there once. */
const flood = (to: NetConnectOpts, says: string, count = FLOOD) =>
  Effect.acquireRelease(
    Effect.callback<ChildProcess>((resume) => {
      const child = spawn(process.execPath, ["-e", FLOODING, JSON.stringify([to, says, count])], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      child.stdout.once("data", () => resume(Effect.succeed(child)))
    }),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )

const hook = (session_id: string) =>
  JSON.stringify({ session_id, hook_event_name: "UserPromptSubmit", cwd: "/", prompt: "x".repeat(2000) })

/** The status of a hook's answer; 0: none came. */
const sent = (to: { readonly port: number } | { readonly socketPath: string }, token: string, body: string) =>
  Effect.callback<number>((resume) => {
    const outgoing = request(
      {
        ...to,
        host: "127.0.0.1",
        path: "/hooks/claude",
        method: "POST",
        agent: false,
        headers: { authorization: `Bearer ${token}` }
      },
      (response) => response.resume().on("end", () => resume(Effect.succeed(response.statusCode ?? 0)))
    )
    outgoing.on("error", () => resume(Effect.succeed(0)))
    outgoing.end(body)
  })

const daemon = Effect.gen(function* () {
  const port = yield* freePort
  const box = yield* Sandbox.make()
  mkdirSync(join(box.folder, "config", "agentd"), { recursive: true })
  writeFileSync(join(box.folder, "config", "agentd", "config.jsonc"), JSON.stringify({ http: { port } }))
  box.configure({ agents: {} })
  yield* box.up()
  return { box, port, token: readFileSync(join(box.state, "http-hooks.token"), "utf8").trim() }
})

describe("connections that say nothing", () => {
  long.live("starve no hook at the port: nothing, half a header, a body without a token", () =>
    Effect.gen(function* () {
      const { port, token } = yield* daemon
      for (const says of [
        "",
        "POST /hooks/claude HTTP/1.1\r\nhost: 127.0.0",
        "POST /hooks/claude HTTP/1.1\r\ncontent-length: 1000000\r\nhost: 127.0.0.1\r\n\r\n{"
      ]) {
        const starving = Effect.gen(function* () {
          yield* flood({ port, host: "127.0.0.1" }, says)
          const statuses: Array<number> = []
          for (let n = 0; n < HOOKS; n++) statuses.push(yield* sent({ port }, token, hook(`s${n}`)))
          return statuses.filter((status) => status !== 202)
        })
        assert.deepStrictEqual(yield* Effect.scoped(starving), [], says)
      }
    })
  )

  it.live("starve no hook at the unix socket, and no command at the control socket", () =>
    Effect.gen(function* () {
      const { box } = yield* daemon
      const socketPath = join(box.state, "http.sock")
      const control = join(box.state, "control.sock")
      yield* flood({ path: socketPath }, "POST /hooks/claude HTTP/1.1\r\nhost: a")
      yield* flood({ path: control }, '{"_tag":"Request","id":"1","tag":"Sta')
      const statuses: Array<number> = []
      for (let n = 0; n < HOOKS; n++) {
        statuses.push(yield* sent({ socketPath }, "", hook(`s${n}`)))
        yield* call(control, (client) => client.Agents())
      }
      assert.deepStrictEqual(
        statuses.filter((status) => status !== 202),
        []
      )
    })
  )

  long.live("hold no memory with lines that they never end: they are hung up on", () =>
    Effect.gen(function* () {
      const { box } = yield* daemon
      const path = join(box.state, "control.sock")
      const part = Buffer.alloc(1024 * 1024, 0x78)
      const closed = yield* Effect.forEach(
        Array.from({ length: 200 }),
        () =>
          Effect.callback<boolean>((resume) => {
            const socket = connect(path, () => socket.write(part))
            socket.on("error", () => {})
            socket.resume().on("close", () => resume(Effect.succeed(true)))
          }),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(closed, 200)
      assert.strictEqual((yield* box.cli("ps")).code, 0)
    })
  )
})

describe("clients that stay", () => {
  it.live("260 permission requests that nobody answers cut off no other hook", () =>
    Effect.gen(function* () {
      const { box } = yield* daemon
      const socketPath = join(box.state, "http.sock")
      const says = (path: string, body: string) =>
        `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
      const asking = JSON.stringify({
        session_id: "asks",
        hook_event_name: "PermissionRequest",
        cwd: "/",
        tool_name: "Bash",
        tool_input: { command: "ls" }
      })
      assert.strictEqual(yield* sent({ socketPath }, "", hook("asks")), 202)
      yield* flood({ path: socketPath }, says("/hooks/claude/permission", asking), 260)
      yield* Effect.sleep("1 second")
      const statuses: Array<number> = []
      for (let n = 0; n < HOOKS; n++) statuses.push(yield* sent({ socketPath }, "", hook(`s${n}`)))
      assert.deepStrictEqual(
        statuses.filter((status) => status !== 202),
        []
      )
    })
  )

  it.live("more of them than there is room for lock out neither ps nor stop", () =>
    Effect.gen(function* () {
      const { box } = yield* daemon
      yield* flood({ path: join(box.state, "control.sock") }, '{"_tag":"Ping"}\n', Limits.connections + 50)
      for (let n = 0; n < 3; n++) {
        const { code, stderr } = yield* box.cli("ps")
        assert.strictEqual(code, 0, stderr)
      }
      const { code, stderr } = yield* box.cli("stop", "--yes")
      assert.strictEqual(code, 0, stderr)
    })
  )
})

describe("strangers", () => {
  it("who have just come are heard before anyone goes; then the one that was silent longest goes", () => {
    const gone: Array<number> = []
    const strangers = new PendingConnections<number>(2, (one) => void gone.push(one))
    for (const one of [1, 2, 3, 4]) strangers.enter(one)
    assert.deepStrictEqual([gone, strangers.size], [[], 4])
    assert.isTrue(strangers.leave(1))
    assert.isFalse(strangers.leave(1))
    for (const one of [1, 2, 3, 4]) strangers.settle(one)
    assert.deepStrictEqual([gone, strangers.size], [[2], 2])
    strangers.enter(5)
    assert.deepStrictEqual([gone, strangers.size], [[2, 3], 2])
  })
})

describe("half lines", () => {
  it("are counted together, and the oldest are too many or too old", () => {
    const rooms = controlRooms({ ...Limits, halfLines: 10 })
    const comes = (now: number) => {
      const conn = new Socket()
      rooms.enter(conn, now)
      return conn
    }
    const [a, b, c] = [comes(0), comes(0), comes(0)]
    const gone = () => [a, b, c].map((conn) => conn.destroyed)
    rooms.take(c, "hello\n", 0)
    rooms.take(a, "1234", 1)
    rooms.take(b, Buffer.from("123456"), 2)
    rooms.take(a, "5\n", 3)
    rooms.take(b, "7890", 4)
    assert.deepStrictEqual(gone(), [false, false, false], "together they are 10")
    rooms.take(a, "1", 5)
    assert.deepStrictEqual(gone(), [false, true, false], "one is too much: the oldest goes")
    rooms.take(a, "234567890", 6)
    rooms.take(a, "\n12", 7)
    rooms.take(c, Buffer.from("hello\n345678"), 9)
    rooms.take(c, "90", 10)
    rooms.sweep(LINE_TIME + 6)
    assert.deepStrictEqual(gone(), [false, true, false], "what follows the end of a line is counted anew")
    rooms.sweep(LINE_TIME + 8)
    assert.deepStrictEqual(gone(), [true, true, false], "too old: since it was begun")
    rooms.take(c, "1", LINE_TIME + 8)
    assert.isTrue(rooms.isWatching())
    rooms.sweep(LINE_TIME + 9)
    assert.deepStrictEqual([gone(), rooms.isWatching()], [[true, true, true], false])
    assert.isAbove(Limits.halfLines, Limits.lineBytes)
  })

  it("a daemon that was busy charges nobody for the time in which it read nothing", () => {
    const rooms = controlRooms()
    const conn = new Socket()
    rooms.enter(conn, 0)
    // the look that was due at 2 s comes at 9 s
    rooms.sweep(9_000, 7_000)
    assert.isFalse(conn.destroyed, "its line may have come long before")
    rooms.sweep(LINE_TIME + 6_999)
    assert.isFalse(conn.destroyed)
    rooms.sweep(LINE_TIME + 7_000)
    assert.isTrue(conn.destroyed, "its own time is over")
  })
})
