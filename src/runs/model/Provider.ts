/**
 * Provider: a model behind an API, as the turn loop sees it: one request in, a
 * stream of what comes back out.
 *
 * Guarantees: the stream ends with exactly one `Answer`, or fails with a
 * ProviderError whose kind says what to do; the text of the `Text` events is the
 * text of the answer; no error holds the key.
 */
import { Schema, type Stream } from "effect"
import { attempt } from "../../config/Attempt.ts"
import { MEDIA_TYPES } from "../GivenFile.ts"
import type { ToldWindows } from "../gateway/LimitHeaders.ts"

const JsonObject = Schema.Record(Schema.String, Schema.Unknown)
export type JsonObject = typeof JsonObject.Type

/** A tool call as the model wrote it. */
export const CallPart = Schema.Struct({
  type: Schema.Literal("call"),
  id: Schema.String,
  name: Schema.String,
  input: JsonObject,
  /** The written input where that is no JSON object; `input` is empty then. */
  invalid: Schema.optional(Schema.String)
})
export type CallPart = typeof CallPart.Type

export const Part = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  CallPart,
  /** A block that only this provider understands and wants back as it was: signed thoughts. */
  Schema.Struct({ type: Schema.Literal("opaque"), provider: Schema.String, block: JsonObject })
])
export type Part = typeof Part.Type

export const CallResult = Schema.Struct({ callId: Schema.String, output: Schema.String, error: Schema.Boolean })
export type CallResult = typeof CallResult.Type

/** An image or a PDF that comes with an input, after its text. */
export const FilePart = Schema.Struct({
  filename: Schema.String,
  type: Schema.Literals(MEDIA_TYPES),
  /** In base64. */
  data: Schema.String
})
export type FilePart = typeof FilePart.Type

/** An entry of a conversation's history, the same for every provider. */
export const Message = Schema.Union([
  /** `note`: told by agentd, and no input that somebody waits on. */
  Schema.Struct({
    role: Schema.Literal("user"),
    text: Schema.String,
    note: Schema.optional(Schema.Boolean),
    files: Schema.optional(Schema.Array(FilePart))
  }),
  Schema.Struct({ role: Schema.Literal("assistant"), parts: Schema.Array(Part) }),
  Schema.Struct({ role: Schema.Literal("tool"), results: Schema.Array(CallResult) })
])
export type Message = typeof Message.Type

export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
}

export interface ModelRequest {
  readonly system: string
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly maxOutputTokens: number
}

/** Why an answer ended: `length` at the longest allowed, `pause` to be asked again as it is. */
export type Stop = "end" | "length" | "refusal" | "filter" | "pause"

export type ProviderEvent =
  | { readonly _tag: "Text"; readonly text: string }
  /** A piece of what the model thinks before it answers. */
  | { readonly _tag: "Thought"; readonly text: string }
  /** A difference. `priced`: the input tokens as the price counts them, where a cache makes some cheaper. */
  | {
      readonly _tag: "Usage"
      readonly inputTokens: number
      readonly outputTokens: number
      readonly priced: number
      /** Parts of the input: from a cache, and into one. */
      readonly cacheRead?: number
      readonly cacheWrite?: number
    }
  /** The limits on the account's use, as the answer's headers tell them: also of an answer that refuses. */
  | ({ readonly _tag: "Windows" } & ToldWindows)
  | { readonly _tag: "Answer"; readonly parts: ReadonlyArray<Part>; readonly stop: Stop }

/** The same request may succeed later. */
const PASSING = ["rate_limit", "overloaded", "server", "connection", "stream", "silence", "garbage"] as const

/** Kinds of faults, by what is done about them. */
export const FaultKind = Schema.Literals([
  ...PASSING,
  // for a person
  "auth",
  "billing",
  "not_found",
  // neither
  "overflow",
  "invalid_request",
  "storage"
])
export type FaultKind = typeof FaultKind.Type

export class ProviderError extends Schema.TaggedError<ProviderError>()("ProviderError", {
  kind: FaultKind,
  message: Schema.String,
  remedy: Schema.String,
  /** When the provider says to ask again: ms from now. */
  retryAfter: Schema.optional(Schema.Finite)
}) {}

/** The remedy for a conversation that no compaction makes short enough. */
export const TOO_LONG =
  "send less at once, name a model that takes more, or set resume to false in the agent's backend and start it again: a new conversation begins"

/** Whether the same request may succeed later. */
export const passes = ({ kind }: ProviderError): boolean => PASSING.some((one) => one === kind)

export interface Provider {
  readonly name: "anthropic" | "openai"
  /** Asks once. Interrupting the stream breaks the request off. */
  readonly ask: (request: ModelRequest) => Stream.Stream<ProviderEvent, ProviderError>
}

/** The longest text of invalid arguments that is kept. */
const MAX_INVALID = 2_000

const parsed = (text: string): unknown => attempt(() => JSON.parse(text))

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The call that a model wrote: no arguments are an empty object, anything but an object is invalid. */
export const callOf = (id: string, name: string, written: string): CallPart => {
  const input = written.trim() === "" ? {} : parsed(written)
  return isObject(input)
    ? { type: "call", id, name, input }
    : { type: "call", id, name, input: {}, invalid: written.slice(0, MAX_INVALID) }
}

/** An object of an API, or undefined where the text is none. */
export const objectIn = (text: string): JsonObject | undefined => {
  const value = parsed(text)
  return isObject(value) ? value : undefined
}
