/** Attack on tokens of remote MCP servers: they are said in a model's own words, where the connection's mask does not reach. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import * as McpTokens from "../../src/model-agent/McpTokens.ts"
import * as ModelStand from "../world/backends/ModelStand.ts"
import * as McpStand from "../support/McpStand.ts"
import * as Stage from "../support/Stage.ts"

describe("the tokens of a remote MCP server", () => {
  it.live("are in no rune, whoever says them: neither those of a login, nor those that took their place", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const stand = yield* McpStand.stand({ login: true })
      // the first token is refused, and both are renewed
      yield* McpTokens.write(join(stage.box.state, "logins"), {
        url: stand.url,
        tokenEndpoint: `${stand.origin}/token`,
        clientId: "client-1",
        accessToken: "old-access-secret",
        refreshToken: "refresh-0-secret"
      }).pipe(Effect.provide(NodeFileSystem.layer))
      const leaked = ["old-access-secret", "refresh-0-secret", "access-1-secret", "refresh-1-secret"]
      const { url } = yield* ModelStand.provider("anthropic", ({ body }) =>
        JSON.stringify(body.messages).includes("tool_result")
          ? { text: [`they are ${leaked.join(" and ")}`] }
          : { calls: [{ id: "c1", name: "tracker__echo", arguments: '{"text":"hi"}' }] }
      )
      const agent = stage.agent("model", {
        backend: { baseUrl: url, mcp: { tracker: { url: stand.url } } },
        approvals: { mode: "full_access" }
      })
      const project = stage.home({ agents: { ann: agent } })
      yield* stage.up
      yield* project.register
      yield* project.send("ann", "say them")
      const [answer] = yield* project.answers("ann", 1)
      assert.isTrue(stand.seen.some(({ headers }) => headers.authorization === "Bearer access-1-secret"))
      assert.strictEqual(answer, `they are ${leaked.map(() => "[redacted]").join(" and ")}`)
      const written = JSON.stringify(yield* project.log())
      for (const token of leaked) assert.notInclude(written, token)
    }).pipe(Effect.scoped)
  )
})
