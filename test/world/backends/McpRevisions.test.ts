/** Servers of the official SDK that serve only the revision of 2026, or only those before it, over pipes and HTTP. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, type FileSystem, type Scope } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { join } from "node:path"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import * as McpTools from "../../../src/model-agent/McpTools.ts"
import type { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import type { Reaper } from "../../../src/runs/process/Reaper.ts"
import type { Tool } from "../../../src/model-agent/Tool.ts"
import { layer, until } from "../../support/backend-run.ts"
import * as McpGateway from "../../support/McpGateway.ts"
import { call, yard } from "../../support/toolbox.ts"

const SDK = join(import.meta.dirname, "../../fixtures/mcp-sdk-server.mjs")
const OWN = join(import.meta.dirname, "../../fixtures/mcp-server.mjs")

/** A remote server, by its port. */
const remote = (how: string, notes: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(process.execPath, [SDK, "http", how, notes], { stdio: ["ignore", "pipe", "inherit"] })
      const [port] = await once(child.stdout, "data")
      return { child, url: `http://127.0.0.1:${String(port).trim()}/mcp` }
    }),
    ({ child }) => Effect.sync(() => child.kill())
  )

const setup = Effect.fnUntraced(function* (over: string, how: string, program = SDK) {
  const { at, root, host, spec } = yield* yard
  const notes = at("notes")
  fs.writeFileSync(notes, "")
  const noted = () => fs.readFileSync(notes, "utf8")
  const argv = program === SDK ? [process.execPath, SDK, over, how, notes] : [process.execPath, OWN, how, notes]
  const remotes = over === "http" ? { sdk: { url: (yield* remote(how, notes)).url } } : {}
  const { socket, urlOf } = yield* McpGateway.open(at(), remotes)
  const server = over === "http" ? { url: urlOf("sdk") } : { argv }
  const said: Array<string> = []
  const emit = (event: RunEvent) => Effect.sync(() => void (event._tag === "Notice" && said.push(event.text)))
  const tools = yield* McpTools.make({
    servers: { sdk: { env: {}, ...server } },
    spec,
    host,
    cwd: root,
    emit,
    pause: Duration.seconds(30),
    probe: how === "mute" ? 500 : undefined
  }).pipe(McpGateway.through(socket))
  const named = (name: string): Tool | undefined => tools().find((tool) => tool.name === `sdk__${name}`)
  const starts = () => noted().split("pid").length - 1
  return { noted, said, named, starts }
})

const live = (
  name: string,
  body: Effect.Effect<void, unknown, FileSystem.FileSystem | Scope.Scope | ProcessTree | Reaper>
) => it.live(name, () => body.pipe(Effect.scoped, Effect.provide(layer)))

for (const over of ["pipes", "http"]) {
  for (const how of ["new", "old"]) {
    describe(`a server over ${over} that serves only the ${how} revisions`, () => {
      live(
        "is started once, its tools are called, and a call that is given up is cancelled there",
        Effect.gen(function* () {
          const { named, noted, said, starts } = yield* setup(over, how)
          assert.strictEqual((yield* call(named("echo"), { text: "hi" })).output, "hi")
          const slow = yield* Effect.forkScoped(call(named("slow"), { text: "x" }))
          yield* until(() => noted().includes("slow has begun"))
          yield* Fiber.interrupt(slow)
          yield* until(() => noted().includes("slow was cancelled"))
          assert.strictEqual((yield* call(named("echo"), { text: "on" })).output, "on")
          assert.strictEqual(starts(), 1)
          assert.deepStrictEqual(said, [])
        })
      )
    })
  }
}

describe("a server that speaks no revision of ours", () => {
  for (const over of ["pipes", "http"])
    live(
      `is refused over ${over} with the revisions that it names`,
      Effect.gen(function* () {
        const { said } = yield* setup(over, "future")
        yield* until(() => said.length > 0)
        assert.include(
          said[0]!,
          "the MCP server sdk speaks only MCP 2031-01-01, 2032-01-01: agentd speaks no revision of it;"
        )
      })
    )
})

describe("an old program that does not expect to be asked for its revision", () => {
  live(
    "ends of it: it is started again, is not asked then, and nothing is said of it",
    Effect.gen(function* () {
      const { named, said, starts } = yield* setup("pipes", "strict", OWN)
      assert.strictEqual((yield* call(named("echo"), { text: "hi" })).status, "success")
      assert.strictEqual(starts(), 2)
      assert.deepStrictEqual(said, [])
    })
  )

  live(
    "does not answer: it is taken for an old one",
    Effect.gen(function* () {
      const { named, said, starts } = yield* setup("pipes", "mute", OWN)
      assert.strictEqual((yield* call(named("echo"), { text: "hi" })).status, "success")
      assert.strictEqual(starts(), 1)
      assert.deepStrictEqual(said, [])
    })
  )
})
