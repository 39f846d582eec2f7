import type {
  RawContentBlockDelta,
  RawContentBlockStartEvent,
  RawMessageDeltaEvent,
  RawMessageStreamEvent,
  StopReason
} from "@anthropic-ai/sdk/resources/messages"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { assembly, bodyOf, urlOf } from "../../../src/model-agent/AnthropicProvider.ts"
import { repair } from "../../../src/model-agent/ModelHistory.ts"
import {
  Message,
  type ModelRequest,
  type Part,
  ProviderError,
  type ProviderEvent
} from "../../../src/model-agent/Provider.ts"
import type { Account } from "../../../src/model-agent/ProviderFault.ts"

const account: Account = { key: "k", keySource: "K", baseUrl: "https://api.example.org", model: "m" }
const request = (messages: ReadonlyArray<Message>): ModelRequest => ({
  system: "s",
  messages,
  tools: [],
  maxOutputTokens: 10
})

interface Wire {
  readonly role: string
  readonly content: ReadonlyArray<{ readonly type: string; readonly text?: string; readonly id?: string } & object>
}
const messages = (history: ReadonlyArray<Message>) => bodyOf("m", request(history)).messages as ReadonlyArray<Wire>

/** Feeds the events and collects what comes of them, to the answer or the error. */
const assembled = (events: ReadonlyArray<object | string>): ReadonlyArray<ProviderEvent | ProviderError> => {
  const { take, end } = assembly(account)
  const all: Array<ProviderEvent | ProviderError> = []
  for (const event of events) {
    const taken = take(typeof event === "string" ? event : JSON.stringify(event), 0)
    if (taken instanceof ProviderError) return [...all, taken]
    all.push(...taken)
    if (all.at(-1)?._tag === "Answer") return all
  }
  const last = end()
  return last instanceof ProviderError ? [...all, last] : [...all, ...last]
}

// the types of the API's own SDK: a field that it renames fails the type check
const block = (index: number, content_block: Partial<RawContentBlockStartEvent["content_block"]>) => ({
  type: "content_block_start",
  index,
  content_block
})
const delta = (index: number, delta: RawContentBlockDelta): RawMessageStreamEvent => ({
  type: "content_block_delta",
  index,
  delta
})
const stopped = (stop_reason: StopReason) =>
  ({
    type: "message_delta",
    delta: { stop_reason },
    usage: { output_tokens: 7 }
  }) satisfies Pick<RawMessageDeltaEvent, "type"> & {
    readonly delta: Pick<RawMessageDeltaEvent["delta"], "stop_reason">
    readonly usage: Pick<RawMessageDeltaEvent["usage"], "output_tokens">
  }

describe("the request", () => {
  it("goes to the version of the API that is spoken, however its base is written", () => {
    for (const base of ["https://a.b", "https://a.b/", "https://a.b/v1", "https://a.b/v1/"])
      assert.strictEqual(urlOf(base), "https://a.b/v1/messages")
    assert.strictEqual(urlOf("http://a.b/anthropic"), "http://a.b/anthropic/v1/messages")
  })

  it("holds a text file as a document of text: in base64 the API takes only PDFs and images", () => {
    const files = [{ filename: "a.txt", type: "text/plain" as const, data: Buffer.from("Grüße").toString("base64") }]
    const [message] = messages([{ role: "user", text: "see", files }])
    assert.deepInclude(message!.content[1] as object, {
      type: "document",
      source: { type: "text", media_type: "text/plain", data: "Grüße" }
    })
  })

  it("holds signed thoughts of this API where they were, and those of no other", () => {
    const thought = { type: "thinking", thinking: "hm", signature: "s" }
    const [, answer] = messages([
      { role: "user", text: "x" },
      {
        role: "assistant",
        parts: [
          { type: "opaque", provider: "other", block: { type: "odd" } },
          { type: "opaque", provider: "anthropic", block: thought },
          { type: "text", text: "y" }
        ]
      }
    ])
    assert.deepStrictEqual(answer?.content[0], thought)
    assert.strictEqual(answer?.content.length, 2)
  })

  it("holds no thoughts at the end of an answer: the API refuses all of a conversation that does", () => {
    const thoughts = ["thinking", "redacted_thinking"].map((type) => {
      return { type: "opaque", provider: "anthropic", block: { type, signature: "s" } } as const
    })
    const text = { type: "text", text: "y" } as const
    const wire = ([...parts]: ReadonlyArray<Part>) =>
      messages([
        { role: "user", text: "x" },
        { role: "assistant", parts }
      ]).map(({ content }) => content.map(({ type }) => type))
    assert.deepStrictEqual(wire(thoughts), [["text"]])
    assert.deepStrictEqual(wire([...thoughts, text, ...thoughts]), [
      ["text"],
      ["thinking", "redacted_thinking", "text"]
    ])
  })

  it.prop(
    "whatever the history: roles alternate, no text is empty, every call is answered in the next message, results first",
    { history: Schema.Array(Message).check(Schema.isMaxLength(8)) },
    ({ history }) => {
      const wire = messages([...repair(history), { role: "user", text: "next" }])
      for (const [at, { role, content }] of wire.entries()) {
        if (at > 0) assert.notStrictEqual(role, wire[at - 1]!.role)
        assert.isAbove(content.length, 0)
        for (const part of content) if (part.type === "text") assert.notStrictEqual(part.text?.trim(), "")
        const calls = content.filter(({ type }) => type === "tool_use").length
        if (calls > 0) {
          const results = wire[at + 1]!.content.slice(0, calls)
          assert.isTrue(results.every(({ type }) => type === "tool_result"))
        }
      }
    }
  )
})

describe("the answer", () => {
  it("is put together from its blocks: thoughts, text and calls", () => {
    const all = assembled([
      { type: "message_start", message: { usage: { input_tokens: 3 } } },
      block(0, { type: "thinking", thinking: "", signature: "" }),
      delta(0, { type: "thinking_delta", thinking: "hm" }),
      delta(0, { type: "signature_delta", signature: "sig" }),
      block(1, { type: "text", text: "" }),
      delta(1, { type: "text_delta", text: "Now" }),
      block(2, { type: "tool_use", id: "a", name: "echo", input: {} }),
      delta(2, { type: "input_json_delta", partial_json: '{"n"' }),
      delta(2, { type: "input_json_delta", partial_json: ":1}" }),
      stopped("tool_use"),
      { type: "message_stop" }
    ])
    assert.deepStrictEqual(all.at(-1), {
      _tag: "Answer",
      stop: "end",
      parts: [
        { type: "opaque", provider: "anthropic", block: { type: "thinking", thinking: "hm", signature: "sig" } },
        { type: "text", text: "Now" },
        { type: "call", id: "a", name: "echo", input: { n: 1 } }
      ]
    })
  })

  it("costs differences, with cached tokens as the price counts them", () => {
    const usage = {
      input_tokens: 10,
      cache_creation_input_tokens: 100,
      cache_read_input_tokens: 1_000,
      output_tokens: 1
    }
    const all = assembled([
      { type: "message_start", message: { usage } },
      stopped("end_turn"),
      { type: "message_stop" }
    ])
    assert.deepStrictEqual(all.slice(0, 2), [
      { _tag: "Usage", inputTokens: 1_110, outputTokens: 1, priced: 235, cacheRead: 1_000, cacheWrite: 100 },
      { _tag: "Usage", inputTokens: 0, outputTokens: 6, priced: 0 }
    ])
  })

  it("passes over events and blocks that nobody knows yet", () => {
    const all = assembled([
      { type: "something_new", odd: 1 },
      { type: "content_block_start", index: 0, content_block: { type: "odd_block", odd: 1 } },
      { type: "content_block_delta", index: 0, delta: { type: "odd_delta" } },
      stopped("end_turn"),
      { type: "message_stop" }
    ])
    assert.deepStrictEqual(all.at(-1), { _tag: "Answer", parts: [], stop: "end" })
  })

  const failure = (events: ReadonlyArray<object | string>) => {
    const last = assembled(events).at(-1)
    return last instanceof ProviderError ? last.kind : last?._tag
  }
  it("that ends before its stop reason is a broken stream", () => {
    assert.strictEqual(failure([block(0, { type: "text", text: "" })]), "stream")
    assert.strictEqual(failure([stopped("end_turn")]), "Answer")
  })
  it("that makes no sense is garbage, and an error within it is what the error says", () => {
    assert.strictEqual(failure(["<html>"]), "garbage")
    assert.strictEqual(failure([delta(3, { type: "text_delta", text: "x" })]), "garbage")
    assert.strictEqual(failure([{ type: "content_block_start" }]), "garbage")
    assert.strictEqual(failure([{ type: "error", error: { type: "overloaded_error", message: "x" } }]), "overloaded")
  })
  it("for which the context has no room left is an overflow", () =>
    assert.strictEqual(failure([stopped("model_context_window_exceeded"), { type: "message_stop" }]), "overflow"))
})
