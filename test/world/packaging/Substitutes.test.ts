/**
 * Why src does not use what a library has: each reason, as a comment names it, held against the pinned version. A test
 * that fails here says that the reason is gone: use the library, and delete the code of our own and the test.
 *
 * (`web/Graph.ts` and `web/pages/CostChart.tsx` name libraries that are not installed.)
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Cron, Deferred, Effect, Layer, Queue, Random, Result, Schedule, Sink, Stdio, Stream } from "effect"
import { McpProtocol, McpServer } from "effect/ai"
import { discoverAuthorizationServerMetadata, registerClient } from "@modelcontextprotocol/client"
import * as Tar from "effect/encoding/Tar"
import { HttpServer, HttpServerResponse } from "effect/http"
import { ChildProcess } from "effect/process"
import { type ParseError, parse } from "jsonc-parser"
import { createSocket } from "node:dgram"
import { createServer } from "node:http"
import { processDynamicClientRegistrationResponse } from "oauth4webapi"

describe("jsonc-parser (config/Jsonc.ts)", () => {
  const errors = (text: string) => {
    const found: Array<ParseError> = []
    parse(text, found)
    return found
  }

  it("overflows the stack at a deep nesting", () => {
    assert.throws(() => errors("[".repeat(100_000)), RangeError)
  })

  it("does not report a duplicate key", () => {
    assert.deepStrictEqual(errors('{"a":1,"a":2}'), [])
  })

  it("reports errors that its own recovery causes", () => {
    // one mistake
    assert.lengthOf(errors('{"a": tru, "b": 1}'), 2)
  })
})

/** Effect's McpServer on pipes: what it writes, line by line. */
const mcp = Effect.gen(function* () {
  const input = yield* Queue.unbounded<Uint8Array, never>()
  const output = yield* Queue.unbounded<string>()
  const stdio = Stdio.make({
    args: Effect.succeed([]),
    stdinIsTerminal: Effect.succeed(false),
    stdoutIsTerminal: Effect.succeed(false),
    stdin: Stream.fromQueue(input),
    stdout: () => Sink.forEach((chunk: string | Uint8Array) => Queue.offer(output, String(chunk))),
    stderr: () => Sink.drain
  })
  yield* McpServer.layerStdio({ name: "t", version: "1", protocols: [McpProtocol.v2025_06_18] }).pipe(
    Layer.provide(Layer.succeed(Stdio.Stdio)(stdio)),
    Layer.launch,
    Effect.forkScoped
  )
  const say = (text: string) => Queue.offer(input, new TextEncoder().encode(text))
  const ping = (id: string) => JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })
  const answer = Effect.map(Queue.take(output), (line) => (JSON.parse(line) as { readonly id: unknown }).id)
  return { say, ping, answer, output }
})

describe("Effect's McpServer (cli/mcp/McpInput.ts)", () => {
  it.live("does not answer a line that is not JSON", () =>
    Effect.gen(function* () {
      const { answer, ping, say } = yield* mcp
      yield* say("rubbish\n")
      // the server reads again after a while
      yield* Effect.forkScoped(Effect.repeat(say(`${ping("next")}\n`), Schedule.spaced("200 millis")))
      assert.strictEqual(yield* answer, "next")
    })
  )

  it.live("stores a line of more than 2 MB", () =>
    Effect.gen(function* () {
      const { answer, ping, say } = yield* mcp
      yield* say(`${" ".repeat(3 * 1024 * 1024)}${ping("long")}\n`)
      assert.strictEqual(yield* answer, "long")
    })
  )

  it.live("does not answer a last line that has no line end", () =>
    Effect.gen(function* () {
      const { answer, output, ping, say } = yield* mcp
      yield* say(`${ping("first")}\n${ping("last")}`)
      assert.strictEqual(yield* answer, "first")
      yield* Effect.sleep("200 millis")
      assert.strictEqual(yield* Queue.size(output), 0)
    })
  )

  it.live("does not name the tools in its answer to a call of an unknown one", () =>
    Effect.gen(function* () {
      const { output, say } = yield* mcp
      const clientInfo = { name: "a test", version: "1" }
      const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo }
      yield* say(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`)
      yield* Queue.take(output)
      yield* say(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`)
      yield* say(`${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "x" } })}\n`)
      const { error } = JSON.parse(yield* Queue.take(output)) as { readonly error?: { readonly message: string } }
      assert.strictEqual(error?.message, "Tool 'x' not found")
    })
  )
})

describe("Node", () => {
  it("has no Unix datagram sockets (systemd/Notify.ts, systemd/JournalEntry.ts)", () => {
    assert.throws(() => createSocket("unix_dgram" as "udp4"), /socket type/i)
  })
})

describe("Effect", () => {
  it("Cron.next throws if it finds no time (config/CronTimes.ts)", () => {
    const never = Result.getOrThrow(Cron.parse("0 0 30 2 *", "UTC"))
    assert.throws(() => Cron.next(never, 0))
  })

  it.effect("Random's numbers can be chosen (api/http/Tokens.ts)", () =>
    Effect.gen(function* () {
      const drawn = Random.withSeed(Random.nextInt, "a seed")
      assert.strictEqual(yield* drawn, yield* drawn)
    })
  )

  it.live("ChildProcess reports a signal only as part of a message (app/Foreground.ts)", () =>
    Effect.gen(function* () {
      const child = yield* ChildProcess.make("sh", ["-c", "kill -TERM $$"])
      const error = yield* Effect.flip(child.exitCode)
      assert.include(String(error.cause), "SIGTERM")
      const fields = [{ ...error.reason }, { ...(error.cause as Error) }]
      assert.notInclude(JSON.stringify(fields), "SIGTERM")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("Tar.decode does not check an entry's padding (backup/Tar.ts)", () =>
    Effect.gen(function* () {
      const content = new TextEncoder().encode("content")
      const entry = Tar.fileStream("file", content.length, Stream.make(content), { mode: 0o600 })
      const encoded = Stream.pipeThroughChannel(Stream.make(entry), Tar.encode<unknown, unknown, Tar.Entry<unknown>>())
      const bytes = Buffer.concat(yield* Stream.runCollect(encoded))
      bytes[512 + content.length] = 1
      const decoded = Stream.pipeThroughChannel(Stream.make<Array<Uint8Array>>(bytes), Tar.decode())
      const read = Stream.mapEffect(decoded, ({ body }) => Stream.runCollect(body))
      assert.strictEqual(Buffer.concat((yield* Stream.runCollect(read)).flat()).toString(), "content")
    })
  )

  it.live("an HTTP server's handler is not interrupted when its client goes (api/http/Api.ts)", () =>
    Effect.gen(function* () {
      const [begun, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let interrupted = false
      const handler = Deferred.succeed(begun, undefined).pipe(
        Effect.andThen(Deferred.await(gate)),
        Effect.onInterrupt(() => Effect.sync(() => (interrupted = true))),
        Effect.as(HttpServerResponse.empty())
      )
      const server = yield* HttpServer.HttpServer
      yield* server.serve(handler)
      const port = "port" in server.address ? server.address.port : 0
      const client = new AbortController()
      const asked = fetch(`http://127.0.0.1:${port}/`, { signal: client.signal }).catch(() => undefined)
      yield* Deferred.await(begun)
      client.abort()
      yield* Effect.promise(() => asked)
      yield* Effect.sleep("300 millis")
      assert.isFalse(interrupted)
      yield* Deferred.succeed(gate, undefined)
    }).pipe(Effect.provide(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })))
  )
})

describe("the registration of a client (cli/mcp/OAuth.ts)", () => {
  it("by @modelcontextprotocol/client rejects an issuer that answers with the id alone", async () => {
    const registered = registerClient("https://issuer.example.org", {
      clientMetadata: { redirect_uris: ["http://127.0.0.1:1/callback"] },
      fetchFn: async () => Response.json({ client_id: "c" }, { status: 201 })
    })
    await registered.then(
      () => assert.fail("it was accepted"),
      (error: Error) => assert.strictEqual(error.name, "ZodError")
    )
  })

  it("by oauth4webapi rejects an issuer that answers with the status 200", async () => {
    await processDynamicClientRegistrationResponse(Response.json({ client_id: "c" })).then(
      () => assert.fail("it was accepted"),
      (error: Error) => assert.include(error.message, "unexpected HTTP status code")
    )
  })
})

describe("the discovery of issuers in @modelcontextprotocol/client (cli/mcp/OAuth.ts)", () => {
  const ISSUER = "https://issuer.example.org"
  const device_authorization_endpoint = `${ISSUER}/device`
  const described = (name: string, description: object) =>
    discoverAuthorizationServerMetadata(ISSUER, {
      fetchFn: async (url) =>
        String(url) === `${ISSUER}/.well-known/${name}`
          ? Response.json({ issuer: ISSUER, token_endpoint: `${ISSUER}/token`, ...description })
          : new Response("", { status: 404 })
    })

  it("drops the address for codes from a description by OpenID", async () => {
    const found = await described("openid-configuration", {
      authorization_endpoint: `${ISSUER}/authorize`,
      jwks_uri: `${ISSUER}/keys`,
      response_types_supported: ["code"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["RS256"],
      device_authorization_endpoint
    })
    assert.isDefined(found)
    assert.notProperty(found, "device_authorization_endpoint")
  })

  it("requires a web page for logins", async () => {
    const description = { response_types_supported: ["code"], device_authorization_endpoint }
    const error = await described("oauth-authorization-server", description).catch((error: unknown) => error)
    assert.match(String(error), /authorization_endpoint/)
  })
})
