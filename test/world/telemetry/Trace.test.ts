/** Tests of the trace of one `send`, from the verb to the process that worked on it, as a collector on loopback receives it. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string }
}

interface SentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly attributes: ReadonlyArray<Attribute>
}

interface Sent {
  readonly resourceSpans: ReadonlyArray<{
    readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<SentSpan> }>
  }>
}

const collector = Effect.acquireRelease(
  Effect.promise(async () => {
    const spans: Array<SentSpan> = []
    const bodies: Array<string> = []
    const figures: Array<string> = []
    const server = createServer((request, response) => {
      let body = ""
      request.setEncoding("utf8").on("data", (text: string) => (body += text))
      request.on("end", () => {
        bodies.push(body)
        if (request.url === "/v1/traces")
          spans.push(
            ...(JSON.parse(body) as Sent).resourceSpans.flatMap(({ scopeSpans }) =>
              scopeSpans.flatMap((scope) => scope.spans)
            )
          )
        else figures.push(body)
        response.end("{}")
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return { server, spans, bodies, figures, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  }),
  ({ server }) => Effect.sync(() => server.close().closeAllConnections())
)

const configured = Effect.fnUntraced(function* (otlp: string | undefined) {
  const box = yield* Sandbox.make()
  box.configure({ agents: { worker: { backend: { type: "command", shell: "cat > /dev/null; echo $$ > pid" } } } })
  mkdirSync(join(box.folder, "config/agentd"), { recursive: true })
  writeFileSync(
    join(box.folder, "config/agentd/config.jsonc"),
    JSON.stringify({ http: { enabled: false }, ...(otlp === undefined ? {} : { telemetry: { otlp } }) })
  )
  yield* box.up()
  yield* box.untilAgent("worker", "waits for work", ({ state }) => state === "BuildingPrompt")
  return box
})

const TRACE = "0af7651916cd43dd8448eb211c80319c"
const PARENT = "b7ad6b7169203331"

it.live("one send is one trace from the verb to the process", () =>
  Effect.gen(function* () {
    const { address, bodies, figures, spans } = yield* collector
    const box = yield* configured(address)
    box.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = address
    box.environment["TRACEPARENT"] = `00-${TRACE}-${PARENT}-01`
    assert.strictEqual((yield* box.cli("send", "worker", "a text of a person")).code, 0)
    const turn = yield* box.until(
      "the turn is told",
      Effect.sync(() => spans.find(({ name }) => name === "turn")),
      (span) => span !== undefined
    )
    const named = (name: string) => spans.find((span) => span.name === name)
    yield* box.until(
      "the verb is told",
      Effect.sync(() => named("agentd send")),
      (span) => span !== undefined
    )
    // from the turn up to the span that the script was in
    const chain: Array<string> = []
    let span: SentSpan | undefined = turn
    while (span !== undefined) {
      chain.push(span.name)
      assert.strictEqual(span.traceId, TRACE)
      const above: string | undefined = span.parentSpanId
      span = spans.find(({ spanId }) => spanId === above)
      if (span === undefined) assert.strictEqual(above, PARENT)
    }
    assert.deepStrictEqual(chain, ["turn", "message", "agentd.Send", "agentd.Send", "agentd send"])
    const pid = turn!.attributes.find(({ key }) => key === "process.pid")
    const [started] = yield* box.runes("turn.started")
    const { event } = started!.payload as { event: { run: { pid: number } } }
    assert.strictEqual(Number(pid?.value.intValue), event.run.pid)
    yield* box.until(
      "figures are told",
      Effect.sync(() => figures.join("")),
      (text) => text.includes("agentd_turn_seconds")
    )
    assert.notInclude(bodies.join(""), "a text of a person")
  }).pipe(Effect.scoped)
)

it.live("nothing is sent where no collector is named, and one that is away holds up nobody", () =>
  Effect.gen(function* () {
    const { address, bodies } = yield* collector
    const quiet = yield* configured(undefined)
    assert.strictEqual((yield* quiet.cli("send", "worker", "x")).code, 0)
    yield* quiet.until("it worked", quiet.runes("turn.completed"), (runes) => runes.length === 1)
    yield* quiet.terminate
    assert.deepStrictEqual(bodies, [])
    const away = yield* configured(address.replace(/\d+$/u, "1"))
    assert.strictEqual((yield* away.cli("send", "worker", "x")).code, 0)
    yield* away.until("it worked", away.runes("turn.completed"), (runes) => runes.length === 1)
    assert.strictEqual(yield* away.terminate, 0)
  }).pipe(Effect.scoped)
)
