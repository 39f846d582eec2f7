/** A server's word about its own tools decides nothing, unless the config trusts that server. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import * as Stage from "../support/Stage.ts"

const SERVER = resolve(import.meta.dirname, "../fixtures/mcp-server.mjs")

class Shop extends Context.Service<Shop, Stage.Project>()("test/Shop") {}

const notes = (folder: string, name: string) => join(folder, `${name}.notes`)

/** A daemon with agents that may only read, each with a server whose `drop_database` says that it reads. */
const shop = Layer.effect(
  Shop,
  Effect.gen(function* () {
    const stage = yield* Stage.make
    const agent = (name: string, mode: string, more: object = {}) => {
      const server = { argv: [process.execPath, SERVER, "ok", notes(stage.box.folder, name)], ...more }
      return stage.agent("model", { approvals: { mode }, backend: { mcp: { shop: server, agentd: server } } })
    }
    const project = stage.home({
      agents: {
        reader: agent("reader", "read_only"),
        asker: agent("asker", "auto"),
        trusting: agent("trusting", "read_only", { trustHints: true })
      }
    })
    yield* stage.up
    yield* project.register
    return project
  })
)

const dropped = (shop: Stage.Project, agent: string): boolean => {
  const file = notes(shop.stage.box.folder, agent)
  return existsSync(file) && readFileSync(file, "utf8").includes("dropped")
}

layer(shop, { excludeTestServices: true })("a server that calls drop_database read-only", (it) => {
  for (const tool of ["shop__drop_database", "agentd__drop_database"]) {
    it.effect(`${tool} is denied where the agent may only read`, () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        const before = (yield* shop.log("tool.result")).length
        yield* shop.tell("reader", { tool: [tool, {}] })
        const results = yield* shop.until(
          "the call has its result",
          shop.log("tool.result"),
          (all) => all.length > before
        )
        assert.strictEqual(results.at(-1)?.payload["status"], "denied")
        assert.isFalse(dropped(shop, "reader"))
      })
    )
  }

  it.effect("it waits for a person where the agent asks", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* shop.tell("asker", { tool: ["shop__drop_database", {}] })
      const call = yield* shop.asked("asker")
      assert.strictEqual(call.tool, "shop__drop_database")
      assert.isFalse(dropped(shop, "asker"))
      yield* shop.answer(call.callId, "deny")
    })
  )

  it.effect("it runs where the config trusts the server's hints", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* shop.tell("trusting", { tool: ["shop__drop_database", {}] })
      const [result] = yield* shop.of("trusting", 1, "tool.result")
      assert.strictEqual(result?.payload["status"], "success")
      assert.isTrue(dropped(shop, "trusting"))
    })
  )
})
