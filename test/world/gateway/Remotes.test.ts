/** The gateway as the way to remote MCP servers: what a run reaches through it, and which tokens go where. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import * as http from "node:http"
import { type AddressInfo, connect } from "node:net"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { Gateway } from "../../../src/runs/gateway/GatewayClient.ts"
import * as RemoteLogin from "../../../src/runs/gateway/RemoteLogin.ts"
import { pathOf, type RemoteServers, without } from "../../../src/runs/gateway/Remotes.ts"
import { until } from "../../support/backend-run.ts"
import * as McpGateway from "../../support/McpGateway.ts"
import * as McpStand from "../../support/McpStand.ts"
import * as Scratch from "../../support/Scratch.ts"

const TOKEN = "the-token-of-the-config"
const INITIALIZE = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-06-18" } }

interface Asked {
  readonly path?: string
  readonly method?: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: string
}

const ask = (socketPath: string, asked: Asked = {}) =>
  Effect.callback<{ readonly status: number; readonly text: string; readonly headers: http.IncomingHttpHeaders }>(
    (resume) => {
      const { body = JSON.stringify(INITIALIZE), headers = {}, method = "POST", path = pathOf("tracker") } = asked
      const request = http.request({ socketPath, method, path, headers, agent: false }, (answer) => {
        let text = ""
        answer.on("data", (data) => (text += data))
        answer.on("close", () =>
          resume(Effect.succeed({ status: answer.statusCode ?? 0, text, headers: answer.headers }))
        )
      })
      request.on("error", ({ message }) => resume(Effect.succeed({ status: 0, text: message, headers: {} })))
      request.end(body)
    }
  )

const setup = Effect.fnUntraced(function* (ways: McpStand.Ways = {}, more: RemoteServers = {}) {
  const folder = yield* Scratch.folder("agentd-remotes-")
  const stand = yield* McpStand.stand(ways)
  const remotes = { tracker: { url: stand.url, token: TOKEN }, ...more }
  return { folder, stand, ...(yield* McpGateway.open(folder, remotes)) }
})

describe("a run at the gateway", () => {
  it.live("reaches the servers of its route by their names, and nothing else at them", () =>
    Effect.gen(function* () {
      const { count, socket, stand } = yield* setup()
      assert.strictEqual((yield* ask(socket)).status, 200)
      for (const asked of [
        { path: pathOf("other") },
        { path: `${pathOf("tracker")}/../authorize` },
        { path: `${pathOf("tracker")}?redirect=1` },
        { path: "/agentd/mcp/" },
        { path: "/agentd/mcp/constructor" },
        { method: "GET", body: "" },
        { method: "PUT" }
      ])
        assert.strictEqual((yield* ask(socket, asked)).status, 403, JSON.stringify(asked))
      assert.strictEqual(count().refused, 7)
      assert.deepStrictEqual(
        stand.seen.map(({ path }) => path),
        ["/mcp"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("sends no key of its own, and neither the provider's key", () =>
    Effect.gen(function* () {
      const { socket, stand } = yield* setup()
      yield* ask(socket, {
        headers: { authorization: "Bearer mine", cookie: "a=b", "x-api-key": "mine", "mcp-session-id": "s1" }
      })
      const { headers } = stand.seen[0]!
      assert.strictEqual(headers.authorization, `Bearer ${TOKEN}`)
      assert.strictEqual(headers["mcp-session-id"], "s1")
      assert.isUndefined(headers.cookie)
      assert.isUndefined(headers["x-api-key"])
    }).pipe(Effect.scoped)
  )

  it.live("is told why a server cannot be used, and that a request is too large", () =>
    Effect.gen(function* () {
      const problem = "cannot be used: there is no variable TRACKER"
      const { socket, stand } = yield* setup({}, { broken: { url: "https://mcp.example.org", problem } })
      assert.deepInclude(yield* ask(socket, { path: pathOf("broken") }), { status: 502, text: problem })
      const { text } = yield* ask(socket, { body: "x".repeat(40 * 1024 * 1024) })
      assert.match(text, /too large/)
      assert.deepStrictEqual(stand.seen, [])
    }).pipe(Effect.scoped)
  )
})

describe("a token that a server sends back", () => {
  for (const size of [1, 3, 7, 100])
    it.live(`is removed, and nothing else, if it comes in parts of ${size} bytes`, () =>
      Effect.gen(function* () {
        const text = `ä${TOKEN}${TOKEN.slice(0, 5)} the-token-of the ${TOKEN}ü${TOKEN.slice(0, -1)}`
        const bytes = Buffer.from(text)
        const stream = without(TOKEN)
        const parts: Array<Buffer> = []
        stream.on("data", (part: Buffer) => parts.push(part))
        for (let at = 0; at < bytes.length; at += size) stream.write(bytes.subarray(at, at + size))
        yield* Effect.callback<void>((resume) => void stream.end(() => resume(Effect.void)))
        assert.strictEqual(Buffer.concat(parts).toString(), text.replaceAll(TOKEN, "[redacted]"))
      })
    )
})

/** A server that answers as it is told, on loopback. */
const server = (answer: http.RequestListener) =>
  Effect.acquireRelease(
    Effect.callback<http.Server>((resume) => {
      const one = http.createServer(answer)
      one.listen(0, "127.0.0.1", () => resume(Effect.succeed(one)))
    }),
    (one) =>
      Effect.sync(() => {
        one.close()
        one.closeAllConnections()
      })
  ).pipe(Effect.map((one) => `http://127.0.0.1:${(one.address() as AddressInfo).port}/mcp`))

it.live("a token that a server sends back in a header is removed; a compressed answer is refused", () =>
  Effect.gen(function* () {
    const plain = yield* server((_, response) =>
      response.writeHead(200, { "mcp-session-id": `s-${TOKEN}`, "set-cookie": [`a=${TOKEN}`, "b=1"] }).end("{}")
    )
    const zipped = yield* server((_, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(TOKEN))
    )
    const folder = yield* Scratch.folder("agentd-remotes-")
    const { socket } = yield* McpGateway.open(folder, {
      tracker: { url: plain, token: TOKEN },
      zipped: { url: zipped, token: TOKEN }
    })
    const { headers } = yield* ask(socket)
    assert.strictEqual(headers["mcp-session-id"], "s-[redacted]")
    assert.deepStrictEqual(headers["set-cookie"], ["a=[redacted]", "b=1"])
    const { status, text } = yield* ask(socket, { path: pathOf("zipped") })
    assert.deepStrictEqual([status, text], [502, "sent a compressed answer, from which no token can be removed"])
  }).pipe(Effect.scoped)
)

it.live("a renewal that brings a token of any length fails in words, and the login stays", () =>
  Effect.gen(function* () {
    const url = yield* server((_, response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ access_token: "x".repeat(100_000) }))
    )
    const folder = yield* Scratch.folder("agentd-remotes-")
    const grant = { url, tokenEndpoint: url, clientId: "c", accessToken: "old-secret", refreshToken: "r-secret" }
    RemoteLogin.write(folder, grant)
    const told: Array<string> = []
    const logins = new RemoteLogin.RemoteLogins((secrets) => void told.push(...secrets))
    const failed = yield* Effect.flip(Effect.tryPromise(() => logins.token(folder, url, "old-secret")))
    assert.match(String(failed.cause), /a token of more than 16384 characters/)
    assert.deepInclude(RemoteLogin.read(folder, url), grant)
    assert.isTrue(told.every((secret) => secret.length < 100))
  }).pipe(Effect.scoped)
)

it.live("a gateway that is told to end while it opens a route ends, and leaves no socket", () =>
  Effect.gen(function* () {
    const folder = yield* Scratch.folder("agentd-remotes-")
    const control = join(folder, "control.sock")
    const main = join(import.meta.dirname, "../../../src/runs/gateway/main.ts")
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, [main, control], { stdio: ["ignore", "pipe", "inherit"] })),
      (one) => Effect.sync(() => one.kill("SIGKILL"))
    )
    const exited = new Promise<number | null>((resolve) => child.on("exit", resolve))
    yield* Effect.promise(() => new Promise((resolve) => child.stdout.once("data", resolve)))
    const socket = join(folder, "run.sock")
    const open = { id: 1, name: "run-1", do: "open", route: { socket, baseUrl: "http://127.0.0.1:9", key: null } }
    const daemon = connect(control)
    daemon.on("error", () => {})
    let replies = ""
    daemon.on("data", (data) => (replies += data))
    daemon.write(`${JSON.stringify(open)}\n${JSON.stringify({ id: 2, name: "", do: "end" })}\n`)
    yield* until(() => replies.split("\n").length > 2)
    daemon.end()
    assert.strictEqual(yield* Effect.promise(() => exited), 0)
    assert.isFalse(existsSync(socket))
  }).pipe(Effect.scoped)
)

describe("the daemon", () => {
  const route = (folder: string, remotes: RemoteServers) => ({
    socket: join(folder, "run.sock"),
    baseUrl: "http://127.0.0.1:9",
    key: { "x-api-key": "the-key" },
    remotes
  })

  it.live("learns the tokens of a login when a run begins, and each renewed one, as does the next daemon", () =>
    Effect.gen(function* () {
      const folder = yield* Scratch.folder("agentd-remotes-")
      const stand = yield* McpStand.stand({ login: true })
      const logins = join(folder, "logins")
      RemoteLogin.write(logins, {
        url: stand.url,
        tokenEndpoint: `${stand.origin}/token`,
        clientId: "client-1",
        accessToken: "old-access-secret",
        refreshToken: "refresh-0-secret"
      })
      const daemon = (learned: Array<string>) =>
        Gateway.layer({
          folder: join(folder, "gateway"),
          learn: (values) => Effect.sync(() => void learned.push(...values))
        })
      const of = route(folder, { tracker: { url: stand.url, logins } })
      const [first, second]: [Array<string>, Array<string>] = [[], []]
      yield* Effect.gen(function* () {
        const { open } = yield* Gateway
        // the run goes on without this daemon
        yield* open("run-1", of, () => true)
        assert.deepStrictEqual(first, ["old-access-secret", "refresh-0-secret"])
        assert.strictEqual((yield* ask(of.socket)).status, 200)
        assert.deepStrictEqual(first.slice(2), ["access-1-secret", "refresh-1-secret"])
        assert.strictEqual(RemoteLogin.read(logins, stand.url)?.accessToken, "access-1-secret")
      }).pipe(Effect.scoped, Effect.provide(daemon(first)))
      yield* Effect.gen(function* () {
        const { open } = yield* Gateway
        yield* open("run-1", of)
        assert.deepStrictEqual(second, first)
        assert.strictEqual((yield* ask(of.socket)).status, 200)
        // a logout counts for the next request
        RemoteLogin.remove(logins, stand.url)
        assert.strictEqual((yield* ask(of.socket)).status, 401)
      }).pipe(Effect.scoped, Effect.provide(daemon(second)))
    }).pipe(Effect.scoped)
  )

  it.live("changes the servers of a run that survived, and its open request goes on", () =>
    Effect.gen(function* () {
      const folder = yield* Scratch.folder("agentd-remotes-")
      let answer: http.ServerResponse | undefined
      const slow = yield* server((_, response) => void (answer = response))
      const quick = yield* server((_, response) => response.end("quick"))
      const of = (remotes: RemoteServers) => route(folder, remotes)
      const one = of({ tracker: { url: slow, token: TOKEN } })
      yield* Effect.gen(function* () {
        const { open } = yield* Gateway
        yield* open("run-1", one, () => true)
        const waiting = yield* Effect.forkChild(ask(one.socket))
        yield* until(() => answer !== undefined)
        yield* open("run-1", of({ other: { url: quick, token: TOKEN } }), () => true)
        assert.strictEqual((yield* ask(one.socket, { path: pathOf("other") })).text, "quick")
        assert.strictEqual((yield* ask(one.socket)).status, 403)
        answer!.end("slow")
        assert.strictEqual((yield* Fiber.join(waiting)).text, "slow")
      }).pipe(Effect.scoped, Effect.provide(Gateway.layer({ folder: join(folder, "gateway") })))
    }).pipe(Effect.scoped)
  )

  it.live("opens the way to the servers again if the gateway is killed", () =>
    Effect.gen(function* () {
      const folder = yield* Scratch.folder("agentd-remotes-")
      const stand = yield* McpStand.stand()
      const of = route(folder, { tracker: { url: stand.url, token: TOKEN } })
      yield* Effect.gen(function* () {
        const { open, pid } = yield* Gateway
        yield* open("run-1", of)
        const before = yield* pid
        assert.isDefined(before)
        process.kill(before, "SIGKILL")
        let now: number | undefined = before
        while (now === before) {
          yield* Effect.sleep("20 millis")
          now = yield* pid
        }
        let status = 0
        while (status !== 200) {
          yield* Effect.sleep("20 millis")
          status = (yield* ask(of.socket)).status
        }
        yield* until(() => stand.seen.length > 0)
        assert.strictEqual(stand.seen[0]!.headers.authorization, `Bearer ${TOKEN}`)
      }).pipe(Effect.scoped, Effect.provide(Gateway.layer({ folder: join(folder, "gateway") })))
    }).pipe(Effect.scoped)
  )
})
