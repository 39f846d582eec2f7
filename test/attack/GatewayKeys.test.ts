/**
 * GatewayKeys: a confined agent reaches its model and nothing else, holds no key, and none of its
 * own keys leads to another account.
 */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { Effect, Layer, Scope } from "effect"
import * as fs from "node:fs"
import * as http from "node:http"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { asksModel, HOLD, open, type OpenRoute, withoutKeys } from "../../src/runs/gateway/Gateway.ts"
import { Gateway } from "../../src/runs/gateway/GatewayClient.ts"

const KEY = "the-real-key"

interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

let folder = ""
let seen: Array<Seen> = []
let provider: http.Server
let base = ""

beforeEach(async () => {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "gateway-")))
  seen = []
  provider = http.createServer((request, response) => {
    let body = ""
    request.on("data", (data) => (body += data))
    request.on("end", () => {
      seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body })
      if (request.url?.includes("models/away")) return response.writeHead(307, { location: "http://evil.test/" }).end()
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write("data: one\n\n")
      response.end("data: two\n\n")
    })
  })
  await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", () => resolve()))
  const address = provider.address()
  base = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
})

afterEach(() => {
  provider.closeAllConnections()
  provider.close()
  fs.rmSync(folder, { recursive: true, force: true })
})

interface Asked {
  readonly method?: string
  readonly path: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: string
}

const ask = (socketPath: string, { body = "", headers = {}, method = "POST", path }: Asked) =>
  Effect.callback<{ readonly status: number; readonly text: string; readonly location: string | undefined }>(
    (resume) => {
      const request = http.request({ socketPath, method, path, headers, agent: false }, (answer) => {
        let text = ""
        answer.on("data", (data) => (text += data))
        answer.on("end", () =>
          resume(Effect.succeed({ status: answer.statusCode ?? 0, text, location: answer.headers.location }))
        )
      })
      request.on("error", ({ message }) => resume(Effect.succeed({ status: 0, text: message, location: undefined })))
      request.end(body)
    }
  )

const route = (baseUrl: string, key: { readonly [name: string]: string } | null = { "x-api-key": KEY }) =>
  Effect.acquireRelease(
    Effect.promise(() => open({ socket: path.join(folder, "model.sock"), baseUrl, key })),
    (opened: OpenRoute) => Effect.sync(opened.close)
  ).pipe(Effect.map((opened) => ({ ...opened, socket: path.join(folder, "model.sock") })))

const live = (name: string, body: Effect.Effect<void, unknown, Scope.Scope>) => it.live(name, () => Effect.scoped(body))

describe("the gateway", () => {
  live(
    "passes a model's request on with the key, streams the answer back, and counts both",
    Effect.gen(function* () {
      const { count, socket } = yield* route(base)
      const answer = yield* ask(socket, { path: "/v1/messages?beta=true", body: "{}" })
      assert.deepStrictEqual(answer, { status: 200, text: "data: one\n\ndata: two\n\n", location: undefined })
      assert.strictEqual(seen[0]?.headers["x-api-key"], KEY)
      assert.strictEqual(seen[0]?.url, "/v1/messages?beta=true")
      assert.deepInclude(count(), { requests: 1, refused: 0, sent: 2, received: answer.text.length })
    })
  )

  live(
    "takes off every key that the agent sends, in headers and in the address",
    Effect.gen(function* () {
      const { socket } = yield* route(base)
      const headers = {
        authorization: "Bearer theirs",
        "X-Api-Key": "theirs",
        "x-goog-api-key": "theirs",
        "api-key": "theirs",
        cookie: "session=theirs",
        "proxy-authorization": "theirs",
        host: "evil.test",
        "x-forwarded-host": "evil.test"
      }
      const query = "?key=theirs&KEY=theirs&api_key=theirs&api-key=theirs&access_token=theirs&%6Bey=theirs&alt=sse"
      yield* ask(socket, { path: `/v1beta/models/gemini-2.5:generateContent${query}`, headers })
      assert.notInclude(JSON.stringify(seen[0]), "theirs")
      assert.notInclude(JSON.stringify(seen[0]), "evil")
      assert.match(seen[0]?.url ?? "", /\?alt=sse$/)
    })
  )

  live(
    "leaves the agent's login as it is where there is no key",
    Effect.gen(function* () {
      const { socket } = yield* route(base, null)
      yield* ask(socket, { path: "/v1/messages", headers: { authorization: "Bearer login" } })
      assert.strictEqual(seen[0]?.headers.authorization, "Bearer login")
    })
  )

  live(
    "lets nothing through but the model's paths, by whatever spelling",
    Effect.gen(function* () {
      const { count, socket } = yield* route(`${base}/v1`, { authorization: `Bearer ${KEY}` })
      const refused: ReadonlyArray<Asked> = [
        { path: "/v1/files" },
        { path: "/v1/messages/batches" },
        { path: "/v1/organizations/api_keys" },
        { method: "GET", path: "/v1/responses/resp_1" },
        { method: "DELETE", path: "/v1/models/mine" },
        { path: "/v1/responses/../files" },
        { path: "/v1/../v1/files" },
        { path: "/v1/%72esponses" },
        { path: "/v1//responses" },
        { path: "/v1/responses/" },
        { path: "/v1/responses%3f" },
        { path: "//evil.test/v1/responses" },
        { path: "http://evil.test/v1/responses" },
        { path: "/responses" },
        { path: "/v1beta/models/../x:generateContent" },
        { method: "PUT", path: "/v1/responses" },
        { method: "OPTIONS", path: "*" }
      ]
      for (const one of refused) assert.strictEqual((yield* ask(socket, one)).status, 403, one.path)
      assert.deepStrictEqual(seen, [])
      assert.strictEqual(count().refused, refused.length)
      yield* ask(socket, { path: "/v1/responses" })
      assert.strictEqual(seen[0]?.headers.authorization, `Bearer ${KEY}`)
    })
  )

  live(
    "tunnels to nowhere (CONNECT), upgrades nothing, and follows no redirect",
    Effect.gen(function* () {
      const { socket } = yield* route(base)
      for (const first of [
        "CONNECT evil.test:443 HTTP/1.1\r\nhost: evil.test:443\r\n\r\n",
        "GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
      ]) {
        const text = yield* Effect.callback<string>((resume) => {
          let said = ""
          const connection = net.connect(socket, () => connection.write(first))
          connection.on("data", (data) => (said += data))
          connection.on("close", () => resume(Effect.succeed(said)))
        })
        assert.match(text, /^HTTP\/1\.1 403 /)
      }
      const away = yield* ask(socket, { method: "GET", path: "/v1/models/away" })
      assert.strictEqual(away.status, 307)
      assert.strictEqual(seen.length, 1)
    })
  )

  live(
    "says that the provider cannot be reached, and lives on",
    Effect.gen(function* () {
      const { socket } = yield* route("http://127.0.0.1:1")
      assert.strictEqual((yield* ask(socket, { path: "/v1/messages" })).status, 502)
      assert.strictEqual((yield* ask(socket, { path: "/v1/messages" })).status, 502)
    })
  )
})

it("a query without keys is passed on byte by byte but for them, and never fails", () => {
  assert.strictEqual(withoutKeys("/a"), "/a")
  assert.strictEqual(withoutKeys("/a?b=c"), "/a?b=c")
  assert.strictEqual(withoutKeys("/a?token=x"), "/a")
  assert.doesNotThrow(() => withoutKeys("/a?%zz=%"))
})

it("each API's own paths pass, with the prefix of its address", () => {
  assert.isTrue(asksModel("POST", "/v1/messages/count_tokens", ""))
  assert.isTrue(asksModel("POST", "/api/v1/chat/completions", "/api/v1"))
  assert.isTrue(asksModel("POST", "/v1beta/models/g-2.5:streamGenerateContent?alt=sse", ""))
  assert.isTrue(asksModel("GET", "/v1/models", "/v1"))
  assert.isFalse(asksModel("POST", "/v1/messages", "/other"))
  assert.isFalse(asksModel("POST", "/v1messages", "/v1"))
})

describe("the gateway's process", () => {
  const environmentOf = (pid: number) => fs.readFileSync(`/proc/${pid}/environ`, "utf8")
  const argumentsOf = (pid: number) => fs.readFileSync(`/proc/${pid}/cmdline`, "utf8")
  const ended = (pid: number) => Effect.sync(() => process.kill(pid, "SIGKILL"))

  const routeIn = () => ({ socket: path.join(folder, "model.sock"), baseUrl: base, key: { "x-api-key": KEY } })
  const layer = () => Gateway.layer({ folder: path.join(folder, "gateway") })

  live(
    "has the key in no environment, argument or file, outlives the daemon that leaves a run, and serves the next one",
    Effect.gen(function* () {
      const { socket } = routeIn()
      // a run that goes on while no daemon is there
      const left = yield* Scope.make()
      process.env["GATEWAY_TEST_KEY"] = KEY
      const pid = yield* Effect.gen(function* () {
        const gateway = yield* Gateway
        yield* Effect.scoped(gateway.open("over", routeIn()))
        // the run's scope has ended, and its route with it
        assert.strictEqual((yield* ask(socket, { path: "/v1/messages" })).status, 0)
        yield* Scope.provide(gateway.open("run", routeIn()), left)
        assert.strictEqual((yield* ask(socket, { path: "/v1/messages" })).status, 200)
        assert.strictEqual((yield* gateway.count("run"))?.requests, 1)
        return (yield* gateway.pid) ?? 0
      }).pipe(
        Effect.scoped,
        Effect.provide(layer()),
        Effect.ensuring(Effect.sync(() => delete process.env["GATEWAY_TEST_KEY"]))
      )
      assert.isAbove(pid, 0)
      yield* Effect.addFinalizer(() => ended(pid))
      assert.notInclude(environmentOf(pid), KEY)
      assert.notInclude(argumentsOf(pid), KEY)
      const files = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
      for (const { name, parentPath } of files)
        assert.notInclude(fs.readFileSync(path.join(parentPath, name), "utf8"), KEY)
      assert.strictEqual((yield* ask(socket, { path: "/v1/messages" })).status, 200)
      yield* Effect.gen(function* () {
        const gateway = yield* Gateway
        yield* gateway.open("next", routeIn())
        assert.isUndefined(yield* gateway.pid, "the same process serves")
        assert.strictEqual((yield* ask(socket, { path: "/v1/messages" })).status, 200)
      }).pipe(Effect.scoped, Effect.provide(layer()))
    })
  )

  live(
    "is started again when it was killed, and the run's socket is bound anew in its folder",
    Effect.gen(function* () {
      const { socket } = routeIn()
      yield* Effect.gen(function* () {
        const gateway = yield* Gateway
        yield* gateway.open("run", routeIn())
        const first = (yield* gateway.pid) ?? 0
        yield* ended(first)
        const answered = Effect.map(ask(socket, { path: "/v1/messages" }), ({ status }) => status === 200)
        yield* answered.pipe(Effect.repeat({ until: (is) => is }))
        const second = (yield* gateway.pid) ?? 0
        assert.notStrictEqual(second, first)
        yield* Effect.addFinalizer(() => ended(second))
      }).pipe(Effect.scoped, Effect.provide(Layer.fresh(layer())))
    })
  )

  live(
    "holds a route for a run that is connected, and tells by nothing what its key is",
    Effect.gen(function* () {
      const { held, socket } = yield* route(base)
      assert.isFalse(held())
      const request = http.get({ socketPath: socket, path: HOLD, agent: false })
      yield* Effect.callback<void>((resume) => void request.once("response", () => resume(Effect.void)))
      assert.isTrue(held())
      request.destroy()
      yield* Effect.sync(held).pipe(Effect.tap(Effect.sleep("5 millis")), Effect.repeat({ until: (is) => !is }))
    })
  )
})
