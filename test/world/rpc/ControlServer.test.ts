import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Queue, Schedule, Stream } from "effect"
import { mkdtempSync, statSync } from "node:fs"
import * as Net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { call } from "../../../src/api/rpc/ControlClient.ts"
import { Limits } from "../../../src/board/Limits.ts"
import { agentInfo, callInfo, draft, makeWorld, serve, T0 } from "./World.ts"

const me = { by: "ada", config: null }
const everything = { follow: false, caller: me }

/** Until it holds; the test's own time limit is the deadline. */
const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(holds))))

/** A raw connection, for what a real client would never send. */
const raw = (socket: string) =>
  Effect.acquireRelease(
    Effect.callback<Net.Socket, Error>((resume) => {
      const conn = Net.createConnection(socket, () => resume(Effect.succeed(conn)))
      conn.on("error", (error) => resume(Effect.fail(error)))
    }),
    (conn) => Effect.sync(() => conn.destroy())
  )

const answers = (socket: string) =>
  Effect.map(
    call(socket, (client) => client.Agents()),
    (agents) => agents.length
  )

const request = (tag: string, payload: unknown, id = "1") =>
  `${JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] })}\n`

it.live("the socket is for its owner alone", () =>
  Effect.gen(function* () {
    const { socket } = yield* serve(makeWorld())
    expect(statSync(socket).mode & 0o777).toBe(0o600)
  })
)

it.live("status counts the agents by state and says which rune each count rests on", () =>
  Effect.gen(function* () {
    const world = makeWorld({
      agents: [
        agentInfo(),
        agentInfo({ agent: "b", restsOn: 9 }),
        agentInfo({ agent: "c", state: "Stopped", restsOn: 4 })
      ]
    })
    const { socket } = yield* serve(world)
    const status = yield* call(socket, (client) => client.Status())
    expect(status.states).toEqual([
      { state: "Running", agents: 2, restsOn: 9 },
      { state: "Stopped", agents: 1, restsOn: 4 }
    ])
    expect(status.daemon.socket).toBe(socket)
    expect(status.uptime).toBeGreaterThan(0)
  })
)

it.live("a command reaches the fleet with its caller, and its reply comes back", () =>
  Effect.gen(function* () {
    const world = makeWorld()
    const { socket } = yield* serve(world)
    const done = yield* call(socket, (client) =>
      client.Send({ name: "web/builder", text: "héllo\n", how: "urgent", caller: me })
    )
    expect(done.message).toContain("send web/builder")
    expect(world.commands).toEqual([["send", "web/builder", { text: "héllo\n", how: "urgent", by: "ada" }]])
  })
)

it.live("a refused command fails typed, with its remedy", () =>
  Effect.gen(function* () {
    const { socket } = yield* serve(makeWorld())
    const error = yield* call(socket, (client) => client.Stop({ name: "nobody", caller: me })).pipe(Effect.flip)
    expect(error).toMatchObject({ _tag: "CommandRefused", remedy: "See which there are: agentd ps" })
  })
)

it.live("a text of 256 KiB is taken whole, one byte more is refused by name with a remedy", () =>
  Effect.gen(function* () {
    const world = makeWorld()
    const { socket } = yield* serve(world)
    // A control character is six bytes of JSON: the longest spelling must fit in a line.
    const longest = "\u0001".repeat(Limits.textBytes)
    yield* call(socket, (client) => client.Send({ name: "builder", text: longest, how: "queue", caller: me }))
    expect(world.commands).toHaveLength(1)
    const error = yield* call(socket, (client) =>
      client.Send({ name: "builder", text: `${longest}x`, how: "queue", caller: me })
    ).pipe(Effect.flip)
    expect(error).toMatchObject({ _tag: "CommandRefused", message: expect.stringContaining("text has 262145 bytes") })
    expect(world.commands).toHaveLength(1)
  })
)

const outOfBounds = [
  ["name", { name: "n".repeat(257), text: "x", how: "queue", caller: me }],
  ["caller.by", { name: "builder", text: "x", how: "queue", caller: { by: "b".repeat(257), config: null } }],
  ["caller.config", { name: "builder", text: "x", how: "queue", caller: { by: "b", config: "c".repeat(4097) } }],
  ["text", { name: "builder", text: " \n", how: "queue", caller: me }]
] as const

it.live.each(outOfBounds)("an input that is out of bounds names its field: %s", ([field, input]) =>
  Effect.gen(function* () {
    const world = makeWorld()
    const { socket } = yield* serve(world)
    const error = yield* call(socket, (client) => client.Send(input)).pipe(Effect.flip)
    expect(error).toMatchObject({ _tag: "CommandRefused", message: expect.stringContaining(field) })
    expect(world.commands).toEqual([])
  })
)

const logged = (socket: string, selection: object = {}) =>
  call(socket, (client) => Stream.runCollect(client.Log({ ...everything, ...selection }))).pipe(
    Effect.map((runes) => runes.map((each) => each.eventId))
  )

const withdrawn = { event: { _tag: "Withdrawn", messageId: "m" } }

const mixed = [
  draft({ stream: "daemon", actor: "daemon", kind: "daemon.stopping", payload: { reason: "x" } }),
  draft(),
  draft({ actor: "inbox/builder", kind: "inbox.withdrawn", payload: withdrawn }),
  draft({ actor: "worker/other" }),
  draft({ visibility: "secret" }),
  draft()
]

it.live("an agent's log holds its runs, its turns, each of its tool calls and its inbox, and nobody else's", () =>
  Effect.gen(function* () {
    const call = (agent: string, id: string) =>
      draft({
        kind: "tool.call",
        actor: `tool/${agent}/${id}`,
        payload: {
          event: { _tag: "call_requested", callId: id, turnId: "t", toolName: "shell", arguments: {} },
          call_id: id
        }
      })
    const turn = (agentId: string) =>
      draft({
        kind: "turn.started",
        actor: `turn/${agentId}`,
        payload: {
          event: { _tag: "start_turn", turnId: agentId, agentId, input: "", source: "queue", messageIds: [], at: T0 },
          turn_id: agentId,
          agent_id: agentId
        }
      })
    const { append, socket } = yield* serve(makeWorld(), [
      draft(),
      call("builder", "c1"),
      turn("builder"),
      draft({ actor: "agent/builder", kind: "agent.ready", payload: { event: { _tag: "init_complete" } } }),
      draft({ actor: "inbox/builder", kind: "inbox.withdrawn", payload: withdrawn }),
      call("builder2", "c2"),
      turn("other")
    ])
    expect(yield* logged(socket, { agent: "builder" })).toEqual([1, 2, 3, 4, 5])
    expect(yield* logged(socket, { agent: "builder", tail: 4 })).toEqual([2, 3, 4, 5])
    // Behind many calls of somebody else's, too.
    yield* append(...Array.from({ length: 200 }, (_, n) => call("other", `d${n}`)))
    expect(yield* logged(socket, { agent: "builder", tail: 1, kinds: ["tool.call"] })).toEqual([2])
    expect(yield* logged(socket, { agent: "builder", tail: 9, kinds: ["tool.call", "agent.ready"] })).toEqual([2, 4])
  })
)

it.live("log selects by stream, agent, kind, time, cursor and count", () =>
  Effect.gen(function* () {
    const { socket } = yield* serve(makeWorld(), mixed)
    expect(yield* logged(socket)).toEqual([1, 2, 3, 4, 6])
    expect(yield* logged(socket, { stream: "daemon" })).toEqual([1])
    expect(yield* logged(socket, { agent: "web/builder" })).toEqual([2, 3, 6])
    expect(yield* logged(socket, { kinds: ["inbox.withdrawn", "daemon.stopping"] })).toEqual([1, 3])
    expect(yield* logged(socket, { since: T0 })).toEqual([1, 2, 3, 4, 6])
    expect(yield* logged(socket, { since: Number.MAX_SAFE_INTEGER })).toEqual([])
    expect(yield* logged(socket, { after: 3 })).toEqual([4, 6])
    expect(yield* logged(socket, { tail: 2, agent: "builder" })).toEqual([3, 6])
    expect(yield* logged(socket, { tail: 0 })).toEqual([])
  })
)

it.live("a secret rune never leaves, not even to one who asks for its kind, follows, or asks why", () =>
  Effect.gen(function* () {
    const world = makeWorld()
    const { append, socket } = yield* serve(world, [
      draft({ visibility: "secret", payload: { event: { _tag: "BackoffElapsed" }, key: "hunter2" } })
    ])
    expect(yield* logged(socket, { kinds: ["worker.moved"] })).toEqual([])
    expect(yield* logged(socket, { kinds: ["worker.moved"], tail: 5 })).toEqual([])
    const followed = yield* Effect.forkChild(
      call(socket, (client) => Stream.runCollect(Stream.take(client.Log({ ...everything, follow: true }), 1)))
    )
    yield* eventually(() => world.followers === 1)
    yield* append(draft({ visibility: "secret", payload: { event: { _tag: "BackoffElapsed" }, key: "hunter3" } }))
    yield* append(draft())
    expect((yield* Fiber.join(followed)).map((each) => each.eventId)).toEqual([3])
    const why = yield* call(socket, (client) => client.Why({ name: "builder", caller: me }))
    expect(JSON.stringify(why)).not.toContain("hunter")
  })
)

it.live(
  "internal runes come to who asks for them, among the newest and among those that are followed; secret ones never",
  () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const { append, socket } = yield* serve(world, [
        draft(),
        draft({ visibility: "internal" }),
        draft({ visibility: "secret" })
      ])
      expect(yield* logged(socket)).toEqual([1])
      expect(yield* logged(socket, { internal: false, tail: 5 })).toEqual([1])
      expect(yield* logged(socket, { internal: true })).toEqual([1, 2])
      expect(yield* logged(socket, { internal: true, tail: 1 })).toEqual([2])
      const follow = (internal: boolean, count: number) =>
        call(socket, (client) =>
          Stream.runCollect(Stream.take(client.Log({ ...everything, internal, follow: true }), count))
        )
      const [some, all] = [yield* Effect.forkChild(follow(false, 2)), yield* Effect.forkChild(follow(true, 4))]
      yield* eventually(() => world.followers === 2)
      yield* append(draft({ visibility: "internal" }))
      yield* append(draft())
      expect((yield* Fiber.join(some)).map((each) => each.eventId)).toEqual([1, 5])
      expect((yield* Fiber.join(all)).map((each) => each.eventId)).toEqual([1, 2, 4, 5])
    })
)

it.live("log -f shows the newest, then each later rune once", () =>
  Effect.gen(function* () {
    const { append, socket } = yield* serve(makeWorld(), [draft(), draft(), draft()])
    const seen = yield* Queue.unbounded<number>()
    yield* Effect.forkScoped(
      call(socket, (client) =>
        Stream.runForEach(client.Log({ ...everything, tail: 2, follow: true }), (each) =>
          Queue.offer(seen, each.eventId)
        )
      )
    )
    expect([yield* Queue.take(seen), yield* Queue.take(seen)]).toEqual([2, 3])
    yield* append(draft())
    yield* append(draft())
    expect([yield* Queue.take(seen), yield* Queue.take(seen)]).toEqual([4, 5])
  })
)

it.live("a follower that goes away in the middle is forgotten", () =>
  Effect.gen(function* () {
    const world = makeWorld()
    const { socket } = yield* serve(world, [draft()])
    const conn = yield* raw(socket)
    conn.write(request("Log", { follow: true, caller: me }))
    yield* eventually(() => world.followers === 1)
    conn.destroy()
    yield* eventually(() => world.followers === 0)
    expect(yield* answers(socket)).toBe(1)
  })
)

it.live("verify says how much there is, then the verdict", () =>
  Effect.gen(function* () {
    const problem = { eventId: 2, stream: "web-1a2b3c4d", rule: "INV-HASH-VALID", message: "the hash differs" }
    const { socket } = yield* serve(makeWorld({ problems: [problem] }), [draft(), draft()])
    const events = yield* call(socket, (client) => Stream.runCollect(client.Verify()))
    expect(events[0]).toEqual({ _tag: "Started", runes: 2 })
    expect(events.at(-1)).toMatchObject({ _tag: "Verdict", problems: [{ rule: "INV-HASH-VALID" }] })
  })
)

it.live("shutdown is passed on with reason and name, and answers with the pid", () =>
  Effect.gen(function* () {
    const world = makeWorld()
    const { socket } = yield* serve(world)
    expect(yield* call(socket, (client) => client.Shutdown({ reason: "upgrade", by: "ada" }))).toEqual({
      pid: process.pid
    })
    expect(world.shutdowns).toEqual([["upgrade", "ada"]])
  })
)

it.live("a run that ends with the daemon does not restart it; one that goes on does", () =>
  Effect.gen(function* () {
    const world = makeWorld({
      agents: [agentInfo({ busy: true, outlives: false }), agentInfo({ agent: "kept", busy: true, outlives: true })]
    })
    const { socket } = yield* serve(world)
    const restart = (by: string) =>
      call(socket, (client) => client.Shutdown({ reason: "agentd restart", by, keep: true }))
    expect(yield* Effect.flip(restart("agent:builder"))).toMatchObject({
      message: "agent:builder may not restart the daemon: its own run would end with it."
    })
    yield* restart("agent:kept")
    yield* restart("ada")
    expect(world.shutdowns.map(([, by]) => by)).toEqual(["agent:kept", "ada"])
  })
)

const rubbish: ReadonlyArray<readonly [string, string | Uint8Array]> = [
  ["bytes that are no text", Uint8Array.from({ length: 4096 }, (_, index) => (index * 37) % 256)],
  ["a line that is no JSON", "hello?\n"],
  ["half a line", '{"_tag":"Request","id":"1","tag":"Sta'],
  ["null", "null\n"],
  ["a number", "42\n"],
  ["an array", '[[[]],{"_tag":"Request"}]\n'],
  ["no tag", "{}\n"],
  ["an unknown tag", '{"_tag":"Nonsense"}\n'],
  ["a request without anything", '{"_tag":"Request"}\n'],
  ["an id that is an object", '{"_tag":"Request","id":{},"tag":"Status","payload":null,"headers":[]}\n'],
  ["an unknown procedure", request("Explode", {})],
  ["a prototype's name as procedure", request("__proto__", {})],
  ["a payload of the wrong shape", request("Send", { name: 7, text: [] })],
  ["headers of the wrong shape", '{"_tag":"Request","id":"1","tag":"Status","payload":null,"headers":7}\n'],
  ["an ack for nothing", '{"_tag":"Ack","requestId":"99"}\n'],
  ["an interrupt for nothing", '{"_tag":"Interrupt","requestId":"99"}\n'],
  ["an end", '{"_tag":"Eof"}\n'],
  ["an HTTP request", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["nesting without end", `${"[".repeat(500_000)}\n`]
]

it.live.each(rubbish)("a client that sends %s hurts nobody", ([, bytes]) =>
  Effect.gen(function* () {
    const { socket } = yield* serve(makeWorld())
    const bystander = yield* raw(socket)
    const heard: Array<string> = []
    bystander.on("data", (chunk) => heard.push(String(chunk)))
    const conn = yield* raw(socket)
    conn.on("error", () => {})
    conn.write(bytes)
    conn.end()
    expect(yield* answers(socket)).toBe(1)
    bystander.write(request("Projects", null))
    yield* eventually(() => heard.join("").includes("web-1a2b3c4d"))
  })
)

it.live("an answer for a scope that agentd does not know is refused, and names it", () =>
  Effect.gen(function* () {
    const world = makeWorld({ calls: [callInfo()] })
    const { socket } = yield* serve(world)
    const conn = yield* raw(socket)
    const heard: Array<string> = []
    conn.on("data", (chunk) => heard.push(String(chunk)))
    const answer = { name: "01call", decision: "allow", reason: "", hash: "0".repeat(64), caller: me }
    conn.write(request("Answer", { ...answer, lasting: { scope: "ever", offer: 1 } }))
    yield* eventually(() => heard.join("").includes("scope"))
    expect(heard.join("")).toContain('lasting.scope cannot be \\"ever\\".')
    expect(world.commands).toEqual([])
  })
)

it.live("a line of 100 MB ends its own connection and nothing else", () =>
  Effect.gen(function* () {
    const { socket } = yield* serve(makeWorld())
    const conn = yield* raw(socket)
    conn.on("error", () => {})
    conn.resume()
    const chunk = Buffer.alloc(1024 * 1024, "x")
    for (let sent = 0; sent < 100 && !conn.destroyed; sent++) {
      if (!conn.write(chunk)) yield* eventually(() => conn.destroyed || !conn.writableNeedDrain)
    }
    yield* eventually(() => conn.destroyed)
    expect(conn.bytesWritten).toBeLessThan(100 * 1024 * 1024)
    expect(yield* answers(socket)).toBe(1)
  })
)

it.live("of 1500 connections as many as the limit stay open, and room is made when they go", () =>
  Effect.gen(function* () {
    const { socket } = yield* serve(makeWorld())
    const conns = yield* Effect.forEach(Array.from({ length: 1500 }), () =>
      // A full backlog answers EAGAIN.
      Effect.retry(raw(socket), { schedule: Schedule.spaced(5) })
    )
    for (const conn of conns) conn.resume()
    const closed = () => conns.filter((conn) => conn.destroyed).length
    yield* eventually(() => closed() >= 1500 - Limits.strangers)
    expect(yield* answers(socket)).toBe(1)
    for (const conn of conns) conn.destroy()
    yield* Effect.retry(answers(socket), { while: (error) => error._tag === "DaemonUnreachable" })
  })
)

it.live("a client that never reads holds up nobody else", () =>
  Effect.gen(function* () {
    const long = draft({ payload: { event: { _tag: "BackoffElapsed" }, text: "x".repeat(1000) } })
    const { socket } = yield* serve(
      makeWorld(),
      Array.from({ length: 3000 }, () => long)
    )
    const conn = yield* raw(socket)
    const warnings: Array<string> = []
    const warned = ({ name }: Error) => void warnings.push(name)
    process.on("warning", warned)
    yield* Effect.addFinalizer(() => Effect.sync(() => process.off("warning", warned)))
    conn.pause()
    for (let id = 1; id <= 20; id++) conn.write(request("Log", everything, String(id)))
    expect(yield* answers(socket)).toBe(1)
    expect((yield* logged(socket)).length).toBe(3000)
    // as many answers wait for it as it has asked for
    expect(warnings).toEqual([])
  })
)

it.live("large runes come in lines that a client takes, however many they are", () =>
  Effect.gen(function* () {
    const large = draft({ payload: { event: { _tag: "BackoffElapsed" }, text: "x".repeat(900_000) } })
    const drafts = Array.from({ length: 20 }, () => large)
    const { socket } = yield* serve(makeWorld(), drafts)
    expect(yield* logged(socket)).toEqual(drafts.map((_, index) => index + 1))
  })
)

it.live("more calls at one time than the limit are refused, and room is made when they end", () =>
  Effect.gen(function* () {
    const world = makeWorld()
    const { socket } = yield* serve(world)
    const conn = yield* raw(socket)
    conn.resume()
    for (let id = 1; id <= Limits.calls; id++) {
      conn.write(request("Log", { follow: true, caller: me }, String(id)))
    }
    yield* eventually(() => world.followers === Limits.calls)
    const error = yield* call(socket, (client) => client.Stop({ name: "builder", caller: me })).pipe(Effect.flip)
    expect(error).toMatchObject({ _tag: "CommandRefused", message: expect.stringContaining("in progress") })
    conn.destroy()
    yield* eventually(() => world.followers === 0)
    yield* call(socket, (client) => client.Stop({ name: "builder", caller: me }))
  })
)

it.live("nobody at the socket is said to be so, with what to do", () =>
  Effect.gen(function* () {
    const error = yield* call("/nonexistent/control.sock", (client) => client.Agents()).pipe(Effect.flip)
    expect(error).toMatchObject({ _tag: "DaemonUnreachable", reason: "not-running", remedy: /agentd start/ })
  })
)

it.live("a daemon that does not know a procedure is said to be an older one, with the remedy", () =>
  Effect.gen(function* () {
    const socket = join(mkdtempSync(join(tmpdir(), "agentd-old-")), "control.sock")
    const server = Net.createServer((conn) => {
      conn.on("data", (chunk) => {
        const { id, tag } = JSON.parse(String(chunk).split("\n")[0]!) as { readonly id: string; readonly tag: string }
        const cause = [{ _tag: "Die", defect: `Unknown request tag: ${tag}` }]
        conn.write(`${JSON.stringify({ _tag: "Exit", requestId: id, exit: { _tag: "Failure", cause } })}\n`)
      })
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(socket, () => resume(Effect.void))),
      () => Effect.sync(() => server.close())
    )
    const error = yield* Effect.flip(call(socket, (client) => client.Status()))
    expect(error).toMatchObject({
      _tag: "DaemonUnreachable",
      reason: "older",
      remedy: expect.stringContaining("restart")
    })
  })
)
