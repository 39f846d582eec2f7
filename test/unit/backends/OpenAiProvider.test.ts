import { assert, describe, it } from "@effect/vitest"
import { assembly, BASE_URL, bodyOf, urlOf } from "../../../src/model-agent/OpenAiProvider.ts"
import { ProviderError, type ProviderEvent } from "../../../src/model-agent/Provider.ts"
import type { Account } from "../../../src/model-agent/ProviderFault.ts"

const account: Account = { key: "k", keySource: "K", baseUrl: "https://api.example.org", model: "m" }
const request = { system: "s", messages: [], tools: [], maxOutputTokens: 10 }

/** Feeds the chunks and collects what comes of them, to the answer or the error. */
const assembled = (chunks: ReadonlyArray<object | string>): ReadonlyArray<ProviderEvent | ProviderError> => {
  const { take, end } = assembly(account)
  const all: Array<ProviderEvent | ProviderError> = []
  for (const chunk of chunks) {
    const taken = take(typeof chunk === "string" ? chunk : JSON.stringify(chunk), 0)
    if (taken instanceof ProviderError) return [...all, taken]
    all.push(...taken)
    if (all.at(-1)?._tag === "Answer") return all
  }
  const last = end()
  return last instanceof ProviderError ? [...all, last] : [...all, ...last]
}

const delta = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }]
})
const piece = (call: object) => delta({ tool_calls: [call] })
const finished = [delta({}, "tool_calls"), "[DONE]"]

const calls = (chunks: ReadonlyArray<object>) => {
  const answer = assembled([...chunks, ...finished]).at(-1)
  return answer?._tag === "Answer"
    ? answer.parts.flatMap((part) => (part.type === "call" ? [[part.id, part.name, part.input, part.invalid]] : []))
    : answer
}

describe("the request", () => {
  it("goes to the usual path where the base has none", () => {
    assert.strictEqual(urlOf(BASE_URL), "https://api.openai.com/v1/chat/completions")
    assert.strictEqual(urlOf("https://api.openai.com"), "https://api.openai.com/v1/chat/completions")
    assert.strictEqual(urlOf("http://127.0.0.1:11434/"), "http://127.0.0.1:11434/v1/chat/completions")
    assert.strictEqual(urlOf("https://a.b/api/v3/"), "https://a.b/api/v3/chat/completions")
  })
  it("names its limit as OpenAI's models want it, and for others as all know it", () => {
    assert.deepInclude(bodyOf({ model: "m", baseUrl: BASE_URL }, request), { max_completion_tokens: 10 })
    const other = bodyOf(account, request)
    assert.deepInclude(other, { max_tokens: 10 })
    assert.notProperty(other, "max_completion_tokens")
  })
  it("holds a text file as text: the API takes only PDFs and images as files", () => {
    const files = [{ filename: "a.txt", type: "text/plain" as const, data: Buffer.from("Grüße").toString("base64") }]
    const { messages } = bodyOf(account, { ...request, messages: [{ role: "user", text: "see", files }] })
    assert.deepStrictEqual(messages[1], {
      role: "user",
      content: [
        { type: "text", text: "see" },
        { type: "text", text: "File a.txt:\nGrüße" }
      ]
    })
  })
})

describe("calls", () => {
  it("come in pieces, by index, beside each other", () =>
    assert.deepStrictEqual(
      calls([
        piece({ index: 0, id: "a", function: { name: "x", arguments: "" } }),
        piece({ index: 1, id: "b", function: { name: "y", arguments: '{"n":' } }),
        piece({ index: 0, function: { arguments: "{}" } }),
        piece({ index: 1, function: { arguments: "2}" } })
      ]),
      [
        ["a", "x", {}, undefined],
        ["b", "y", { n: 2 }, undefined]
      ]
    ))
  it("come whole, without an index", () =>
    assert.deepStrictEqual(
      calls([
        piece({ id: "a", function: { name: "x", arguments: '{"n":1}' } }),
        piece({ id: "b", function: { name: "x", arguments: '{"n":2}' } })
      ]),
      [
        ["a", "x", { n: 1 }, undefined],
        ["b", "x", { n: 2 }, undefined]
      ]
    ))
  it("come with a stop that says otherwise", () => {
    const answer = assembled([piece({ index: 0, id: "a", function: { name: "x" } }), delta({}, "stop")]).at(-1)
    assert.deepStrictEqual(answer, {
      _tag: "Answer",
      parts: [{ type: "call", id: "a", name: "x", input: {} }],
      stop: "end"
    })
  })
  it("with arguments that are no object hold what was written", () =>
    assert.deepStrictEqual(calls([piece({ index: 0, id: "a", function: { name: "x", arguments: "[1]" } })]), [
      ["a", "x", {}, "[1]"]
    ]))
})

describe("the answer", () => {
  it("costs the sum that was told last, told once or with every chunk", () => {
    const usage = (prompt_tokens: number, completion_tokens: number) => ({
      choices: [],
      usage: { prompt_tokens, completion_tokens }
    })
    const all = assembled([usage(10, 1), delta({ content: "x" }, "stop"), usage(10, 5), "[DONE]"])
    const spent = all.flatMap((event) => (event._tag === "Usage" ? [[event.inputTokens, event.outputTokens]] : []))
    assert.deepStrictEqual(spent, [
      [10, 1],
      [0, 4]
    ])
  })

  const failure = (chunks: ReadonlyArray<object | string>) => {
    const last = assembled(chunks).at(-1)
    return last instanceof ProviderError ? last.kind : last?._tag
  }
  it("that ends without a finish reason is a broken stream", () => {
    assert.strictEqual(failure([delta({ content: "x" })]), "stream")
    assert.strictEqual(failure([delta({ content: "x" }), "[DONE]"]), "stream")
    assert.strictEqual(failure([delta({ content: "x" }, "stop")]), "Answer")
  })
  it("that makes no sense is garbage, and an error within it is what the error says", () => {
    assert.strictEqual(failure(["<html>"]), "garbage")
    assert.strictEqual(failure([{ choices: "none" }]), "garbage")
    assert.strictEqual(failure([{ error: { message: "x", code: 429 } }]), "rate_limit")
    assert.strictEqual(failure([{ error: "it broke" }]), "server")
  })
  it("that was filtered is told from one that ended", () => {
    const answer = assembled([delta({ content: "x" }, "content_filter")]).at(-1)
    assert.strictEqual(answer?._tag === "Answer" ? answer.stop : undefined, "filter")
  })
})
