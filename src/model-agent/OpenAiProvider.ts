/**
 * OpenAiProvider: streamed chat completions, as offered by OpenAI and many compatible servers.
 *
 * Guarantees: calls are put together correctly, whether a server sends them with or without an index or id, in one
 * piece or in many. `length` and filters are distinguished from a normal end. A stream that ends without a finish
 * reason is an error.
 */
import type {
  ChatCompletionContentPart,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam
} from "openai/resources/chat/completions"
import { Schema } from "effect"
import {
  callOf,
  type FilePart,
  isObject,
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

export const BASE_URL = "https://api.openai.com/v1"

/** Builds the request URL. A base URL without a path gets the default path. */
export const urlOf = (baseUrl: string): string => {
  const base = baseUrl.replace(/(?<!\/)\/+$/, "")
  return `${/^https?:\/\/[^/]+$/.test(base) ? `${base}/v1` : base}/chat/completions`
}

/** Converts a message. Text without files is sent as a plain string, because some servers accept nothing else. */
const contentOf = (text: string, files: ReadonlyArray<FilePart> = []): string | Array<ChatCompletionContentPart> =>
  files.length === 0
    ? text
    : [
        { type: "text", text },
        ...files.map(({ data, filename, type }): ChatCompletionContentPart => {
          if (type === "text/plain") return { type: "text", text: `File ${filename}:\n${textOf(data)}` }
          const url = `data:${type};base64,${data}`
          return type.startsWith("image/")
            ? { type: "image_url", image_url: { url } }
            : { type: "file", file: { filename, file_data: url } }
        })
      ]

const messagesOf = (message: Message): ReadonlyArray<ChatCompletionMessageParam> => {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: contentOf(message.text, message.files) }]
    case "tool":
      // the API has no field for a tool's error
      return message.results.map(({ callId, output, error }) => ({
        role: "tool",
        tool_call_id: callId,
        content: error ? `ERROR: ${output}` : output
      }))
    case "assistant": {
      const text = message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
      const calls = message.parts.flatMap((part) => (part.type === "call" ? [part] : []))
      if (text === "" && calls.length === 0) return []
      const tool_calls = calls.map(({ id, name, input }) => ({
        id,
        type: "function" as const,
        function: { name, arguments: JSON.stringify(input) }
      }))
      return [{ role: "assistant", content: text === "" ? null : text, ...(calls.length === 0 ? {} : { tool_calls }) }]
    }
  }
}

export const bodyOf = (
  { model, baseUrl }: Pick<Account, "baseUrl" | "model">,
  { system, messages, tools, maxOutputTokens }: ModelRequest
) =>
  ({
    model,
    // OpenAI's newer models reject the old name, and older servers do not know the new one
    ...(baseUrl === BASE_URL ? { max_completion_tokens: maxOutputTokens } : { max_tokens: maxOutputTokens }),
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "system", content: system }, ...messages.flatMap(messagesOf)],
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, inputSchema }) => ({
            type: "function" as const,
            function: { name, description, parameters: inputSchema }
          }))
        })
  }) satisfies ChatCompletionCreateParamsStreaming

const maybe = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

const CallDelta = Schema.Struct({
  index: maybe(Schema.Finite),
  id: maybe(Schema.String),
  function: maybe(Schema.Struct({ name: maybe(Schema.String), arguments: maybe(Schema.String) }))
})
type CallDelta = typeof CallDelta.Type

const StreamChunk = Schema.Struct({
  choices: maybe(
    Schema.Array(
      Schema.Struct({
        delta: maybe(
          Schema.Struct({
            content: maybe(Schema.String),
            refusal: maybe(Schema.String),
            // the model's thinking, under the names that servers of open models and routers use
            reasoning_content: maybe(Schema.String),
            reasoning: maybe(Schema.String),
            tool_calls: maybe(Schema.Array(CallDelta))
          })
        ),
        finish_reason: maybe(Schema.String)
      })
    )
  ),
  usage: maybe(
    Schema.Struct({
      prompt_tokens: maybe(Schema.Finite),
      completion_tokens: maybe(Schema.Finite),
      prompt_tokens_details: maybe(Schema.Struct({ cached_tokens: maybe(Schema.Finite) }))
    })
  )
})
const decode = Schema.decodeUnknownOption(StreamChunk)

const stops: { readonly [reason: string]: Stop } = { length: "length", content_filter: "filter" }

interface Growing {
  readonly index: number | undefined
  id: string
  name: string
  json: string
}

/** Adds a piece to the call that it belongs to, or begins a new call. */
const grow = (calls: Array<Growing>, { index, id, function: piece }: CallDelta): void => {
  const last = calls.at(-1)
  const known =
    typeof index === "number"
      ? calls.find((call) => call.index === index)
      : typeof id === "string" && id !== "" && id !== last?.id
        ? undefined
        : last
  const call = known ?? { index: index ?? undefined, id: "", name: "", json: "" }
  if (known === undefined) calls.push(call)
  call.id ||= id ?? ""
  call.name ||= piece?.name ?? ""
  call.json += piece?.arguments ?? ""
}

export const assembly = (account: Account): Assembly => {
  const calls: Array<Growing> = []
  const counted = { input: 0, output: 0, read: 0 }
  let text = ""
  let refused = ""
  let reason: string | undefined
  const answer = (): ReadonlyArray<ProviderEvent> => {
    const said = text === "" ? refused : text
    const parts: Array<Part> = said === "" ? [] : [{ type: "text", text: said }]
    parts.push(...calls.map(({ id, name, json }) => callOf(id, name, json)))
    return [{ _tag: "Answer", parts, stop: refused === "" ? (stops[reason ?? ""] ?? "end") : "refusal" }]
  }
  const apply = ({ choices, usage }: typeof StreamChunk.Type): ReadonlyArray<ProviderEvent> => {
    const told: Array<ProviderEvent> = []
    const choice = choices?.[0]
    const content = choice?.delta?.content ?? ""
    text += content
    refused += choice?.delta?.refusal ?? ""
    const thought = choice?.delta?.reasoning_content ?? choice?.delta?.reasoning ?? ""
    if (thought !== "") told.push({ _tag: "Thought", text: thought })
    if (content !== "") told.push({ _tag: "Text", text: content })
    for (const call of choice?.delta?.tool_calls ?? []) grow(calls, call)
    reason = choice?.finish_reason ?? reason
    if (usage !== null && usage !== undefined) {
      // some servers report the sum up to now with each chunk
      const [input, output] = [usage.prompt_tokens ?? 0, usage.completion_tokens ?? 0]
      const inputTokens = Math.max(0, input - counted.input)
      const outputTokens = Math.max(0, output - counted.output)
      counted.input += inputTokens
      const cacheRead = Math.max(0, (usage.prompt_tokens_details?.cached_tokens ?? 0) - counted.read)
      counted.output += outputTokens
      counted.read += cacheRead
      const cached = cacheRead === 0 ? {} : { cacheRead }
      told.push({ _tag: "Usage", inputTokens, outputTokens, priced: inputTokens, ...cached })
    }
    return told
  }
  const end = (): ReadonlyArray<ProviderEvent> | ProviderError =>
    reason === undefined ? fault("stream", "the stream ended before the answer did", account) : answer()
  return {
    take: (data, now) => {
      if (data.trim() === "[DONE]") return end()
      const json = objectIn(data)
      if (isObject(json?.["error"]) || typeof json?.["error"] === "string") return refusal(saidIn(data), account, now)
      const chunk = decode(json)
      return chunk._tag === "Some"
        ? apply(chunk.value)
        : fault("garbage", `the API sent an event of an unknown form: ${data}`, account)
    },
    end
  }
}

export const make = (endpoint: Pick<Endpoint, "account" | "client" | "silence">): Provider => {
  const { account } = endpoint
  const whole: Endpoint = {
    ...endpoint,
    url: urlOf(account.baseUrl),
    headers: { authorization: `Bearer ${account.key}` }
  }
  return {
    name: "openai",
    ask: (request) => stream(whole, bodyOf(account, request), () => assembly(account))
  }
}
