import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { Effect, Fiber, Layer } from "effect"
import { McpClient, McpProtocol } from "effect/ai"
import { ChildProcess } from "effect/process"
import { fileURLToPath } from "node:url"
import { MAX_LINE } from "../../../src/cli/mcp/McpInput.ts"
import { agentInfo, conversationInfo, folder, layer, makeWorld, serve, T0, type World } from "../rpc/World.ts"
import { PROGRAM } from "../../support/Program.ts"
import { agentd, launch } from "./Child.ts"

const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(holds))))

interface Answer {
  readonly id?: number | string | null
  readonly result?: {
    readonly tools?: ReadonlyArray<{ readonly name: string; readonly inputSchema: object }>
    readonly content?: ReadonlyArray<{ readonly text: string }>
    readonly isError?: boolean
    readonly protocolVersion?: string
  }
  readonly error?: { readonly code: number; readonly message: string }
}

const request = (id: number | string, method: string, params: object = {}) => ({ jsonrpc: "2.0", id, method, params })

const hello = (protocolVersion: string) => ({
  protocolVersion,
  capabilities: {},
  clientInfo: { name: "a test", version: "1" }
})

/** A server over real pipes, asked one thing after the other. `revision`: that of the handshake, if there is one. */
const server = Effect.fnUntraced(function* (
  socket: string,
  runId = "r7",
  more: { readonly [name: string]: string } = {},
  revision: string | null = "2025-06-18"
) {
  const { child, ended, out } = yield* launch(["mcp"], {
    input: null,
    env: { AGENTD_RUN: runId, AGENTD_SOCKET: socket, ...more }
  })
  let read = 0
  const next = Effect.map(
    eventually(() => out().split("\n").length - 1 > read),
    () => JSON.parse(out().split("\n")[read++]!) as Answer | ReadonlyArray<Answer>
  )
  const write = (text: string) => Effect.sync(() => void child.stdin.write(text))
  const say = (message: unknown) => write(`${JSON.stringify(message)}\n`)
  const ask = (method: string, params: object = {}) =>
    Effect.andThen(
      say(request(read, method, params)),
      Effect.map(next, (answer) => answer as Answer)
    )
  const tool = (name: string, args: object = {}) =>
    Effect.map(ask("tools/call", { name, arguments: args }), ({ result }) => ({
      text: result?.content?.[0]?.text ?? "",
      isError: result?.isError
    }))
  if (revision !== null) {
    yield* ask("initialize", hello(revision))
    yield* say({ jsonrpc: "2.0", method: "notifications/initialized" })
  }
  return { ask, say, write, next, tool, ended, end: Effect.sync(() => void child.stdin.end()), out }
})

const withServer = (over: Partial<World> = {}, runId?: string) =>
  Effect.gen(function* () {
    const world = makeWorld(over)
    const { socket } = yield* serve(world)
    return { world, ...(yield* server(socket, runId)) }
  })

/** A server without a handshake. */
const bare = Effect.gen(function* () {
  const { socket } = yield* serve(makeWorld())
  return yield* server(socket, "r7", {}, null)
})

const may = (...voices: ReadonlyArray<"inbox" | "message" | "post" | "report" | "ask" | "spawn">) =>
  new Map([["r7", { conversation: "web-1a2b3c4d", agent: "builder", turnId: "t1", may: voices }]])

describe("agentd mcp", () => {
  it.live("of a run without a socket it says what it is for, and exits 2", () =>
    Effect.gen(function* () {
      const { code, err, out } = yield* agentd(["mcp"], { env: { AGENTD_RUN: "r7" } })
      expect({ code, out }).toEqual({ code: 2, out: "" })
      expect(err).toContain("AGENTD_RUN is set, so agentd mcp serves the agent of this run")
      expect(err).toContain("→ To serve your own assistant instead: agentd mcp --assistant")
    })
  )

  for (const [asked, expected] of [
    ["2024-11-05", "2024-11-05"],
    ["2025-11-25", "2025-11-25"],
    ["1999-01-01", "2025-11-25"]
  ] as const) {
    it.live(`a client that asks for ${asked} gets ${expected}`, () =>
      Effect.gen(function* () {
        const { ask } = yield* bare
        expect((yield* ask("initialize", hello(asked))).result).toMatchObject({
          protocolVersion: expected,
          serverInfo: { name: "agentd" }
        })
        expect((yield* ask("ping")).result).toEqual({})
      })
    )
  }

  it.live("before the handshake, a request gets an error", () =>
    Effect.gen(function* () {
      const { ask } = yield* bare
      expect((yield* ask("tools/list")).error).toBeDefined()
    })
  )

  it.live("a client of the revision of 2026 lists the tools and calls them", () =>
    Effect.gen(function* () {
      const { socket } = yield* serve(makeWorld())
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [PROGRAM, "mcp"],
        env: { AGENTD_RUN: "r7", AGENTD_SOCKET: socket }
      })
      const client = new Client({ name: "t", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } })
      yield* Effect.acquireRelease(
        Effect.promise(() => client.connect(transport)),
        () => Effect.promise(() => client.close())
      )
      const { tools } = yield* Effect.promise(() => client.listTools())
      expect(tools.map(({ name }) => name)).toContain("inbox")
      const { content } = yield* Effect.promise(() => client.callTool({ name: "inbox", arguments: {} }))
      expect(content).toMatchObject([{ type: "text", text: "Your inbox is empty." }])
    })
  )

  it.live("a call that is cancelled is not carried out, and gets no answer", () =>
    Effect.gen(function* () {
      const socket = `${yield* folder}/control.sock`
      const { ask, out, say } = yield* server(socket)
      yield* say(request("given up", "tools/call", { name: "report", arguments: { status: "done", summary: "x" } }))
      yield* say({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "given up" } })
      expect((yield* ask("ping")).result).toEqual({})
      const world = makeWorld()
      yield* Layer.build(layer(world, socket))
      expect((yield* ask("tools/call", { name: "inbox", arguments: {} })).result?.isError).toBe(false)
      expect(world.commands).toEqual([])
      expect(out()).not.toContain("given up")
    })
  )

  it.live("calls in progress are limited", () =>
    Effect.gen(function* () {
      const { next, write } = yield* server(`${yield* folder}/control.sock`)
      const call = (id: number) => JSON.stringify(request(id, "tools/call", { name: "inbox", arguments: {} }))
      yield* write(Array.from({ length: 1001 }, (_, n) => `${call(n)}\n`).join(""))
      const answer = (yield* next) as Answer
      expect(answer).toMatchObject({ id: 1000, result: { isError: true } })
      expect(answer.result?.content?.[0]?.text).toContain("1000 calls are in progress already.")
    })
  )

  it.live("its tools are those that the agent's config allows", () =>
    Effect.gen(function* () {
      const names = (answer: Answer) => answer.result?.tools?.map(({ name }) => name)
      const { ask, world } = yield* withServer({ voices: may("inbox", "spawn") })
      expect(names(yield* ask("tools/list"))).toEqual(["inbox", "spawn"])
      world.voices.set("r7", { ...world.voices.get("r7")!, may: ["report"] })
      const listed = yield* ask("tools/list")
      expect(names(listed)).toEqual(["report"])
      expect(listed.result?.tools?.[0]?.inputSchema).toMatchObject({
        type: "object",
        required: ["status", "summary"],
        properties: { status: { enum: ["done", "failed", "blocked"] } }
      })
    })
  )

  it.live("each tool reaches the fleet as the agent's own word", () =>
    Effect.gen(function* () {
      const { tool, world } = yield* withServer({
        voices: may("inbox", "message", "report", "ask", "spawn"),
        agents: [agentInfo(), agentInfo({ agent: "reviewer" })],
        inbox: [{ messageId: "m1", from: "ada", text: "look at\nthis", at: T0, carried: true }]
      })
      expect((yield* tool("inbox")).text).toEqual(
        expect.stringMatching(
          /--- (\w{16}) from ada, a person at 2026-11-20T09:12:00.000Z \(m1; your current task\)\nlook at\nthis\n--- \1 end$/
        )
      )
      expect(yield* tool("message", { agent: "reviewer", text: "please" })).toEqual({
        text: "send web/reviewer: done",
        isError: false
      })
      yield* tool("report", { status: "done", summary: "it works", evidence: ["abc123"] })
      yield* tool("ask_person", { question: "may I?" })
      yield* tool("spawn", { name: "tester", task: "test" })
      expect(world.commands).toEqual([
        ["send", "web/reviewer", { text: "please", how: "queue", by: "agent:builder" }],
        ["report", "web-1a2b3c4d/builder", { status: "done", summary: "it works", evidence: ["abc123"] }],
        ["ask", "web-1a2b3c4d/builder", "may I?"],
        ["spawn", "web/builder", { name: "tester", task: "test", by: "agent:builder" }]
      ])
    })
  )

  it.live("what the config does not allow is refused with the field's name, and a person told where to change it", () =>
    Effect.gen(function* () {
      const { tool, world } = yield* withServer({ voices: may("inbox") })
      const { isError, text } = yield* tool("spawn", { name: "x", task: "y" })
      expect(isError).toBe(true)
      expect(text).toContain('"spawn" is not in agents.builder.may')
      expect(text).toContain(
        '→ Continue without it, or let a person add "spawn" to agents.builder.may in /srv/web/agentd.jsonc.'
      )
      expect(world.commands).toEqual([])
    })
  )

  it.live("a run that is over has no voice", () =>
    Effect.gen(function* () {
      const { tool, world } = yield* withServer({}, "r6")
      expect(yield* tool("report", { status: "done", summary: "late" })).toMatchObject({
        isError: true,
        text: expect.stringContaining("The run r6 is over.")
      })
      expect(world.commands).toEqual([])
    })
  )

  it.live("a message stays in the agent's own conversation, and goes to somebody else", () =>
    Effect.gen(function* () {
      const { tool, world } = yield* withServer({
        agents: [
          agentInfo(),
          agentInfo({ agent: "reviewer" }),
          agentInfo({ agent: "spy", conversation: "b", project: "b" })
        ],
        conversations: [conversationInfo()]
      })
      for (const [agent, says] of [
        ["b/spy", "belongs to another conversation"],
        ["builder", "only come back to you"],
        ["reveiwer", 'Did you mean "reviewer"?']
      ] as const) {
        const { isError, text } = yield* tool("message", { agent, text: "hello" })
        expect({ agent, isError }).toEqual({ agent, isError: true })
        expect(text).toContain(says)
      }
      expect(world.commands).toEqual([])
    })
  )

  it.live("bad input is a result that names the field", () =>
    Effect.gen(function* () {
      const { tool, world } = yield* withServer()
      for (const [name, args, says] of [
        ["report", { status: "great", summary: "x" }, /status/],
        ["report", { status: "done" }, /summary/],
        [
          "report",
          { status: "done", summary: "x", evidence: Array(65).fill("e") },
          /evidence has 65 entries and may have 64/
        ],
        ["message", { agent: 7, text: "x" }, /agent/],
        ["ask_person", { question: " " }, /question is empty/],
        ["ask_person", { question: "q".repeat(262_145) }, /question has 262145 bytes/]
      ] as const) {
        const { isError, text } = yield* tool(name, args)
        expect(isError).toBe(true)
        expect(text).toMatch(says)
        expect(text).toContain("\n→ ")
      }
      expect(world.commands).toEqual([])
    })
  )

  it.live("a call of an unknown tool is answered with the names of the tools", () =>
    Effect.gen(function* () {
      const { ask } = yield* withServer()
      const { error } = yield* ask("tools/call", { name: "mesage", arguments: {} })
      expect(error).toEqual({
        code: -32602,
        message: expect.stringMatching(/^There is no tool "mesage"\. The tools are: inbox, /)
      })
      expect(error!.message).toContain(", message, ")
    }).pipe(Effect.provide(NodeServices.layer), Effect.scoped)
  )

  it.live("rubbish, batches, floods and unknown methods are answered, and it goes on", () =>
    Effect.gen(function* () {
      const { ask, end, ended, next, say, write } = yield* withServer()
      const code = Effect.map(next, (answer) => (answer as Answer).error?.code)
      yield* write("{ this is no JSON\n")
      expect(yield* code).toBe(-32_700)
      yield* write('"a text"\n')
      expect(yield* code).toBe(-32_600)
      yield* write('{"jsonrpc":"2.0","id":{},"method":"ping"}\n')
      expect(yield* code).toBe(-32_600)
      yield* write('{"jsonrpc":"2.0","id":7}\n')
      expect(yield* code).toBe(-32_600)
      yield* write('{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}\n')
      expect(yield* code).toBe(-32_602)
      yield* write(`${"x".repeat(MAX_LINE + 10)}\n`)
      expect(yield* code).toBe(-32_600)
      yield* say([])
      expect(yield* code).toBe(-32_600)
      expect((yield* ask("nothing/list")).error).toMatchObject({ code: -32_601 })
      expect((yield* ask("tools/call", { name: "rm" })).error).toMatchObject({ code: -32_602 })
      // the revisions since 2025-06-18 have no batches
      yield* say([request("a", "ping"), request("b", "ping")])
      expect(yield* code).toBe(-32_600)
      // Nothing is said to a notification, an answer that nobody waits for, or an empty line.
      yield* say({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } })
      yield* say({ jsonrpc: "2.0", id: 9, result: {} })
      yield* write("\r\n\n")
      expect((yield* ask("ping")).result).toEqual({})
      // The last request may come without a line's end.
      yield* write(JSON.stringify(request("last", "ping")))
      yield* end
      expect(yield* next).toMatchObject({ id: "last" })
      expect(yield* ended).toMatchObject({ code: 0, err: "" })
    })
  )

  it.live("a daemon that is away is an answer, and the next call finds it again", () =>
    Effect.gen(function* () {
      const socket = `${yield* folder}/control.sock`
      const { ask, tool } = yield* server(socket, "r7", { AGENTD_PATIENCE: "100" })
      expect((yield* ask("tools/list")).result?.tools?.map(({ name }) => name)).toContain("spawn")
      expect(yield* tool("inbox")).toMatchObject({
        isError: true,
        text: expect.stringContaining("No daemon is running")
      })
      yield* Layer.build(layer(makeWorld(), socket))
      expect(yield* tool("inbox")).toEqual({ isError: false, text: "Your inbox is empty." })
    })
  )

  it.live("a daemon that comes back meanwhile is waited for: its runs outlive it", () =>
    Effect.gen(function* () {
      const socket = `${yield* folder}/control.sock`
      const { tool } = yield* server(socket)
      const answer = yield* Effect.forkChild(tool("inbox"))
      yield* Effect.sleep("300 millis")
      yield* Layer.build(layer(makeWorld(), socket))
      expect(yield* Fiber.join(answer)).toEqual({ isError: false, text: "Your inbox is empty." })
    })
  )

  it.live("a client that others wrote speaks with it", () =>
    Effect.gen(function* () {
      const world = makeWorld({ inbox: [{ messageId: "m1", from: "ada", text: "hi", at: T0, carried: false }] })
      const { socket } = yield* serve(world)
      const main = fileURLToPath(new URL("../../../src/main.ts", import.meta.url))
      const command = ChildProcess.make(process.execPath, [main, "mcp"], {
        env: { AGENTD_RUN: "r7", AGENTD_SOCKET: socket },
        extendEnv: true
      })
      const client = McpClient.layerStdio({
        name: "a client",
        version: "1",
        command,
        protocol: McpProtocol.v2025_11_25
      })
      yield* Effect.gen(function* () {
        const mcp = yield* McpClient.McpClient
        expect(mcp.serverInfo).toMatchObject({ name: "agentd" })
        const tools = yield* mcp.listTools()
        expect(tools.map(({ name }) => name)).toEqual([
          "inbox",
          "message",
          "report",
          "ask_person",
          "post",
          "wait",
          "turn_complete"
        ])
        const { content } = yield* mcp.callTool({ tool: tools[0]!, arguments: {} })
        expect(content).toMatchObject([{ type: "text", text: expect.stringContaining("from ada, a person") }])
      }).pipe(Effect.provide(client.pipe(Layer.provide(NodeServices.layer))))
    })
  )
})
