/** A route that counts, whatever its agent does against it: the usage is asked for, taken out again, waited for, estimated. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { once } from "node:events"
import * as fs from "node:fs"
import * as http from "node:http"
import * as os from "node:os"
import * as path from "node:path"
import { asking } from "../../../src/runs/gateway/Counted.ts"
import { priceOf } from "../../../src/domain/Prices.ts"
import { open, type OpenRoute } from "../../../src/runs/gateway/Gateway.ts"
import { grouped } from "../../../src/board/CostMessages.ts"

const CHUNK = { model: "gpt", choices: [{ delta: { content: "hello, world" } }], usage: null }
const USAGE = { model: "gpt", choices: [], usage: { prompt_tokens: 100, completion_tokens: 20 } }
const START = { type: "message_start", message: { model: "claude", usage: { input_tokens: 30, output_tokens: 1 } } }
const TEXT = { type: "content_block_delta", delta: { text: "four" } }
const DELTA = { type: "message_delta", usage: { output_tokens: 40 } }

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const DONE = "data: [DONE]\n\n"
const isAsked = (body: string) => JSON.parse(body).stream_options?.include_usage === true

let folder = ""
let bodies: Array<string> = []
let answer: (request: { readonly body: string; readonly url: string }, response: http.ServerResponse) => void = () => {}
let provider: http.Server
let route: OpenRoute

beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "counted-"))
  bodies = []
  provider = http.createServer((request, response) => {
    let body = ""
    request.on("data", (data) => (body += data))
    request.on("end", () => {
      bodies.push(body)
      answer({ body, url: request.url ?? "" }, response)
    })
  })
  provider.listen(0, "127.0.0.1")
  await once(provider, "listening")
  const { port } = provider.address() as { readonly port: number }
  const socket = path.join(folder, "model.sock")
  route = await open({ socket, baseUrl: `http://127.0.0.1:${port}`, key: null, metered: true })
})

afterEach(() => {
  route.close()
  provider.closeAllConnections()
  provider.close()
  fs.rmSync(folder, { recursive: true, force: true })
})

const request = (url: string, headers: http.OutgoingHttpHeaders = {}) =>
  http.request({ socketPath: path.join(folder, "model.sock"), method: "POST", path: url, headers, agent: false })

const ask = async (url: string, body: string, headers?: http.OutgoingHttpHeaders) => {
  const asked = request(url, headers)
  asked.end(body)
  const [response] = (await once(asked, "response")) as [http.IncomingMessage]
  let text = ""
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, text }
}

const stream = (response: http.ServerResponse, ...parts: ReadonlyArray<string>) => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const part of parts) response.write(part)
  response.end(DONE)
}

const chat = ({ body }: { readonly body: string }, response: http.ServerResponse) =>
  stream(response, event(CHUNK), ...(isAsked(body) ? [event(USAGE).slice(0, 30), event(USAGE).slice(30)] : []))

const counted = () =>
  Object.fromEntries((route.count().tokens ?? []).map(({ input, model, output }) => [model, [input, output]]))

const until = async (isSo: () => boolean) => {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

describe("a stream of chat completions", () => {
  const body = JSON.stringify({ model: "gpt", stream: true, messages: [], seed: 1 })

  it("whose client does not ask for its usage is counted, and the client gets what it asked for", async () => {
    answer = chat
    const { text } = await ask("/v1/chat/completions", body)
    assert.strictEqual(text, event(CHUNK) + DONE)
    assert.isTrue(isAsked(bodies[0]!))
    assert.deepStrictEqual(counted(), { gpt: [100, 20] })
  })

  it("whose client asks for it gets it, and its request passes as it came", async () => {
    answer = chat
    const own = JSON.stringify({ stream: true, stream_options: { include_usage: true }, messages: ["ä"] })
    assert.strictEqual((await ask("/chat/completions?x=1", own)).text, event(CHUNK) + event(USAGE) + DONE)
    assert.deepStrictEqual(bodies, [own])
    assert.deepStrictEqual(counted(), { gpt: [100, 20] })
  })

  it("is asked for once more as it came where the provider does not take the question, and estimated", async () => {
    answer = (asked, response) =>
      isAsked(asked.body) ? void response.writeHead(400).end("unknown field stream_options") : chat(asked, response)
    const { status, text } = await ask("/v1/chat/completions", body)
    assert.deepStrictEqual([status, text], [200, event(CHUNK) + DONE])
    assert.strictEqual(bodies[1], body)
    assert.deepStrictEqual(counted(), { "gpt (estimated)": [Math.ceil(body.length / 4), 3] })
  })

  it("that is refused for itself is refused", async () => {
    answer = (_, response) => void response.writeHead(400).end("no such model")
    assert.deepStrictEqual(await ask("/v1/chat/completions", body), { status: 400, text: "no such model" })
    assert.deepStrictEqual(counted(), {})
  })

  it("that cannot be read is passed as it came, and estimated", async () => {
    answer = (_, response) => stream(response, event(CHUNK))
    const packed = "not JSON"
    await ask("/v1/chat/completions", packed, { "content-encoding": "zstd" })
    assert.deepStrictEqual(bodies, [packed])
    assert.deepStrictEqual(counted(), { "gpt (estimated)": [2, 3] })
  })
})

describe("the question for the usage", () => {
  it.each([
    [
      '{"stream":true,"seed":12345678901234567890}',
      '{"stream_options":{"include_usage":true},"stream":true,"seed":12345678901234567890}'
    ],
    ['{"stream":true,"stream_options":null}', '{"stream":true,"stream_options":{"include_usage":true}}'],
    [
      '{"stream":true,"stream_options":{"include_usage":false,"x":1}}',
      '{"stream":true,"stream_options":{"include_usage":true,"x":1}}'
    ],
    ['{"stream":true,"stream_options":{"include_usage":true}}', undefined],
    ['{"stream":false}', undefined],
    ["[]", undefined],
    ["null", undefined],
    ["{", undefined]
  ])("%s", (given, expected) => {
    assert.strictEqual(asking(given), expected)
  })
})

describe("an answer whose client goes", () => {
  const leave = async () => {
    const asked = request("/v1/messages")
    asked.on("error", () => {})
    asked.end(JSON.stringify({ stream: true }))
    const [response] = (await once(asked, "response")) as [http.IncomingMessage]
    await once(response, "data")
    asked.destroy()
  }

  it("before it tells what it cost is read to its end", async () => {
    let end = () => {}
    answer = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(event(START))
      end = () => response.end(event(TEXT) + event(DELTA))
    }
    await leave()
    end()
    await until(() => counted()["claude"]?.[1] === 40)
    assert.deepStrictEqual(counted(), { claude: [30, 40] })
  })

  it("before it has begun is read, too", async () => {
    let end = () => {}
    answer = (_, response) => {
      end = () => stream(response, event(START), event(DELTA))
    }
    const asked = request("/v1/messages")
    asked.on("error", () => {})
    asked.end("{}")
    await until(() => bodies.length === 1)
    asked.destroy()
    await new Promise((resolve) => asked.on("close", resolve))
    end()
    await until(() => counted()["claude"]?.[1] === 40)
  })

  it("is estimated when its run is over", async () => {
    let isClosed = false
    answer = (_, response) => {
      response.on("close", () => (isClosed = true))
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(event(START) + event({ ...TEXT, delta: { text: "x".repeat(400) } }))
    }
    await leave()
    await until(() => {
      route.settle()
      return isClosed
    })
    await until(() => Object.keys(counted()).length === 2)
    assert.deepStrictEqual(counted(), { claude: [30, 1], "claude (estimated)": [0, 99] })
  })
})

describe("an answer that tells no tokens", () => {
  it("is estimated, in a stream and whole; that of a request for none is not", async () => {
    const whole = { model: "local", choices: [{ message: { role: "assistant", content: "x".repeat(40) } }] }
    answer = ({ url }, response) =>
      void response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify(url.includes("count") ? { input_tokens: 5 } : whole))
    await ask("/v1/messages/count_tokens", "x".repeat(100))
    assert.deepStrictEqual(counted(), {})
    await ask("/v1/chat/completions", "x".repeat(100))
    assert.deepStrictEqual(counted(), { "local (estimated)": [25, 10] })
  })

  it("a picture of the request is no text", async () => {
    answer = (_, response) => void response.writeHead(200).end('{"text":"four"}')
    await ask("/v1/messages", `{"a":"${"A".repeat(100_000)}"}`)
    assert.deepStrictEqual(counted(), { " (estimated)": [2, 1] })
  })
})

describe("what was estimated", () => {
  it("is said where the cost is shown, and has its model's price", () => {
    const cost = { conversation: "c", agent: "a", day: "2026-11-24", goal: "", input: 10, output: 5 }
    const more = { cacheRead: 0, cacheWrite: 0, usd: 1, unpriced: 0 }
    const costs = ["m", "m (estimated)"].map((model) => ({ ...cost, ...more, model }))
    assert.deepInclude(grouped(costs, ["agent"], new Map())[0], { input: 20, estimated: 15 })
    assert.notProperty(grouped(costs, ["model"], new Map())[1], "estimated")
    assert.strictEqual(priceOf("gpt-x (estimated)", { "gpt-x": { input: 1, output: 2 } as never })?.input, 1)
  })
})
