/** Remote MCP servers work as local ones do, and what they do wrong ends no agent. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, type FileSystem, Fiber, type Scope } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import * as fs from "node:fs"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import * as OAuth from "../../../src/cli/mcp/OAuth.ts"
import * as McpConnection from "../../../src/model-agent/McpConnection.ts"
import * as McpHttp from "../../../src/model-agent/McpHttp.ts"
import * as McpTools from "../../../src/model-agent/McpTools.ts"
import * as RemoteLogin from "../../../src/runs/gateway/RemoteLogin.ts"
import type { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import type { Reaper } from "../../../src/runs/process/Reaper.ts"
import { layer, until } from "../../support/backend-run.ts"
import * as McpGateway from "../../support/McpGateway.ts"
import * as McpStand from "../../support/McpStand.ts"
import { call, yard } from "../../support/toolbox.ts"

/** A model agent's tools, whose remote server is reached through a gateway. */
const setup = Effect.fnUntraced(function* (ways: McpStand.Ways = {}, server: { readonly token?: string } = {}) {
  const { at, root, host, spec } = yield* yard
  const stand = yield* McpStand.stand(ways)
  const logins = at("logins")
  const remotes = { tracker: { url: stand.url, ...(server.token === undefined ? { logins } : server) } }
  const { socket, told, urlOf } = yield* McpGateway.open(at(), remotes)
  const said: Array<string> = []
  const emit = (event: RunEvent) => Effect.sync(() => void (event._tag === "Notice" && said.push(event.text)))
  const tools = McpTools.make({
    servers: { tracker: { url: urlOf("tracker"), env: {} } },
    spec,
    host,
    cwd: root,
    emit,
    pause: Duration.millis(20)
  }).pipe(McpGateway.through(socket))
  const grant = (more: Partial<RemoteLogin.Grant> = {}) =>
    RemoteLogin.write(logins, {
      url: stand.url,
      tokenEndpoint: `${stand.origin}/token`,
      clientId: "client-1",
      accessToken: "access-0-secret",
      refreshToken: "refresh-0-secret",
      ...more
    })
  const named = (all: () => ReadonlyArray<{ readonly name: string }>, name: string) =>
    all().find((tool) => tool.name === `tracker__${name}`) as Parameters<typeof call>[0]
  return { stand, tools, said, told, logins, grant, named }
})

const live = (
  name: string,
  body: Effect.Effect<void, unknown, FileSystem.FileSystem | Scope.Scope | ProcessTree | Reaper>
) => it.live(name, () => body.pipe(Effect.scoped, Effect.provide(layer)))

for (const events of [false, true]) {
  describe(events ? "answered by events" : "answered by JSON", () => {
    live(
      "its tools are called, in a session of its own, which is ended with the run",
      Effect.gen(function* () {
        const { named, stand, tools } = yield* setup({ events })
        yield* Effect.scoped(
          Effect.gen(function* () {
            const all = yield* tools
            assert.deepStrictEqual(
              all().map((tool) => tool.name),
              ["tracker__echo", "tracker__token"]
            )
            assert.strictEqual((yield* call(named(all, "echo"), { text: "hi" })).output, "hi")
          })
        )
        const of = stand.seen.map(({ body, headers, method }) => [
          method === "DELETE" ? method : JSON.parse(body).method,
          headers["mcp-session-id"],
          headers["mcp-protocol-version"]
        ])
        assert.deepStrictEqual(of.slice(0, 2), [
          ["server/discover", undefined, "2026-07-28"],
          ["initialize", undefined, undefined]
        ])
        assert.deepStrictEqual(of.at(-1), ["DELETE", "session-1", "2025-11-25"])
        // what it asks meanwhile is answered
        if (events) assert.isTrue(stand.seen.some(({ body }) => body.includes('"theirs"')))
      })
    )

    live(
      "a session that it has forgotten is begun anew, and the call is made",
      Effect.gen(function* () {
        const { named, said, stand, tools } = yield* setup({ events })
        const all = yield* tools
        stand.forget()
        const both = yield* Effect.all(
          [call(named(all, "echo"), { text: "a" }), call(named(all, "echo"), { text: "b" })],
          { concurrency: 2 }
        )
        assert.deepStrictEqual(
          both.map(({ output }) => output),
          ["a", "b"]
        )
        assert.strictEqual(stand.seen.filter(({ body }) => body.includes('"initialize"')).length, 2)
        assert.deepStrictEqual(said, [])
      })
    )
  })
}

describe("its connections", () => {
  live(
    "are not held by answers of which nothing is wanted: each is read, or given up",
    Effect.gen(function* () {
      const answers: Array<Response> = []
      const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(100)) })
      const initialized = {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "odd", version: "1" }
      }
      // with a body where the protocol has none, as some servers do it; the last one never ends
      const client = HttpClient.make((request) =>
        Effect.sync(() => {
          const { id, method } = JSON.parse(
            request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "{}"
          )
          const [status, body] =
            method === "server/discover"
              ? [404, "{}"]
              : method === "initialize"
                ? [200, JSON.stringify({ jsonrpc: "2.0", id, result: initialized })]
                : [202, endless()]
          const headers = { "content-type": "application/json" }
          const answer = new Response(body, { status, headers })
          answers.push(answer)
          return HttpClientResponse.fromWeb(request, answer)
        })
      )
      const remote = { client, url: "http://127.0.0.1:1/mcp", login: "" }
      yield* McpConnection.make("tracker", yield* McpHttp.make(remote))
      assert.deepStrictEqual(
        answers.map(({ bodyUsed }) => bodyUsed),
        [true, true, true]
      )
    })
  )
})

describe("a remote server that does not behave", () => {
  live(
    "it sends elsewhere: nothing follows, nobody else hears the token, and the agent goes on",
    Effect.gen(function* () {
      const other = yield* McpStand.stand()
      const { said, tools } = yield* setup({ redirect: other.url }, { token: "the-token-of-the-variable" })
      const all = yield* tools
      assert.deepStrictEqual(all(), [])
      yield* until(() => said.length > 0)
      assert.match(said[0]!, /with a redirect, which is not followed/)
      assert.deepStrictEqual(other.seen, [])
    })
  )

  for (const [how, words, isLost] of [
    ["cut", /broke off its answer|ended its answer/, false],
    ["huge", /more than 4 MB at once/, true],
    ["garbage", /not JSON-RPC/, true]
  ] as const) {
    live(
      `its answer is ${how}: a tool's error, and the next try is another one`,
      Effect.gen(function* () {
        const { named, stand, tools } = yield* setup({ call: how })
        const all = yield* tools
        const outcome = yield* call(named(all, "echo"), { text: "x" })
        assert.strictEqual(outcome.status, "error")
        assert.match(outcome.output, words)
        delete stand.ways.call
        if (isLost) yield* until(() => stand.seen.filter(({ body }) => body.includes('"initialize"')).length === 2)
        yield* until(() => all().length > 0)
        assert.strictEqual((yield* call(named(all, "echo"), { text: "on" })).output, "on")
      })
    )
  }

  live(
    "it answers twice: the first counts",
    Effect.gen(function* () {
      const { named, tools } = yield* setup({ call: "twice" })
      assert.strictEqual((yield* call(named(yield* tools, "echo"), { text: "x" })).output, "first")
    })
  )

  live(
    "it hangs in a call that is given up: it is told, and the next one is answered",
    Effect.gen(function* () {
      const { named, stand, tools } = yield* setup({ call: "hang" })
      const all = yield* tools
      const slow = yield* Effect.forkScoped(call(named(all, "echo"), { text: "x" }))
      yield* until(() => stand.seen.some(({ body }) => body.includes("tools/call")))
      yield* Fiber.interrupt(slow)
      yield* until(() => stand.seen.some(({ body }) => body.includes("notifications/cancelled")))
      delete stand.ways.call
      assert.strictEqual((yield* call(named(all, "echo"), { text: "on" })).output, "on")
    })
  )

  live(
    "it goes away: its tools are gone, that is said, and they are back with it",
    Effect.gen(function* () {
      const { named, said, stand, tools } = yield* setup({})
      const all = yield* tools
      stand.close()
      const outcome = yield* call(named(all, "echo"), { text: "x" })
      assert.strictEqual(outcome.status, "error")
      yield* until(() => said.length > 0)
      assert.deepStrictEqual(all(), [])
      assert.include(said[0]!, `cannot be reached at ${stand.url}: `)
      assert.match(said[0]!, /its 2 tools are gone/)
    })
  )
})

describe("a remote server that wants a login", () => {
  live(
    "without one: no tools, and a word on how to log in",
    Effect.gen(function* () {
      const { said, tools } = yield* setup({ login: true })
      assert.deepStrictEqual((yield* tools)(), [])
      yield* until(() => said.length > 0)
      assert.match(said[0]!, /agentd login tracker/)
    })
  )

  live(
    "with one: it is taken, renewed where it is refused, and shown to nobody",
    Effect.gen(function* () {
      const { grant, logins, named, said, stand, told, tools } = yield* setup({ login: true })
      grant()
      assert.strictEqual(fs.statSync(RemoteLogin.fileOf(logins, stand.url)).mode & 0o777, 0o600)
      assert.strictEqual(fs.statSync(logins).mode & 0o777, 0o700)
      const all = yield* tools
      assert.strictEqual((yield* call(named(all, "token"), {})).output, "Bearer [redacted]")
      // two at once renew it once
      stand.revoke()
      const both = yield* Effect.all([call(named(all, "echo"), { text: "a" }), call(named(all, "token"), {})], {
        concurrency: 2
      })
      assert.deepStrictEqual(
        both.map(({ output }) => output),
        ["a", "Bearer [redacted]"]
      )
      assert.strictEqual(stand.seen.filter(({ path }) => path === "/token").length, 1)
      assert.strictEqual(RemoteLogin.read(logins, stand.url)?.accessToken, "access-2-secret")
      for (const secret of ["access-0-secret", "refresh-0-secret", "access-2-secret", "refresh-1-secret"])
        assert.include(told, secret)
      assert.deepStrictEqual(said, [])
    })
  )

  live(
    "one that is about to expire is renewed before it is sent",
    Effect.gen(function* () {
      const { grant, named, stand, tools } = yield* setup({ login: true })
      grant({ expiresAt: Date.now() + 1000 })
      const all = yield* tools
      assert.strictEqual((yield* call(named(all, "echo"), { text: "a" })).output, "a")
      assert.notInclude(JSON.stringify(stand.seen.map(({ headers }) => headers)), "access-0-secret")
    })
  )

  live(
    "one that the user replaces while it is renewed is the new one afterwards",
    Effect.gen(function* () {
      const { grant, logins, named, stand, tools } = yield* setup({ login: true })
      grant()
      const all = yield* tools
      stand.revoke()
      stand.ways.renews = () => grant({ accessToken: "access-2-secret", refreshToken: "refresh-9-secret" })
      assert.strictEqual((yield* call(named(all, "echo"), { text: "a" })).status, "success")
      assert.deepInclude(RemoteLogin.read(logins, stand.url), {
        accessToken: "access-2-secret",
        refreshToken: "refresh-9-secret"
      })
    })
  )

  live(
    "one that the user deletes is not sent any more, and is not there again after a renewal",
    Effect.gen(function* () {
      const { grant, logins, named, said, stand, tools } = yield* setup({ login: true })
      grant()
      const all = yield* tools
      stand.revoke()
      stand.ways.renews = () => void RemoteLogin.remove(logins, stand.url)
      assert.strictEqual((yield* call(named(all, "echo"), { text: "a" })).status, "error")
      yield* until(() => said.length > 0)
      assert.match(said[0]!, /answered 401: it requires a login: agentd login tracker/)
      assert.isUndefined(RemoteLogin.read(logins, stand.url))
      assert.notInclude(JSON.stringify(stand.seen.map(({ headers }) => headers)), "access-2-secret")
    })
  )

  live(
    "one that cannot be renewed: its tools are gone, with what to do, and without the token",
    Effect.gen(function* () {
      const { grant, named, said, stand, tools } = yield* setup({ login: true })
      grant({ refreshToken: "refresh-9-secret" })
      const all = yield* tools
      stand.revoke()
      const { output, status } = yield* call(named(all, "echo"), { text: "x" })
      assert.strictEqual(status, "error")
      yield* until(() => said.length > 0)
      for (const text of [output, ...said]) {
        assert.match(text, /used up.*agentd login tracker/)
        assert.notMatch(text, /secret/)
      }
    })
  )

  live(
    "a token is sent to the address that it was given for, whatever a config calls another one",
    Effect.gen(function* () {
      const { grant, logins, stand } = yield* setup({ login: true })
      grant()
      assert.isUndefined(RemoteLogin.read(logins, `${stand.origin}/other`))
      const file = RemoteLogin.fileOf(logins, `${stand.origin}/other`)
      fs.copyFileSync(RemoteLogin.fileOf(logins, stand.url), file)
      fs.chmodSync(file, 0o600)
      assert.isUndefined(RemoteLogin.read(logins, `${stand.origin}/other`))
    })
  )

  live(
    "a server that says that its login is for somebody else is not believed",
    Effect.gen(function* () {
      const { stand } = yield* setup({ login: true, resource: "https://bank.example.org/" })
      const error = yield* Effect.flip(OAuth.discover({ url: stand.url }))
      assert.match(error.message, /says that its login is for https:\/\/bank/)
      assert.match((yield* Effect.flip(OAuth.discover({ url: "http://example.org/mcp" }))).message, /not an HTTPS/)
    })
  )
})
