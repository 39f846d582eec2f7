/** A day's limit in a real daemon: three agents share it, over a kill and a restart, until a file allows more. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Stage from "../../support/Stage.ts"

const NAMES = ["ann", "bob", "cy"]
/** Tokens of one request to the model of the stand. */
const REQUEST = 15

const shop = Effect.fnUntraced(function* (perDay: object, replies: (asked: number) => ModelStand.Reply) {
  const stage = yield* Stage.make
  const at = { asked: 0 }
  const { url } = yield* ModelStand.provider("anthropic", () => replies(++at.asked))
  const agents = Object.fromEntries(
    NAMES.map((name) => [name, stage.agent("model", { backend: { baseUrl: url, retries: 0, tools: ["list"] } })])
  )
  const config = (limit: object) => ({ agents, conversation: { budget: { perDay: limit } } })
  const project = stage.home(config(perDay))
  yield* stage.up
  yield* project.register
  const told = Effect.orElseSucceed(
    stage.rpc((client) =>
      Stream.runCollect(
        client.Log({
          kinds: ["budget.near", "budget.spent"],
          follow: false,
          caller: { by: "ada", config: null }
        })
      )
    ),
    () => []
  )
  return { at, config, project, stage, told }
})

const words = "the day's budget of tokens for the project is spent: 45 of 45"

describe("a day's limit over three agents", () => {
  it.live("holds together: all wait and say so, also after a kill, and go on when the file allows more", () =>
    Effect.gen(function* () {
      const { at, config, project, stage, told } = yield* shop({ tokens: 3 * REQUEST }, () => ({ text: ["done"] }))
      for (const name of NAMES) {
        yield* project.send(name, "hello")
        yield* project.answers(name, 1)
      }
      for (const name of NAMES) yield* project.send(name, "and more")
      const waits = Effect.forEach(NAMES, (name) =>
        project.row(name, "waits", ({ detail, nextAt }) => detail.startsWith(words) && nextAt !== null)
      )
      yield* waits
      const { advice, lines } = yield* project.why("bob")
      assert.include(lines.at(-1)?.text, words)
      assert.match(advice ?? "", /raise the limit.*agentd cost/)
      const kinds = (yield* told).map(({ kind }) => kind)
      assert.deepStrictEqual(kinds, ["budget.spent"], "45 of 45: two thirds were no warning")
      yield* stage.box.kill9
      yield* stage.up
      yield* waits
      assert.strictEqual(at.asked, 3, "no model was asked beyond the limit")
      assert.lengthOf(yield* told, 1, "and nobody is told again")
      project.configure(config({ tokens: 100 * REQUEST }))
      yield* project.register
      for (const name of NAMES) yield* project.answers(name, 2)
      assert.strictEqual(at.asked, 6)
    }).pipe(Effect.scoped)
  )

  it.live("ends a turn in its midst, with the request that spends it", () =>
    Effect.gen(function* () {
      const call = (n: number) => ({
        text: ["I look."],
        calls: [{ id: `c${n}`, name: "list", arguments: '{"path":"."}' }]
      })
      const { at, project } = yield* shop({ tokens: 3 * REQUEST }, (n) => call(n))
      yield* project.send("ann", "look for ever")
      yield* project.row("ann", "waits", ({ detail }) => detail.includes("the day's budget of tokens for the project"))
      assert.isAtMost(at.asked, 4, "at most one request beyond the limit")
      const asked = at.asked
      yield* project.send("bob", "look, too")
      yield* project.row("bob", "waits", ({ detail }) => detail.includes("the day's budget of tokens for the project"))
      assert.strictEqual(at.asked, asked)
    }).pipe(Effect.scoped)
  )
})

describe("what a conversation has spent that is archived", () => {
  it.live("is in agentd cost, before and after a restart", () =>
    Effect.gen(function* () {
      const { project, stage } = yield* shop({ tokens: 1_000 }, () => ({ text: ["done"] }))
      yield* project.send("ann", "hello")
      yield* project.answers("ann", 1)
      const costs = stage.rpc((client) => client.Costs({ by: ["project", "agent", "model"], since: "" }))
      const before = yield* costs
      assert.deepInclude(before[0], { project: "shop", agent: "shop/ann", model: "m", input: 10, output: 5 })
      const { conversation } = yield* project.conversation
      const { caller } = project
      yield* stage.rpc((client) => client.Close({ name: conversation, force: false, reason: "", caller }))
      yield* stage.rpc((client) => client.Archive({ name: conversation, caller }))
      assert.deepStrictEqual(yield* costs, before)
      yield* stage.box.kill9
      yield* stage.up
      assert.deepStrictEqual(yield* costs, before)
    }).pipe(Effect.scoped)
  )
})
