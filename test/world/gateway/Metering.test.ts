/** Agents that say nothing of what they spend, counted at the gateway: without a sandbox, each request, in time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Stage from "../../support/Stage.ts"

/** Tokens of one request to the model of the stand. */
const REQUEST = 15

/** Asks its model again and again. */
const PROGRAM = `
const ask = async () => {
  const answer = await fetch(process.env.AGENTD_GATEWAY_URL + "/v1/messages", {
    method: "POST",
    headers: { "x-api-key": "my-own", "content-type": "application/json" },
    body: JSON.stringify({ model: "m", stream: true, messages: [] })
  })
  await answer.text()
}
const again = async () => { await ask(); setTimeout(again, 500) }
again()
`

describe("an agent that is counted at the gateway", () => {
  it.live("is ended with the request that spends its budget; its own key is its own", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const { asked, url } = yield* ModelStand.provider("anthropic", () => ({ text: ["more"] }))
      const project = stage.home({
        agents: {
          ann: {
            backend: {
              type: "command",
              argv: [process.execPath, "-e", PROGRAM],
              metering: "gateway",
              provider: { api: "anthropic", baseUrl: url }
            },
            budget: { tokens: 3 * REQUEST }
          }
        }
      })
      yield* stage.up
      const { unmetered } = yield* project.register
      assert.isUndefined(unmetered)
      yield* project.send("ann", "go")
      const row = yield* project.row("ann", "is stopped", ({ state }) => state === "Stopped")
      assert.match(row.detail, /the budget of tokens is spent/)
      assert.isAtLeast(asked.length, 3)
      assert.isAtMost(asked.length, 4, "at most one request beyond the limit")
      assert.strictEqual(asked[0]!.headers["x-api-key"], "my-own")
    }).pipe(Effect.scoped)
  )
})
