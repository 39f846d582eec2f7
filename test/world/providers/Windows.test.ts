/** The windows of an account's use, as its provider tells them: kept, shown, few in the log, and what a refusal leads to. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Stage from "../../support/Stage.ts"

const SOON = Math.floor(Date.parse("2099-01-01T00:00:00Z") / 1000)

/** Headers of a subscription whose window of five hours is used so far. */
const used = (part: number, status = "allowed") => ({
  "anthropic-ratelimit-unified-status": status,
  "anthropic-ratelimit-unified-representative-claim": "five_hour",
  "anthropic-ratelimit-unified-5h-status": status,
  "anthropic-ratelimit-unified-5h-utilization": String(part),
  "anthropic-ratelimit-unified-5h-reset": String(SOON),
  "anthropic-ratelimit-unified-7d-status": "allowed",
  "anthropic-ratelimit-unified-7d-utilization": "0.1",
  "anthropic-ratelimit-unified-7d-reset": String(SOON)
})

const rejected = (): ModelStand.Reply => ({
  status: 429,
  headers: used(1, "rejected"),
  body: JSON.stringify({ error: { type: "rate_limit_error", message: "This request would exceed your rate limit." } })
})

const shop = Effect.fnUntraced(function* (more: Stage.More = {}) {
  const stage = yield* Stage.make
  const at = { headers: used(0.17) as ModelStand.Reply["headers"], isRejected: false }
  const { url, asked } = yield* ModelStand.provider("anthropic", () =>
    at.isRejected ? rejected() : { text: ["own"], headers: at.headers! }
  )
  const other = yield* ModelStand.provider("anthropic", () => ({ text: ["other"] }))
  const backend = {
    type: "model",
    provider: "anthropic",
    model: "m",
    keyFile: stage.key("right"),
    baseUrl: other.url,
    retries: 0
  }
  const agent = stage.agent("model", { backend: { baseUrl: url, retries: 0 }, fallback: [backend], ...more })
  const project = stage.home({ agents: { ann: agent, bob: agent } })
  yield* stage.up
  yield* project.register
  const runes = project.cli("log", "--kind", "provider.used", "--json")
  const answered = Effect.fnUntraced(function* (count: number) {
    yield* project.send("ann", `${count}`)
    return (yield* project.answers("ann", count)).at(-1)
  })
  const accounts = stage.rpc((client) => client.Accounts())
  return { accounts, answered, asked, at, other, project, runes, stage, url }
})

const lines = (text: string) => text.split("\n").filter((line) => line.includes("provider.used"))

describe("the windows of an account", () => {
  it.live("are kept from what the provider tells, with few runes, over a kill; ps says which are near their end", () =>
    Effect.gen(function* () {
      const { accounts, answered, at, project, runes, stage, url } = yield* shop()
      for (let count = 1; count <= 4; count++) yield* answered(count)
      const own = (yield* accounts).find(({ provider }) => url.endsWith(provider))!
      assert.deepStrictEqual(
        own.windows.map(({ name, resetsAt, used }) => [name, used, resetsAt]),
        [
          ["five_hour", 0.17, SOON * 1000],
          ["seven_day", 0.1, SOON * 1000]
        ]
      )
      assert.deepInclude(own, { state: "Available", until: null, agents: ["shop/ann", "shop/bob"] })
      assert.lengthOf(lines((yield* runes).stdout), 1, "one for four requests")
      at.headers = used(0.93, "allowed_warning")
      yield* answered(5)
      const row = yield* project.row("bob", "is near the end of its account", ({ detail }) => detail.includes("93 %"))
      assert.include(row.detail, "five_hour 93 % used, until 2099")
      assert.lengthOf(lines((yield* runes).stdout), 2)
      yield* stage.box.kill9
      yield* stage.up
      yield* project.row("bob", "still knows", ({ detail }) => detail.includes("five_hour 93 % used"))
      const shown = yield* project.cli("accounts")
      assert.match(shown.stdout, /five_hour +93 %, near its limit.*shop\/ann, shop\/bob/s)
      assert.match((yield* project.cli("status")).stdout, /account +.*: five_hour 93 %, near its limit until/)
      assert.include((yield* project.cli("status", "--json")).stdout, '"five_hour"')
    }).pipe(Effect.scoped)
  )

  it.live("a window that is used up leads where a reached limit does, though no header says when to ask again", () =>
    Effect.gen(function* () {
      const moving = yield* shop()
      moving.at.isRejected = true
      assert.strictEqual(yield* moving.answered(1), "other")
      assert.include(
        JSON.stringify((yield* moving.accounts).filter(({ state }) => state === "LimitedUntil")),
        "rate limit"
      )
      const waiting = yield* shop({ onLimit: "wait" })
      waiting.at.isRejected = true
      yield* waiting.project.send("ann", "hello")
      // for as long as the longest wait for a word of a provider is
      const row = yield* waiting.project.row("ann", "waits", ({ nextAt }) => nextAt !== null)
      assert.isAbove(row.nextAt! - row.since, 20 * 3_600_000)
      yield* waiting.project.send("bob", "hello")
      yield* waiting.project.row("bob", "waits, too", ({ detail }) => detail.includes("has reached its limit"))
      assert.include((yield* waiting.project.why("bob")).agent.detail, "five_hour used up")
      assert.lengthOf(waiting.asked, 1, "bob has not asked")
      const stopping = yield* shop({ onLimit: "stop" })
      stopping.at.isRejected = true
      yield* stopping.project.send("ann", "hello")
      const stopped = yield* stopping.project.row("ann", "stops", ({ state }) => state === "Stopped")
      assert.include(stopped.detail, "reached its usage limit, until 2099")
    }).pipe(Effect.scoped)
  )

  it.live("of an agent that is counted at the gateway are what its provider told there", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const { url } = yield* ModelStand.provider("openai", () => ({
        text: ["more"],
        headers: {
          "x-ratelimit-limit-tokens": "1000",
          "x-ratelimit-remaining-tokens": "100",
          "x-ratelimit-reset-tokens": "6m0s"
        }
      }))
      const asks = `
        const answer = await fetch(process.env.AGENTD_GATEWAY_URL + "/chat/completions", {
          method: "POST",
          headers: { authorization: "Bearer mine", "content-type": "application/json" },
          body: JSON.stringify({ model: "m", stream: true, messages: [] })
        })
        await answer.text()
        setTimeout(() => {}, 600_000)
      `
      const project = stage.home({
        agents: {
          ann: {
            backend: {
              type: "command",
              argv: [process.execPath, "--input-type=module", "-e", asks],
              metering: "gateway",
              provider: { api: "openai", baseUrl: url }
            }
          }
        }
      })
      yield* stage.up
      yield* project.register
      yield* project.send("ann", "go")
      yield* project.row("ann", "is near the end", ({ detail }) => detail.includes("tokens 90 % used"))
    }).pipe(Effect.scoped)
  )
})
