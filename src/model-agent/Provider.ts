/**
 * Provider: a model behind an API, as the turn loop uses it: the loop sends a request and gets a stream of events.
 *
 * Guarantees: the stream ends with exactly one `Answer`, or fails with a ProviderError whose kind says what to do. The
 * `Text` events together contain the text of the answer. No error contains the key.
 */
import { Schema, type Stream } from "effect"
import { isReadonlyObject } from "effect/Predicate"
import { attempt } from "../config/Attempt.ts"
import { MEDIA_TYPES } from "../runs/AttachedFile.ts"
import type { ToldWindows } from "../runs/gateway/LimitHeaders.ts"

const JsonObject = Schema.Record(Schema.String, Schema.Unknown)
export type JsonObject = typeof JsonObject.Type

/** A tool call as the model wrote it. */
export const CallPart = Schema.Struct({
  type: Schema.Literal("call"),
  id: Schema.String,
  name: Schema.String,
  input: JsonObject,
  /** The arguments as the model wrote them, if they are not a JSON object; `input` is then empty. */
  invalid: Schema.optional(Schema.String)
})
export type CallPart = typeof CallPart.Type

export const Part = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  CallPart,
  /**
   * A block that only this provider understands and that must be sent back unchanged, for example a signed thinking
   * block.
   */
  Schema.Struct({ type: Schema.Literal("opaque"), provider: Schema.String, block: JsonObject })
])
export type Part = typeof Part.Type

export const CallResult = Schema.Struct({ callId: Schema.String, output: Schema.String, error: Schema.Boolean })
export type CallResult = typeof CallResult.Type

/** An image or a PDF that belongs to an input. It follows the input's text. */
export const FilePart = Schema.Struct({
  filename: Schema.String,
  type: Schema.Literals(MEDIA_TYPES),
  /** The content, encoded in base64. */
  data: Schema.String
})
export type FilePart = typeof FilePart.Type

/** The content of a text file. */
export const textOf = (data: string): string => Buffer.from(data, "base64").toString("utf8")

/** An entry in a conversation's history, in the same form for every provider. */
export const Message = Schema.Union([
  /** A message from the user. `note`: true if agentd wrote it, so that it needs no answer. */
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

/**
 * Why an answer ended. `length`: it reached the maximum length. `pause`: the model must be asked again with the same
 * history.
 */
export type Stop = "end" | "length" | "refusal" | "filter" | "pause"

export type ProviderEvent =
  | { readonly _tag: "Text"; readonly text: string }
  /** A piece of the model's thinking before it answers. */
  | { readonly _tag: "Thought"; readonly text: string }
  /**
   * Usage since the last such event. `priced`: input tokens weighted by their price, because cached tokens are cheaper.
   */
  | {
      readonly _tag: "Usage"
      readonly inputTokens: number
      readonly outputTokens: number
      readonly priced: number
      /** How much of the input was read from a cache, and how much was written to a cache. */
      readonly cacheRead?: number
      readonly cacheWrite?: number
    }
  /** The usage limits of the account, from the headers of an answer or of an error. */
  | ({ readonly _tag: "Windows" } & ToldWindows)
  | { readonly _tag: "Answer"; readonly parts: ReadonlyArray<Part>; readonly stop: Stop }

/** Kinds of errors after which the same request can succeed later. */
const PASSING = ["rate_limit", "overloaded", "server", "connection", "stream", "silence", "garbage"] as const

export const FaultKind = Schema.Literals([
  ...PASSING,
  // The user must act.
  "auth",
  "billing",
  "not_found",
  // Neither a retry nor an action of the user helps directly.
  "overflow",
  "invalid_request",
  "storage"
])
export type FaultKind = typeof FaultKind.Type

export class ProviderError extends Schema.TaggedError<ProviderError>()("ProviderError", {
  kind: FaultKind,
  message: Schema.String,
  remedy: Schema.String,
  /** After which time the provider allows a retry, ms. */
  retryAfter: Schema.optional(Schema.Finite)
}) {}

/** The remedy if no compaction makes the conversation short enough. */
export const TOO_LONG =
  "send less at once, name a model that takes more, or set resume to false in the agent's backend and start it again: a new conversation begins"

export const passes = ({ kind }: ProviderError): boolean => PASSING.some((one) => one === kind)

export interface Provider {
  readonly name: "anthropic" | "openai"
  /** Sends one request. If the stream is interrupted, the request is cancelled. */
  readonly ask: (request: ModelRequest) => Stream.Stream<ProviderEvent, ProviderError>
}

/** Maximum number of characters of invalid arguments that are stored. */
const MAX_INVALID = 2_000

const parsed = (text: string): unknown => attempt(() => JSON.parse(text))

export const isObject: (value: unknown) => value is JsonObject = isReadonlyObject

/**
 * Builds a call. If the model wrote no arguments, the input is an empty object. Arguments that are not an object are
 * invalid.
 */
export const callOf = (id: string, name: string, written: string): CallPart => {
  const input = written.trim() === "" ? {} : parsed(written)
  return isObject(input)
    ? { type: "call", id, name, input }
    : { type: "call", id, name, input: {}, invalid: written.slice(0, MAX_INVALID) }
}

/** Parses a JSON object; undefined if the text is none. */
export const objectIn = (text: string): JsonObject | undefined => {
  const value = parsed(text)
  return isObject(value) ? value : undefined
}
