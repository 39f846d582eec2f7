/** Agents that reach their model by the gateway while daemons come and go: they reach it all the time, and each token counts once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { RENEWED } from "../../../src/agents/run/GatewayUsage.ts"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Laws from "../../support/Laws.ts"
import * as Stage from "../../support/Stage.ts"
import { held } from "../../support/toolbox.ts"
import { long } from "../../support/Long.ts"

/** Tokens of one request to the model of the stand. */
const REQUEST = 15

/** Asks its model once for each line of a file, until it has an answer, and ends when it is told to. */
const PROGRAM = `
const fs = require("node:fs")
const lines = () => (fs.existsSync("asks") ? fs.readFileSync("asks", "utf8").length : 0)
let asked = 0
const ask = async () => {
  const answer = await fetch(process.env.AGENTD_GATEWAY_URL + "/v1/messages", {
    method: "POST",
    headers: { "x-api-key": "my-own", "content-type": "application/json" },
    body: JSON.stringify({ model: "m", stream: true, messages: [] })
  })
  await answer.text()
  if (answer.ok) asked++
}
const again = async () => {
  if (asked < lines()) await ask().catch(() => {})
  else if (fs.existsSync("end")) return console.log("asked " + asked)
  setTimeout(again, 50)
}
again()
`

const gatewayOf = ({ box }: Stage.Stage): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, "latin1")
        return words.includes("--input-type=module") && words.includes(box.state)
      } catch {
        return false
      }
    })

const killGateway = (stage: Stage.Stage) =>
  Effect.sync(() => {
    for (const pid of gatewayOf(stage)) process.kill(pid, "SIGKILL")
  })

const kinds = [["unconfined", "off"], ...(held.length > 0 ? [["confined", "required"]] : [])] as const

describe("an agent that is counted at the gateway, and outlives its daemon", () => {
  for (const [name, sandbox] of kinds) {
    const live = sandbox === "off" && held.length > 0 ? long.live : it.live
    live(`${name}: the daemon killed, restarted, killed with its gateway`, () =>
      Effect.gen(function* () {
        const stage = yield* Stage.keeping
        stage.box.environment["ANTHROPIC_API_KEY"] = "sk-the-key"
        yield* Effect.addFinalizer(() => killGateway(stage))
        const { asked, url } = yield* ModelStand.provider("anthropic", () => ({ text: ["more"] }))
        const argv = [process.execPath, "-e", PROGRAM]
        const provider = { api: "anthropic", baseUrl: url }
        const backend = { type: "command", argv, sandbox, metering: "gateway", provider, readyAfter: "50ms" }
        const shop = stage.home({ agents: { ann: { backend } } })
        const ask = (count: number) =>
          Effect.andThen(
            Effect.sync(() => appendFileSync(join(shop.root, "ann", "asks"), "x".repeat(count))),
            Effect.gen(function* () {
              const before = asked.length
              yield* shop.until(
                "it has asked",
                Effect.sync(() => asked.length),
                (now) => now >= before + count
              )
            })
          )
        const counted = (requests: number) =>
          shop.until(
            `${requests} requests are counted`,
            Effect.map(shop.log("agent.usage"), (runes) =>
              runes.reduce((sum, { payload }) => sum + Number(payload["tokens"]), 0)
            ),
            (tokens) => tokens >= requests * REQUEST
          )
        yield* stage.up
        yield* shop.register
        yield* shop.send("ann", "go")
        yield* shop.of("ann", 1, "turn.started")
        yield* ask(1)
        assert.strictEqual(yield* counted(1), REQUEST)

        yield* stage.box.kill9
        yield* ask(2)
        yield* stage.up
        assert.strictEqual(yield* counted(3), 3 * REQUEST)

        const before = gatewayOf(stage)
        yield* stage.rpc((client) => client.Shutdown({ reason: "agentd restart", by: "ada", keep: true }))
        yield* stage.box.gone
        assert.deepStrictEqual(gatewayOf(stage), before, "a run needs it")
        yield* ask(1)
        yield* stage.up
        assert.strictEqual(yield* counted(4), 4 * REQUEST)

        yield* stage.box.kill9
        yield* killGateway(stage)
        yield* stage.up
        yield* ask(1)
        assert.strictEqual(yield* counted(5), 5 * REQUEST)
        const notices = (yield* shop.log("run.notice")).map(({ payload }) => payload["text"])
        assert.deepStrictEqual(notices, [RENEWED])

        writeFileSync(join(shop.root, "ann", "end"), "")
        assert.deepStrictEqual(yield* shop.answers("ann", 1), ["asked 5\n"])
        assert.strictEqual(asked.length, 5)
        assert.strictEqual(yield* counted(5), 5 * REQUEST)
        assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])

        // the run is over, and its daemon ends in order: nobody can reach the gateway by the time that the daemon is gone
        const socket = join(stage.box.state, "gateway", "control.sock")
        assert.isTrue(existsSync(socket))
        yield* stage.rpc((client) => client.Shutdown({ reason: "agentd stop", by: "ada" }))
        yield* stage.box.gone
        assert.isFalse(existsSync(socket))
        yield* shop.until(
          "the gateway has ended",
          Effect.sync(() => gatewayOf(stage)),
          (pids) => pids.length === 0
        )
      })
    )
  }
})
