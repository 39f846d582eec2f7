/**
 * Tools: the toolbox as a run gets it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { broken } from "../../support/ToolDialect.ts"
import * as fs from "node:fs"
import { join } from "node:path"
import { Sandbox } from "../../../src/runs/sandbox/Sandbox.ts"
import * as Tools from "../../../src/model-agent/Tools.ts"
import { call, config, held, sandboxOf, SECRET, services, yard } from "../../support/toolbox.ts"

const SERVER = join(import.meta.dirname, "../../fixtures/mcp-server.mjs")

const emit = () => Effect.void
const provided = (sandbox: Layer.Layer<Sandbox>) => Layer.merge(services, sandbox)

describe("toolbox", () => {
  it.live("holds the tools that the config names, then those of the servers; each with a schema of type object", () =>
    Effect.gen(function* () {
      const { root, spec, host, at } = yield* yard
      const server = { argv: [process.execPath, SERVER, "ok", at("notes")], env: {} }
      const made = yield* Tools.make({
        config: config({ tools: ["search", "read", "shell"], mcp: { records: server } }),
        workspace: root,
        spec: { ...spec, mcp: { agentd: server } },
        host,
        emit
      })
      const tools = [...made.tools, ...made.given!()]
      assert.deepStrictEqual(
        tools.map(({ name }) => name).filter((name) => !name.includes("__") || name.endsWith("__echo")),
        ["shell", "read", "search", "records__echo", "agentd__echo"]
      )
      for (const { name, inputSchema, description } of tools) {
        assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
        assert.deepStrictEqual(broken(inputSchema), [], name)
        assert.isString(description)
      }
      // a shell command's end must not end the servers of the same run
      const shell = tools.find(({ name }) => name === "shell")
      assert.strictEqual((yield* call(shell, { command: "true" })).status, "success")
      const echo = tools.find(({ name }) => name === "agentd__echo")
      assert.strictEqual((yield* call(echo, { text: "still here" })).status, "success")
    }).pipe(Effect.scoped, Effect.provide(provided(Sandbox.layerNone)))
  )

  it.live("a home, or what holds one, is refused as a workspace, with what to do", () =>
    Effect.gen(function* () {
      const { home, folder, spec, host } = yield* yard
      for (const workspace of [home, folder, "/"]) {
        const error = yield* Effect.flip(Tools.make({ config: config(), workspace, spec, host, emit }))
        assert.isTrue(error.fatal)
        assert.match(error.remedy, /its own folder/)
      }
    }).pipe(Effect.scoped, Effect.provide(provided(Sandbox.layerNone)))
  )

  it.live("the model's key in the workspace is seen by no tool", () =>
    Effect.gen(function* () {
      const { root, spec, host } = yield* yard
      fs.writeFileSync(join(root, "key.txt"), SECRET)
      fs.symlinkSync("key.txt", join(root, "link"))
      const { tools } = yield* Tools.make({ config: config({ keyFile: "key.txt" }), workspace: root, spec, host, emit })
      const named = (name: string) => tools.find((tool) => tool.name === name)
      for (const path of ["key.txt", "link"])
        assert.strictEqual((yield* call(named("read"), { path })).status, "sandbox_violation")
      assert.strictEqual((yield* call(named("search"), { pattern: "." })).output, "[no line matches]")
      if (held.length > 0) {
        const { output } = yield* call(named("shell"), { command: "cat key.txt link" })
        assert.notInclude(output, SECRET)
      }
    }).pipe(Effect.scoped, Effect.provide(provided(held[0] === undefined ? Sandbox.layerNone : sandboxOf(held[0]))))
  )

  it.live("the sandbox is looked for once, however many ask", () =>
    Effect.gen(function* () {
      const { mechanism } = yield* Sandbox
      assert.strictEqual(yield* mechanism, yield* mechanism)
    }).pipe(Effect.provide(Sandbox.layer({ PATH: process.env["PATH"] })))
  )
})
