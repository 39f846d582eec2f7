/** Tokens of answers that pass the gateway: each interface, in any pieces, once, and never more than a bound. */
import { assert, describe, it } from "@effect/vitest"
import { UsageReader } from "../../../src/runs/gateway/UsageReader.ts"

/** The sums by model of an answer that comes in pieces of so many bytes. */
const read = (text: string, size = 7) => {
  const sums = new Map<string, ReadonlyArray<number>>()
  const reader = new UsageReader((model, { cacheRead, cacheWrite, input, output }) => {
    const [a = 0, b = 0, c = 0, d = 0] = sums.get(model) ?? []
    sums.set(model, [a + input, b + output, c + cacheRead, d + cacheWrite])
  })
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) reader.take(bytes.subarray(at, at + size))
  reader.end()
  return Object.fromEntries(sums)
}
const stream = (...values: ReadonlyArray<unknown>) =>
  values.map((value) => `event: x\ndata: ${JSON.stringify(value)}\n\n`).join("") + "data: [DONE]\n\n"

const anthropic = [
  {
    type: "message_start",
    message: {
      model: "claude-opus-5",
      usage: { input_tokens: 10, cache_read_input_tokens: 300, cache_creation_input_tokens: 20, output_tokens: 1 }
    }
  },
  { type: "content_block_delta", delta: { text: 'my "usage" is {"usage":{"input_tokens":9999}} – 好' } },
  { type: "message_delta", usage: { output_tokens: 40 } },
  { type: "message_delta", usage: { output_tokens: 40 } }
]
const chat = [
  { model: "gpt", choices: [], usage: null },
  {
    model: "gpt",
    choices: [],
    usage: { prompt_tokens: 100, completion_tokens: 20, prompt_tokens_details: { cached_tokens: 64 } }
  }
]
const responses = [
  { type: "response.created", response: { model: "gpt-r", usage: null } },
  {
    type: "response.completed",
    response: {
      model: "gpt-r",
      usage: { input_tokens: 100, input_tokens_details: { cached_tokens: 64 }, output_tokens: 20 }
    }
  }
]
const google = [
  { modelVersion: "gem", usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 5 } },
  {
    modelVersion: "gem",
    usageMetadata: {
      promptTokenCount: 100,
      candidatesTokenCount: 20,
      thoughtsTokenCount: 7,
      cachedContentTokenCount: 50
    }
  }
]

describe("tokens that pass the gateway", () => {
  for (const size of [1, 7, 100_000]) {
    it(`of every interface, in pieces of ${size} bytes`, () => {
      assert.deepStrictEqual(read(stream(...anthropic), size), { "claude-opus-5": [330, 40, 300, 20] })
      assert.deepStrictEqual(read(stream(...chat), size), { gpt: [100, 20, 64, 0] })
      assert.deepStrictEqual(read(stream(...responses), size), { "gpt-r": [100, 20, 64, 0] })
      assert.deepStrictEqual(read(stream(...google), size), { gem: [100, 27, 50, 0] })
      assert.deepStrictEqual(read(stream(...google).replaceAll("\n", "\r\n"), size), { gem: [100, 27, 50, 0] })
    })
  }

  it("of an answer that is no stream, on one line or many", () => {
    const body = { model: "m", usage: { input_tokens: 5, output_tokens: 2 } }
    for (const indent of [0, 2]) assert.deepStrictEqual(read(JSON.stringify(body, null, indent)), { m: [5, 2, 0, 0] })
  })

  it("that cannot be are none", () => {
    for (const input_tokens of [-1, 1e300, "5", null, {}, true])
      assert.deepStrictEqual(
        read(stream({ model: "m", usage: { input_tokens, output_tokens: -3 } })),
        {},
        `${input_tokens}`
      )
    for (const text of ["", "usage", "data: usage", 'data: {"usage":', 'data: ["usage"]', 'data: {"usage":[1]}\n'])
      assert.deepStrictEqual(read(text), {}, text)
  })

  it("behind a line that never ends are read, and the line is not kept", () => {
    const long = `data: {"text":"usage ${"x".repeat(9_000_000)}"}\n`
    assert.deepStrictEqual(read(long + stream(...chat), 65_536), { gpt: [100, 20, 64, 0] })
  })
})
