/**
 * McpTools: a real server that behaves, and servers that do not.
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, type FileSystem, Scope } from "effect"
import * as fs from "node:fs"
import { join } from "node:path"
import type { BackendError, RunEvent } from "../../../src/runs/Backend.ts"
import * as McpTools from "../../../src/model-agent/McpTools.ts"
import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"
import type { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import type { Reaper } from "../../../src/runs/process/Reaper.ts"
import type { Tool } from "../../../src/model-agent/Tool.ts"
import { layer, until } from "../../support/backend-run.ts"
import { call, yard } from "../../support/toolbox.ts"

const SERVER = join(import.meta.dirname, "../../fixtures/mcp-server.mjs")

const setup = Effect.gen(function* () {
  const { at, root, host, spec } = yield* yard
  const notes = at("notes")
  fs.writeFileSync(notes, "")
  const noted = () => fs.readFileSync(notes, "utf8")
  const server = (how: string) => ({ argv: [process.execPath, SERVER, how, notes], env: { TOKEN: "given" } })
  const said: Array<Extract<RunEvent, { readonly _tag: "Notice" }>> = []
  const emit = (event: RunEvent) => Effect.sync(() => void (event._tag === "Notice" && said.push(event)))
  /** A server whose tools come and go; the second try comes at once. */
  const keep = (how: string, pause: Duration.Input = "1 millis") =>
    McpTools.make({
      servers: { records: server(how) },
      spec,
      host,
      cwd: root,
      emit,
      pause: Duration.fromInputUnsafe(pause)
    })
  const make = (how: string) => Effect.map(keep(how), (tools) => tools())
  return { noted, make, keep, said, at }
})
type Setup = Effect.Success<typeof setup>

const live = (
  name: string,
  body: (setup: Setup) => Effect.Effect<void, BackendError, FileSystem.FileSystem | Scope.Scope | ProcessTree | Reaper>
) => it.live(name, () => Effect.scoped(Effect.flatMap(setup, body)).pipe(Effect.provide(layer)))

const named = (tools: ReadonlyArray<Tool>, name: string) => tools.find((tool) => tool.name === `records__${name}`)

describe("MCP: what is plainly wrong with an input is known before anybody is asked", () => {
  const inputSchema = {
    required: ["path"],
    properties: { path: { type: "string" }, depth: { type: "integer" }, any: { type: ["string", "null"] }, odd: null }
  }
  it.each<readonly [unknown, RegExp | undefined]>([
    [{ path: "a", depth: 2, any: 7, odd: 1, more: true }, undefined],
    [{ depth: 2 }, /lacks "path"/],
    [undefined, /lacks "path"/],
    [{ path: 7 }, /"path" in the input must be of the type string/],
    [{ path: "a", depth: 1.5 }, /"depth" in the input must be of the type integer/]
  ])("%j", (input, expected) => {
    const found = McpTools.wrongIn({ inputSchema }, input)
    if (expected === undefined) assert.isUndefined(found)
    else assert.match(found!, expected)
  })

  it("a schema that makes no sense refuses nothing", () => {
    assert.isUndefined(McpTools.wrongIn({ inputSchema: { required: "path", properties: "x" } }, { path: 1 }))
  })
})

describe("MCP: a server that behaves", () => {
  live("gives its tools under its name; none is read-only on its word", ({ make, noted }) =>
    Effect.gen(function* () {
      const tools = yield* make("ok")
      assert.deepStrictEqual(
        tools.slice(0, 3).map(({ name, readOnly, parallel }) => [name, readOnly, parallel]),
        [
          ["records__echo", false, false],
          ["records__rm_all", false, false],
          ["records__drop_database", false, false]
        ]
      )
      assert.deepStrictEqual(yield* call(named(tools, "echo"), { text: "hi" }), {
        status: "success",
        output: "hi given"
      })
      // what it asks of us is answered, so that it does not wait
      yield* until(() => noted().includes("answered -32601"))
    })
  )

  live("all pages of its list are taken", ({ make }) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* make("pages")).length, 14)
    })
  )

  live("its errors are outcomes, long results are cut, and what is no text is said to be", ({ make }) =>
    Effect.gen(function* () {
      const tools = yield* make("ok")
      assert.deepStrictEqual(yield* call(named(tools, "fail"), {}), { status: "error", output: "no such record" })
      const refused = yield* call(named(tools, "refuse"), {})
      assert.strictEqual(refused.status, "error")
      assert.match(refused.output, /text is missing/)
      assert.isBelow((yield* call(named(tools, "long"), {})).output.length, 70_000)
      assert.match((yield* call(named(tools, "image"), {})).output, /image image\/png: not shown/)
    })
  )

  live("an interrupted call is told to it, and the next one is answered", ({ make, noted }) =>
    Effect.gen(function* () {
      const tools = yield* make("ok")
      const slow = yield* Effect.forkScoped(call(named(tools, "slow"), {}))
      yield* until(() => noted().includes("slow has begun"))
      yield* Fiber.interrupt(slow)
      yield* until(() => noted().includes("cancelled number"))
      assert.strictEqual((yield* call(named(tools, "echo"), { text: "on" })).status, "success")
    })
  )

  live("it is asked to end when the scope does, and is gone then", ({ make, noted }) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Scope.provide(make("ok"), scope)
      const pid = ProcessTable.identify(Number(/pid (\d+)/.exec(noted())?.[1]))
      assert.isTrue(ProcessTable.isAlive(pid))
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(ProcessTable.isAlive(pid))
    })
  )
})

describe("MCP: a server that does not behave", () => {
  for (const [how, said] of [
    ["die", /has ended \(exit code 3\): out of memory/],
    ["garbage", /not JSON-RPC/]
  ] as const) {
    live(`${how} in a call: outcomes, for this call, for those that wait, and for all later ones`, ({ make, noted }) =>
      Effect.gen(function* () {
        const tools = yield* make("ok")
        const waiting = yield* Effect.forkScoped(call(named(tools, "slow"), {}))
        yield* until(() => noted().includes("slow has begun"))
        for (const outcome of [
          yield* call(named(tools, how), {}),
          yield* Fiber.join(waiting),
          yield* call(named(tools, "echo"), { text: "x" })
        ]) {
          assert.strictEqual(outcome.status, "error")
          assert.match(outcome.output, said)
          assert.match(outcome.output, /go on without them/)
        }
      })
    )
  }

  for (const [how, words] of [
    ["dies", /has ended \(exit code 1\): no licence/],
    ["refuses", /no tools here/],
    ["garbage", /unknown form/]
  ] as const) {
    live(`${how} at its start: the run goes on without it, and says so once, with a remedy`, ({ keep, noted, said }) =>
      Effect.gen(function* () {
        const tools = yield* keep(how)
        assert.deepStrictEqual(tools(), [])
        // it is tried again and again
        yield* until(() => noted().split("pid").length > 3)
        assert.strictEqual(said.length, 1)
        assert.match(said[0]!.text, words)
        assert.match(said[0]!.text, /records.*agentd\.jsonc/)
        assert.deepStrictEqual(said[0]!.lasting, { about: "the MCP server records", isOver: false })
      })
    )
  }

  live("it dies: its tools are gone, that is said, and it is back after a wait", ({ keep, noted, said }) =>
    Effect.gen(function* () {
      const tools = yield* keep("ok", "300 millis")
      const before = tools()
      yield* call(named(before, "die"), {})
      yield* until(() => said.length > 0)
      assert.deepStrictEqual(tools(), [])
      assert.match(said[0]!.text, /has ended \(exit code 3\): out of memory; its 14 tools are gone/)
      yield* until(() => tools().length > 0)
      assert.strictEqual(noted().split("pid").length - 1, 2)
      assert.strictEqual((yield* call(named(tools(), "echo"), { text: "back" })).output, "back given")
      assert.deepStrictEqual(said.at(-1)!.lasting, { about: "the MCP server records", isOver: true })
      // what was planned with the old one is a tool's error, and no end
      assert.strictEqual((yield* call(named(before, "echo"), { text: "x" })).status, "error")
    })
  )

  live("it hangs in a call: given up, it is asked whether it is there, and is started again where it is not", (setup) =>
    Effect.gen(function* () {
      const { keep, noted, said } = setup
      const tools = yield* keep("ok")
      const slow = yield* Effect.forkScoped(call(named(tools(), "hang"), {}))
      yield* until(() => noted().includes("hangs"))
      yield* Fiber.interrupt(slow)
      yield* until(() => said.some(({ text }) => text.includes("no longer answers")))
      yield* until(() => tools().length > 0)
      assert.strictEqual((yield* call(named(tools(), "echo"), { text: "on" })).status, "success")
    })
  )

  live("it floods, asks without end, and answers twice: the call has one answer, and the next one its own", (setup) =>
    Effect.gen(function* () {
      const tools = (yield* setup.keep("ok"))()
      assert.strictEqual((yield* call(named(tools, "flood"), {})).output, "flooded")
      assert.strictEqual((yield* call(named(tools, "twice"), {})).output, "first")
      assert.strictEqual((yield* call(named(tools, "echo"), { text: "own" })).output, "own given")
    })
  )

  live("it answers with 50 MB: a tool's error, and the memory is its own again", ({ keep }) =>
    Effect.gen(function* () {
      const tools = yield* keep("ok")
      const outcome = yield* call(named(tools(), "huge"), {})
      assert.strictEqual(outcome.status, "error")
      assert.match(outcome.output, /more than 4 MB at once/)
      yield* until(() => tools().length > 0)
    })
  )

  live("a program that does not exist is named", ({ said }) =>
    Effect.gen(function* () {
      const { host, spec, root } = yield* yard
      const servers = { none: { argv: ["/nowhere/server"], env: {} } }
      const emit = (event: RunEvent) => Effect.sync(() => void (event._tag === "Notice" && said.push(event)))
      yield* McpTools.make({ servers, spec, host, cwd: root, emit })
      yield* until(() => said.length > 0)
      assert.match(said[0]!.text, /\/nowhere\/server/)
    })
  )
})
