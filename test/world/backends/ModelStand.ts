/**
 * ModelStand: a provider on a real socket that answers from a script, in both dialects, and a
 * run against it with tools of the test's own; shared by the tests of the model backend.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Deferred, Duration, Effect, Fiber, type Layer, Schema, Scope, Stream } from "effect"
import type { FileSystem } from "effect"
import * as fs from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import type { Run, RunEvent, RunSpec } from "../../../src/runs/Backend.ts"
import * as ModelBackend from "../../../src/model-agent/ModelEngine.ts"
import type { Tool, ToolOutcome } from "../../../src/model-agent/Tool.ts"
import { ModelBackend as ModelConfig } from "../../../src/config/BackendConfig.ts"

export type Dialect = "anthropic" | "openai"
export const dialects: ReadonlyArray<Dialect> = ["anthropic", "openai"]

export interface Reply {
  readonly text?: ReadonlyArray<string>
  /** A signed thought, where the dialect has a word for it. */
  readonly thought?: string
  /** With the arguments as they are written. */
  readonly calls?: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: string }>
  /** `pause`: to be asked again, where the dialect has a word for it. */
  readonly stop?: "end" | "length" | "refusal" | "filter" | "pause"
  /** The connection breaks after the text. */
  readonly cut?: boolean
  /** Input tokens; few where it says nothing. */
  readonly tokens?: number
  /** Nothing more comes after the text. */
  readonly hang?: boolean
  /** No stream, but this. */
  readonly status?: number
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string
}

export interface Asked {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: Body
}

/** As much of a request as tests look at, in both dialects. */
interface Body {
  readonly stream: boolean
  readonly system?: unknown
  readonly messages: ReadonlyArray<{
    readonly role: string
    readonly content: string | null | ReadonlyArray<Block>
    readonly tool_call_id?: string
    readonly tool_calls?: ReadonlyArray<{
      readonly id: string
      readonly function: { readonly name: string; readonly arguments: string }
    }>
  }>
}

interface Block {
  readonly type: string
  readonly text?: string
  readonly id?: string
  readonly name?: string
  readonly input?: object
  readonly tool_use_id?: string
  readonly content?: string
  readonly is_error?: boolean
}

const blockLine = (role: string, block: Block): string => {
  switch (block.type) {
    case "text":
      return `${role}: ${block.text}`
    case "tool_use":
      return `call ${block.id}: ${block.name} ${JSON.stringify(block.input)}`
    default:
      return `result ${block.tool_use_id}: ${block.is_error === true ? "ERROR: " : ""}${block.content}`
  }
}

const USAGE = { input: 10, output: 5 }

const reasons: { readonly [dialect in Dialect]: { readonly [stop: string]: string } } = {
  anthropic: {
    end: "end_turn",
    length: "max_tokens",
    refusal: "refusal",
    filter: "refusal",
    pause: "pause_turn",
    calls: "tool_use"
  },
  openai: {
    end: "stop",
    length: "length",
    refusal: "stop",
    filter: "content_filter",
    pause: "stop",
    calls: "tool_calls"
  }
}

/** The events of an answer, up to where its text ends, and from there. */
const eventsOf = {
  anthropic: ({ text = [], calls = [], thought, tokens = USAGE.input }: Reply, reason: string) => {
    const begin: Array<object> = [
      { type: "message_start", message: { usage: { input_tokens: tokens, output_tokens: 1 } } },
      { type: "ping" }
    ]
    if (thought !== undefined)
      begin.push({
        type: "content_block_start",
        index: 99,
        content_block: { type: "redacted_thinking", data: thought }
      })
    if (text.length > 0)
      begin.push({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } })
    for (const piece of text) {
      begin.push({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: piece } })
    }
    const rest: Array<object> = text.length > 0 ? [{ type: "content_block_stop", index: 0 }] : []
    for (const [at, { id, name, arguments: json }] of calls.entries()) {
      const index = at + 1
      rest.push({ type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } })
      rest.push({ type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: json } })
      rest.push({ type: "content_block_stop", index })
    }
    rest.push({ type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: USAGE.output } })
    rest.push({ type: "message_stop" })
    return { begin, rest }
  },
  openai: ({ text = [], calls = [], stop, tokens = USAGE.input }: Reply, reason: string) => {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason }]
    })
    const begin: Array<object> = [chunk({ role: "assistant", content: "" })]
    for (const piece of text) begin.push(chunk(stop === "refusal" ? { refusal: piece } : { content: piece }))
    const rest: Array<object> = calls.map(({ id, name, arguments: json }, index) =>
      chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: json } }] })
    )
    rest.push(chunk({}, reason))
    rest.push({ choices: [], usage: { prompt_tokens: tokens, completion_tokens: USAGE.output } })
    return { begin, rest }
  }
} as const

const answer = (response: ServerResponse, dialect: Dialect, reply: Reply) => {
  if (reply.status !== undefined || reply.body !== undefined) {
    response.writeHead(reply.status ?? 200, { "content-type": "application/json", ...reply.headers })
    return response.end(reply.body ?? "")
  }
  const stop = reply.stop ?? (reply.calls === undefined ? "end" : "calls")
  const { begin, rest } = eventsOf[dialect](reply, reasons[dialect][stop]!)
  const written = (events: ReadonlyArray<object>) =>
    events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")
  response.writeHead(200, { "content-type": "text/event-stream", ...reply.headers })
  // a directive that asks for reconnects is none of the answer's business
  response.write("retry: 3000\n\n")
  if (reply.hang === true) return response.write(written(begin))
  if (reply.cut === true) return response.write(written(begin), () => setImmediate(() => response.destroy()))
  return response.end(written(begin) + written(rest) + (dialect === "openai" ? "data: [DONE]\n\n" : ""))
}

/** Answers the n-th request with the n-th reply; beyond the last it answers "(no more)". Or as a function says. */
export const provider = (
  dialect: Dialect,
  replies: ReadonlyArray<Reply> | ((asked: Asked) => Reply | Promise<Reply>)
) =>
  Effect.acquireRelease(
    Effect.callback<Provider>((resume) => {
      const asked: Array<Asked> = []
      const broken = Deferred.makeUnsafe<void>()
      const server = createServer((request, response) => {
        let text = ""
        request.setEncoding("utf8").on("data", (part: string) => (text += part))
        request.on("end", () => {
          asked.push({ path: request.url!, headers: request.headers, body: JSON.parse(text) })
          response.on("close", () => {
            if (!response.writableFinished) Deferred.doneUnsafe(broken, Effect.void)
          })
          if (typeof replies !== "function") {
            return answer(response, dialect, replies[asked.length - 1] ?? { text: ["(no more)"] })
          }
          return Promise.resolve(replies(asked.at(-1)!)).then((reply) => answer(response, dialect, reply))
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, asked, broken: Deferred.await(broken), server }))
      })
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )

export interface Provider {
  readonly url: string
  /** The requests, in order. */
  readonly asked: Array<Asked>
  /** A connection has ended before its answer was whole. */
  readonly broken: Effect.Effect<void>
  readonly server: ReturnType<typeof createServer>
}

export const KEY = "sk-of-the-test-0123456789"

export const folder = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-model-")))),
  (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
)

export const layer: Layer.Layer<FileSystem.FileSystem> = NodeFileSystem.layer

export interface Setting {
  readonly tools?: ReadonlyArray<Tool>
  /** Resources of the tools while they are there. */
  readonly hold?: Effect.Effect<unknown, never, Scope.Scope>
  readonly config?: { readonly [field: string]: unknown }
  readonly sessions?: string
  readonly spec?: Partial<RunSpec>
  readonly environment?: { readonly [name: string]: string }
}

/** A run of the backend; each of its requests is repeated almost at once. */
export const start = Effect.fnUntraced(function* (dialect: Dialect, url: string, setting: Setting = {}) {
  const config = Schema.decodeUnknownSync(ModelConfig)({
    type: "model",
    provider: dialect,
    baseUrl: url,
    model: "m",
    retries: 2,
    ...setting.config
  })
  const environment = setting.environment ?? { ANTHROPIC_API_KEY: KEY, OPENAI_API_KEY: KEY }
  const backend = yield* ModelBackend.make(
    { ...config, pause: Duration.millis(1) },
    { store: "test", environment, sessions: setting.sessions },
    () => Effect.as(setting.hold ?? Effect.void, { tools: setting.tools ?? [] })
  )
  return yield* backend.start({
    runId: "run-1",
    turnId: "turn-1",
    agent: "builder",
    prompt: "do it",
    cwd: "/",
    env: {},
    resume: undefined,
    mcp: {},
    ...setting.spec
  })
})

/** The reaction to an event; by default calls are allowed, and the run is ended after its first turn. */
export type React = (event: RunEvent, run: Run) => Effect.Effect<void, unknown>

const isEnd = ({ _tag }: RunEvent) => _tag === "TurnCompleted" || _tag === "TurnInterrupted" || _tag === "TurnError"

export const allow: React = (event, run) =>
  event._tag === "ApprovalRequested" ? run.answer(event.callId, { behavior: "allow" }) : Effect.void

export const endAfterTurn: React = (event, run) => (isEnd(event) ? run.end : Effect.void)

/** All events of a run, while the reactions see each. */
export const watch = (run: Run, ...reactions: ReadonlyArray<React>) =>
  Effect.gen(function* () {
    const all: Array<RunEvent> = []
    yield* Stream.runForEach(run.events, (event) => {
      if (event._tag === "GoesOn") return event.go
      all.push(event)
      return Effect.orDie(Effect.forEach(reactions, (react) => react(event, run), { discard: true }))
    })
    return all
  })

/** A run from its start to its end. */
export const whole = (dialect: Dialect, url: string, setting: Setting = {}, ...reactions: ReadonlyArray<React>) =>
  Effect.flatMap(start(dialect, url, setting), (run) => watch(run, allow, endAfterTurn, ...reactions))

export const tags = (all: ReadonlyArray<RunEvent>) => all.map(({ _tag }) => _tag)
export const only = <T extends RunEvent["_tag"]>(all: ReadonlyArray<RunEvent>, tag: T) =>
  all.filter((event): event is Extract<RunEvent, { _tag: T }> => event._tag === tag)
export const textOf = (all: ReadonlyArray<RunEvent>) =>
  only(all, "Delta")
    .map(({ text }) => text)
    .join("")

export const tool = (
  name: string,
  run: Tool["run"],
  options: { readonly parallel?: boolean; readonly readOnly?: boolean; readonly asksAlways?: string } = {}
): Tool => ({
  name,
  description: `the tool ${name}`,
  inputSchema: { type: "object", properties: {} },
  readOnly: false,
  parallel: false,
  run,
  ...options
})

export const done = (output: string): ToolOutcome => ({ status: "success", output })

export const call = (id: string, name: string, input: object = {}) => ({ id, name, arguments: JSON.stringify(input) })

/** The model's input in a request, the same for both dialects: one line for each piece. */
export const heard = ({ body }: Asked): ReadonlyArray<string> =>
  body.messages.flatMap(({ role, content, tool_call_id, tool_calls = [] }): ReadonlyArray<string> => {
    if (role === "system") return []
    if (role === "tool") return [`result ${tool_call_id}: ${content as string}`]
    const said =
      typeof content === "string" ? [`${role}: ${content}`] : (content ?? []).map((block) => blockLine(role, block))
    return [...said, ...tool_calls.map(({ id, function: { name, arguments: json } }) => `call ${id}: ${name} ${json}`)]
  })

/** Closes the scope of a run in the middle of it: what a killed daemon leaves is on the disk. */
export const abandoned = Effect.fnUntraced(function* <E, R>(
  run: Effect.Effect<Run, E, R | Scope.Scope>,
  until: (event: RunEvent) => boolean
) {
  const scope = yield* Scope.make()
  const live = yield* Scope.provide(run, scope)
  const reached = yield* Deferred.make<void>()
  const reader = yield* Effect.forkChild(
    watch(live, allow, (event) => (until(event) ? Deferred.succeed(reached, undefined) : Effect.void))
  )
  yield* Deferred.await(reached)
  yield* Scope.close(scope, yield* Effect.exit(Effect.interrupt))
  yield* Fiber.await(reader)
})
