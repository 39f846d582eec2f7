/**
 * Models: a server on 127.0.0.1 that answers as the models of the ACP agents do: Anthropic's messages, OpenAI's
 * responses and chat completions, Gemini's contents.
 *
 * `Decide` makes each answer from the messages of the conversation and the tools that the agent offers. By default, the
 * last message decides: a command, if it has the text of ASKS; a count that takes 20 seconds, if it has the text of LONG;
 * otherwise a greeting.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export const ASKS = "Run the command `touch made.txt` with your tool, then say what it answered."
const LONG = "Count slowly"
const COMMAND = "touch made.txt"

export type Fields = { readonly [name: string]: unknown }
export type Reply =
  /** Text, with a pause in ms after each piece. */
  | { readonly pieces: ReadonlyArray<string>; readonly pause?: number }
  | { readonly call: { readonly name: string; readonly input: Fields } }
  /** A failed request. */
  | { readonly status: number; readonly message: string }
/** Decides the answer. `offers`: whether the agent offers a tool of this name. */
export type Decide = (messages: ReadonlyArray<Fields>, offers: (tool: string) => boolean) => Reply
type Answer = Exclude<Reply, { readonly status: number }>
/** Event of an answer; some protocols name their events. */
type Event = { readonly [name: string]: unknown } | "[DONE]"

interface Protocol {
  readonly path: RegExp
  readonly messages: string
  readonly events: (reply: Answer) => Iterable<Event>
  /** Answer to a request that wants it whole. */
  readonly whole: Fields
}

let calls = 0
const callId = () => `call_${++calls}`

const USAGE = { input_tokens: 100, output_tokens: 20 }

/** The tools for commands that the agents have, by name, each with the input that makes the file. */
const TOOLS: { readonly [name: string]: Fields } = {
  Bash: { command: COMMAND, description: "Makes a file" },
  bash: { command: COMMAND, description: "Makes a file" },
  run_shell_command: { command: COMMAND, description: "Makes a file" },
  exec_command: { cmd: COMMAND, sandbox_permissions: "require_escalated", justification: "Makes a file" }
}

function* anthropic(reply: Answer): Iterable<Event> {
  const message = { id: "msg_1", type: "message", role: "assistant", model: "stub", content: [], usage: USAGE }
  yield { type: "message_start", message }
  const calls = "call" in reply
  const block = calls
    ? { type: "tool_use", id: callId(), name: reply.call.name, input: {} }
    : { type: "text", text: "" }
  yield { type: "content_block_start", index: 0, content_block: block }
  if (calls) {
    const delta = { type: "input_json_delta", partial_json: JSON.stringify(reply.call.input) }
    yield { type: "content_block_delta", index: 0, delta }
  } else
    for (const text of reply.pieces)
      yield { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }
  yield { type: "content_block_stop", index: 0 }
  yield { type: "message_delta", delta: { stop_reason: calls ? "tool_use" : "end_turn" }, usage: { output_tokens: 20 } }
  yield { type: "message_stop" }
}

function* chat(reply: Answer): Iterable<Event> {
  const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model: "stub" }
  const chunk = (delta: Fields, finish_reason: string | null = null) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason }]
  })
  yield chunk({ role: "assistant", content: "" })
  if ("call" in reply) {
    const call = { name: reply.call.name, arguments: JSON.stringify(reply.call.input) }
    yield chunk({ tool_calls: [{ index: 0, id: callId(), type: "function", function: call }] })
  } else for (const content of reply.pieces) yield chunk({ content })
  yield chunk({}, "call" in reply ? "tool_calls" : "stop")
  yield { ...base, choices: [], usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } }
  yield "[DONE]"
}

function* responses(reply: Answer): Iterable<Event> {
  const response = { id: "resp_1", object: "response", created_at: 0, status: "in_progress", model: "stub", output: [] }
  yield { type: "response.created", response }
  const item_id = "item_1"
  const text = "call" in reply ? "" : reply.pieces.join("")
  const content = [{ type: "output_text", text, annotations: [] }]
  const item =
    "call" in reply
      ? {
          type: "function_call",
          id: item_id,
          call_id: callId(),
          name: reply.call.name,
          arguments: JSON.stringify(reply.call.input)
        }
      : { type: "message", id: item_id, role: "assistant", content }
  yield { type: "response.output_item.added", output_index: 0, item: { ...item, content: [], arguments: "" } }
  if ("pieces" in reply) {
    const part = { item_id, output_index: 0, content_index: 0 }
    yield { type: "response.content_part.added", ...part, part: { type: "output_text", text: "" } }
    for (const delta of reply.pieces) yield { type: "response.output_text.delta", ...part, delta }
  }
  yield { type: "response.output_item.done", output_index: 0, item }
  const usage = { ...USAGE, total_tokens: 120 }
  yield { type: "response.completed", response: { ...response, status: "completed", output: [item], usage } }
}

const usageMetadata = { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 }

function* gemini(reply: Answer): Iterable<Event> {
  const chunk = (part: Fields, more: Fields = {}) => ({
    candidates: [{ content: { role: "model", parts: [part] }, index: 0, ...more }],
    usageMetadata
  })
  if ("call" in reply) yield chunk({ functionCall: { id: callId(), name: reply.call.name, args: reply.call.input } })
  else for (const text of reply.pieces) yield chunk({ text })
  yield chunk({ text: "" }, { finishReason: "STOP" })
}

const GREETING = [{ type: "text", text: "Hello." }]
const PROTOCOLS: ReadonlyArray<Protocol> = [
  {
    path: /\/messages$/,
    messages: "messages",
    events: anthropic,
    whole: { id: "msg_1", type: "message", role: "assistant", content: GREETING, stop_reason: "end_turn", usage: USAGE }
  },
  {
    path: /\/chat\/completions$/,
    messages: "messages",
    events: chat,
    whole: { choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }] }
  },
  { path: /\/responses$/, messages: "input", events: responses, whole: {} },
  {
    path: /enerateContent$/,
    messages: "contents",
    events: gemini,
    whole: { candidates: [{ content: { role: "model", parts: GREETING }, finishReason: "STOP" }], usageMetadata }
  }
]

const isOfTurn = ({ role }: Fields): boolean => role !== "system" && role !== "developer"

const bodyOf = async (request: IncomingMessage): Promise<Fields> => {
  const parts: Array<Buffer> = []
  for await (const part of request) parts.push(part as Buffer)
  return JSON.parse(Buffer.concat(parts).toString() || "{}") as Fields
}

const byLastMessage: Decide = (messages, offers) => {
  const last = JSON.stringify(messages.at(-1))
  if (last.includes(LONG)) return { pieces: Array.from({ length: 200 }, (_, number) => `${number} `), pause: 100 }
  const name = Object.keys(TOOLS).find(offers)
  return name !== undefined && last.includes(ASKS)
    ? { call: { name, input: TOOLS[name]! } }
    : { pieces: ["Hel", "lo."] }
}

const answer = async (request: IncomingMessage, response: ServerResponse, decide: Decide) => {
  const path = (request.url ?? "").split("?")[0]!
  const protocol = PROTOCOLS.find((one) => one.path.test(path))
  const body = await bodyOf(request)
  if (request.method !== "POST" || protocol === undefined) return void response.writeHead(404).end("{}")
  const isWhole = path.includes(":generate") || (body["stream"] !== true && !path.includes(":stream"))
  if (isWhole) {
    response.writeHead(200, { "content-type": "application/json" })
    return void response.end(JSON.stringify(protocol.whole))
  }
  const messages = body[protocol.messages]
  // Claude Code adds messages of its own after the user's
  const said = Array.isArray(messages) ? (messages as ReadonlyArray<Fields>).filter(isOfTurn) : [{ content: messages }]
  const offered = JSON.stringify(body["tools"] ?? [])
  const reply = decide(said, (name) => offered.includes(`"name":"${name}"`))
  if ("status" in reply) {
    const { message, status: code } = reply
    response.writeHead(code, { "content-type": "application/json" })
    return void response.end(JSON.stringify({ type: "error", error: { type: "api_error", message, code } }))
  }
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const event of protocol.events(reply)) {
    if (response.destroyed) return
    const name = typeof event === "object" && typeof event["type"] === "string" ? `event: ${event["type"]}\n` : ""
    response.write(`${name}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
    if ("pause" in reply) await new Promise((resolve) => setTimeout(resolve, reply.pause))
  }
  response.end()
}

/** Starts the server; returns its URL and its end. */
export const start = async (decide = byLastMessage) => {
  const server = createServer((request, response) => {
    answer(request, response, decide).catch((error: unknown) => response.destroy(error as Error))
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, stop: () => (server.closeAllConnections(), server.close()) }
}
