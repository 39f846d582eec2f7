/**
 * AnthropicProvider: Anthropic's Messages API, with streamed answers.
 *
 * Guarantees: a valid history becomes a valid request: roles alternate, no block is empty, and
 * results come before text. The part that the next request repeats is marked for the API's cache.
 * Events and blocks of unknown types are ignored.
 */
import type {
  ContentBlockParam as Block,
  MessageCreateParamsStreaming,
  MessageParam,
  Tool
} from "@anthropic-ai/sdk/resources/messages"
import { Schema } from "effect"
import {
  callOf,
  type FilePart,
  type JsonObject,
  type Message,
  type ModelRequest,
  objectIn,
  type Part,
  type Provider,
  type ProviderError,
  type ProviderEvent,
  type Stop,
  textOf
} from "./Provider.ts"
import { type Account, fault, refusal, saidIn } from "./ProviderFault.ts"
import { type Assembly, type Endpoint, stream } from "./ProviderHttp.ts"

export const BASE_URL = "https://api.anthropic.com"
const VERSION = "2023-06-01"

/** Builds the request URL from a base URL that may already end with the version. */
export const urlOf = (baseUrl: string): string =>
  `${baseUrl.replace(/(?<!\/)\/+$/, "").replace(/\/v1$/, "")}/v1/messages`

const THOUGHTS: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"])

const fileOf = ({ data, type }: FilePart): Block => {
  if (type === "text/plain") return { type: "document", source: { type: "text", media_type: type, data: textOf(data) } }
  return type === "application/pdf"
    ? { type: "document", source: { type: "base64", media_type: type, data } }
    : { type: "image", source: { type: "base64", media_type: type, data } }
}

const blocksOf = (message: Message): ReadonlyArray<Block> => {
  switch (message.role) {
    case "user":
      return [
        { type: "text", text: message.text.trim() === "" ? "(an empty message)" : message.text },
        ...(message.files ?? []).map(fileOf)
      ]
    case "tool":
      return message.results.map(({ callId, output, error }) => ({
        type: "tool_result",
        tool_use_id: callId,
        content: output === "" ? "(no output)" : output,
        ...(error ? { is_error: true } : {})
      }))
    case "assistant": {
      const blocks = message.parts.flatMap((part): ReadonlyArray<Block> => {
        switch (part.type) {
          case "text":
            return part.text.trim() === "" ? [] : [part]
          case "call":
            return [{ type: "tool_use", id: part.id, name: part.name, input: part.input }]
          case "opaque":
            // the API gets its own block back, unchanged
            return part.provider === "anthropic" ? [part.block as unknown as Block] : []
        }
      })
      // the API rejects an answer that ends with thinking, so thinking at the end is removed
      return blocks.slice(0, blocks.findLastIndex(({ type }) => !THOUGHTS.has(type)) + 1)
    }
  }
}

/** Merges consecutive messages that have the same role. */
const messagesOf = (history: ReadonlyArray<Message>) => {
  const messages: Array<MessageParam & { content: Array<Block> }> = []
  for (const entry of history) {
    const role = entry.role === "assistant" ? "assistant" : "user"
    const blocks = blocksOf(entry)
    const last = messages.at(-1)
    if (blocks.length === 0) continue
    if (last?.role === role) last.content.push(...blocks)
    else messages.push({ role, content: [...blocks] })
  }
  const content = messages.at(-1)?.content
  const end = content?.at(-1)
  if (content !== undefined && end !== undefined)
    content[content.length - 1] = { ...(end as object), ...cached } as Block
  return messages
}

const cached = { cache_control: { type: "ephemeral" } } as const

export const bodyOf = (model: string, { system, messages, tools, maxOutputTokens }: ModelRequest) =>
  ({
    model,
    max_tokens: maxOutputTokens,
    stream: true,
    system: [{ type: "text", text: system, ...cached }],
    messages: messagesOf(messages),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, inputSchema }) => ({
            name,
            description,
            input_schema: inputSchema as Tool.InputSchema
          }))
        })
  }) satisfies MessageCreateParamsStreaming

const maybe = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

const Usage = Schema.Struct({
  input_tokens: maybe(Schema.Finite),
  cache_creation_input_tokens: maybe(Schema.Finite),
  cache_read_input_tokens: maybe(Schema.Finite),
  output_tokens: maybe(Schema.Finite)
})

const known = ["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"]

const StreamEvent = Schema.Union([
  Schema.Struct({ type: Schema.Literal("message_start"), message: Schema.Struct({ usage: maybe(Usage) }) }),
  Schema.Struct({
    type: Schema.Literal("content_block_start"),
    index: Schema.Finite,
    content_block: Schema.Record(Schema.String, Schema.Unknown)
  }),
  Schema.Struct({
    type: Schema.Literal("content_block_delta"),
    index: Schema.Finite,
    delta: Schema.Struct({
      text: maybe(Schema.String),
      partial_json: maybe(Schema.String),
      thinking: maybe(Schema.String),
      signature: maybe(Schema.String)
    })
  }),
  Schema.Struct({
    type: Schema.Literal("message_delta"),
    delta: Schema.Struct({ stop_reason: maybe(Schema.String) }),
    usage: maybe(Usage)
  }),
  Schema.Struct({ type: Schema.Literal("message_stop") })
])
const decode = Schema.decodeUnknownOption(StreamEvent)

const stops: { readonly [reason: string]: Stop } = {
  max_tokens: "length",
  refusal: "refusal",
  pause_turn: "pause"
}

interface Growing {
  readonly block: JsonObject
  text: string
  json: string
  thinking: string
  signature: string
}

const partOf = ({ block, text, json, thinking, signature }: Growing): ReadonlyArray<Part> => {
  switch (block["type"]) {
    case "text":
      return text === "" ? [] : [{ type: "text", text }]
    case "tool_use": {
      const written = json === "" ? JSON.stringify(block["input"] ?? {}) : json
      return [callOf(String(block["id"] ?? ""), String(block["name"] ?? ""), written)]
    }
    case "thinking":
      // the API rejects a thinking block without its signature
      return signature === ""
        ? []
        : [{ type: "opaque", provider: "anthropic", block: { ...block, thinking, signature } }]
    case "redacted_thinking":
      return [{ type: "opaque", provider: "anthropic", block }]
    default:
      return []
  }
}

/** Price of a cached input token, as a multiple of the price of a normal one. */
const CACHE_WRITE = 1.25
const CACHE_READ = 0.1

/** Converts each sum that the API reports to the difference from the previous sum. */
const meter = () => {
  const seen = { input: 0, written: 0, read: 0, output: 0 }
  return (usage: typeof Usage.Type | null | undefined): ReadonlyArray<ProviderEvent> => {
    if (usage === null || usage === undefined) return []
    const before = { ...seen }
    seen.input = usage.input_tokens ?? seen.input
    seen.written = usage.cache_creation_input_tokens ?? seen.written
    seen.read = usage.cache_read_input_tokens ?? seen.read
    seen.output = usage.output_tokens ?? seen.output
    const [input, written, read] = [seen.input - before.input, seen.written - before.written, seen.read - before.read]
    return [
      {
        _tag: "Usage",
        inputTokens: input + written + read,
        outputTokens: seen.output - before.output,
        priced: input + written * CACHE_WRITE + read * CACHE_READ,
        ...(read === 0 ? {} : { cacheRead: read }),
        ...(written === 0 ? {} : { cacheWrite: written })
      }
    ]
  }
}

export const assembly = (account: Account): Assembly => {
  const blocks = new Map<number, Growing>()
  const count = meter()
  let reason: string | undefined
  const answer = (): ReadonlyArray<ProviderEvent> | ProviderError => {
    // the answer is incomplete because the context window is full
    if (reason === "model_context_window_exceeded")
      return fault("overflow", "the answer does not fit into the context window", account)
    const parts = [...blocks].toSorted(([a], [b]) => a - b).flatMap(([, block]) => partOf(block))
    return [{ _tag: "Answer", parts, stop: stops[reason ?? ""] ?? "end" }]
  }
  const apply = (event: typeof StreamEvent.Type): ReadonlyArray<ProviderEvent> | ProviderError => {
    switch (event.type) {
      case "message_start":
        return count(event.message.usage)
      case "content_block_start": {
        const { content_block: block, index } = event
        const text = typeof block["text"] === "string" ? block["text"] : ""
        blocks.set(index, { block, text, json: "", thinking: "", signature: "" })
        return text === "" ? [] : [{ _tag: "Text", text }]
      }
      case "content_block_delta": {
        const block = blocks.get(event.index)
        if (block === undefined) return fault("garbage", `a delta of block ${event.index}, which never began`, account)
        const { text, partial_json, thinking, signature } = event.delta
        block.json += partial_json ?? ""
        block.thinking += thinking ?? ""
        block.signature += signature ?? ""
        const thought: ReadonlyArray<ProviderEvent> = thinking ? [{ _tag: "Thought", text: thinking }] : []
        if (text === null || text === undefined || text === "") return thought
        block.text += text
        return [...thought, { _tag: "Text", text }]
      }
      case "message_delta":
        reason = event.delta.stop_reason ?? reason
        return count(event.usage)
      case "message_stop":
        return answer()
    }
  }
  return {
    take: (data, now) => {
      const json = objectIn(data)
      const type = json?.["type"]
      if (type === "error") return refusal(saidIn(data), account, now)
      if (json !== undefined && typeof type === "string" && !known.includes(type)) return []
      const event = decode(json)
      return event._tag === "Some"
        ? apply(event.value)
        : fault("garbage", `the API sent an event of an unknown form: ${data}`, account)
    },
    end: () => (reason === undefined ? fault("stream", "the stream ended before the answer did", account) : answer())
  }
}

export const make = (endpoint: Pick<Endpoint, "account" | "client" | "silence">): Provider => {
  const { account } = endpoint
  const whole: Endpoint = {
    ...endpoint,
    url: urlOf(account.baseUrl),
    headers: { "x-api-key": account.key, "anthropic-version": VERSION }
  }
  return {
    name: "anthropic",
    ask: (request) => stream(whole, bodyOf(account.model, request), () => assembly(account))
  }
}
