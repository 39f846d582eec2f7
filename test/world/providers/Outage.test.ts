/** A provider that cannot be had: its agents wait, count nothing, ask one at a time, and go on by themselves. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Stage from "../../support/Stage.ts"
import { long } from "../../support/Long.ts"

const NAMES = ["ann", "bob", "cy"]

/** A provider under whatever weather it is given, and how often it was asked since. */
const sky = Effect.gen(function* () {
  const at = { now: "up" as "up" | ModelStand.Reply, asked: 0 }
  const { url } = yield* ModelStand.provider("anthropic", () => {
    at.asked += 1
    return at.now === "up" ? { text: ["done"] } : at.now
  })
  return { at, url }
})

const OVERLOADED: ModelStand.Reply = {
  status: 529,
  body: JSON.stringify({ error: { type: "overloaded_error", message: "Overloaded" } })
}

const REFUSED: ModelStand.Reply = {
  status: 401,
  body: JSON.stringify({ error: { type: "authentication_error", message: "OAuth token has expired" } })
}

const limited = (seconds: number): ModelStand.Reply => ({
  status: 429,
  headers: { "retry-after": String(seconds) },
  body: JSON.stringify({ error: { type: "rate_limit_error", message: "too many requests" } })
})

const shop = Effect.fnUntraced(function* (more: Stage.More = {}) {
  const stage = yield* Stage.make
  const { at, url } = yield* sky
  const asks = (name: string) => stage.agent("model", { backend: { baseUrl: url, retries: 0 }, ...more, role: name })
  const project = stage.home({
    agents: { ...Object.fromEntries(NAMES.map((name) => [name, asks(name)])), plain: stage.agent("acp") }
  })
  yield* stage.up
  yield* project.register
  return { at, project, stage }
})

/** Runes of the weather, oldest first. */
const weather = ({ stage }: Stage.Project): Effect.Effect<ReadonlyArray<Rune>> => {
  const kinds = ["provider.moved", "provider.lasting", "provider.recovered"]
  return stage
    .rpc((client) => Stream.runCollect(client.Log({ kinds, follow: false, caller: { by: "ada", config: null } })))
    .pipe(Effect.orElseSucceed(() => []))
}

const states = (runes: ReadonlyArray<Rune>) => runes.flatMap(({ from, to }) => (from === to ? [] : [to]))

/** All answer the message that they were sent in the storm, once, and nothing was counted. */
const healed = Effect.fnUntraced(function* (project: Stage.Project) {
  for (const name of NAMES) {
    assert.deepStrictEqual(yield* project.answers(name, 1), ["done"])
    const row = yield* project.row(name, "is calm", ({ inbox }) => inbox === 0)
    assert.deepInclude(row, { consecutiveErrors: 0, totalErrors: 0 })
  }
  assert.strictEqual((yield* project.conversation).state, "active")
})

describe("a provider that cannot be had", () => {
  it.live("its agents count nothing, find out one at a time, say so, and go on by themselves; others work on", () =>
    Effect.gen(function* () {
      const { at, project } = yield* shop()
      at.now = OVERLOADED
      for (const name of NAMES) yield* project.send(name, "hello")
      const told = yield* project.until("all wait", project.agents, (rows) =>
        NAMES.every((name) => rows.some(({ agent, detail }) => agent === name && detail.includes("is unavailable")))
      )
      assert.include(told.find(({ agent }) => agent === "ann")!.detail, "529")
      yield* project.tell("plain", { say: "I ask nobody" })
      yield* project.answers("plain", 1)
      const failures = yield* project.until(
        "it is found out a few times",
        weather(project),
        (runes) => runes.filter(({ trigger }) => trigger === "failed").length >= 3
      )
      assert.deepStrictEqual(states(failures).slice(0, 2), ["Degraded", "Unavailable"])
      // each agent once, then one alone for each time that it is found out
      assert.isAtMost(at.asked, NAMES.length + failures.filter(({ trigger }) => trigger === "retry_due").length)
      at.now = "up"
      yield* healed(project)
      assert.strictEqual(states(yield* weather(project)).at(-1), "Available")
    }).pipe(Effect.scoped)
  )

  long.live("the daemon is killed in the storm: the next one waits on, and its agents go on", () =>
    Effect.gen(function* () {
      const { at, project, stage } = yield* shop()
      at.now = OVERLOADED
      for (const name of NAMES) yield* project.send(name, "hello")
      yield* project.until("it is unavailable", weather(project), (runes) => states(runes).includes("Unavailable"))
      yield* stage.box.kill9
      yield* stage.up
      yield* project.row("bob", "waits", ({ detail }) => detail.includes("is unavailable"))
      at.now = "up"
      yield* healed(project)
    }).pipe(Effect.scoped)
  )

  it.live("a limit on use holds for all of its account, until the moment that it says", () =>
    Effect.gen(function* () {
      const { at, project } = yield* shop()
      at.now = limited(120)
      yield* project.send("ann", "hello")
      const limit = yield* project.row("ann", "is limited", ({ state }) => state === "CoolingDown")
      // its account's limit is known before its own end: nobody can begin between the two
      assert.deepStrictEqual(states(yield* weather(project)), ["LimitedUntil"])
      const asked = at.asked
      yield* project.send("bob", "hello")
      const row = yield* project.row("bob", "waits, too", ({ detail }) => detail.includes("has reached its limit"))
      assert.isAtLeast(row.nextAt!, limit.since + 100_000)
      assert.isAtMost(row.nextAt!, limit.since + 121_000)
      assert.strictEqual(at.asked, asked, "nobody else has asked")
      const [rune] = yield* weather(project)
      assert.strictEqual(rune?.to, "LimitedUntil")
    }).pipe(Effect.scoped)
  )

  it.live("one refused login, as another process renews it, is no trouble", () =>
    Effect.gen(function* () {
      const { at, project } = yield* shop()
      at.now = REFUSED
      yield* project.send("ann", "hello")
      yield* project.until("it is refused", weather(project), (runes) => runes.length > 0)
      at.now = "up"
      assert.deepStrictEqual(yield* project.answers("ann", 1), ["done"])
      assert.deepStrictEqual(states(yield* weather(project)), ["Degraded", "Available"])
      const row = yield* project.row("ann", "is calm", ({ inbox }) => inbox === 0)
      assert.deepInclude(row, { consecutiveErrors: 0, totalErrors: 0 })
    }).pipe(Effect.scoped)
  )

  long.live(
    "a login that is refused again is one row; its agents wait, over a restart too, and go on after the login",
    () =>
      Effect.gen(function* () {
        const { at, project, stage } = yield* shop()
        at.now = REFUSED
        for (const name of NAMES) yield* project.send(name, "hello")
        const needed = yield* project.until("a login is needed", weather(project), (runes) =>
          states(runes).includes("LoginNeeded")
        )
        assert.lengthOf(
          needed.filter(({ kind }) => kind === "provider.lasting"),
          1
        )
        yield* stage.box.kill9
        yield* stage.up
        for (const name of NAMES) {
          const row = yield* project.row(name, "waits", ({ detail }) => detail.includes("needs a login"))
          assert.deepInclude(row, { word: "waiting", reason: "login", consecutiveErrors: 0, totalErrors: 0 })
        }
        const { rows } = yield* stage.rpc((client) => client.Waiting())
        assert.deepStrictEqual(
          rows.map(({ kind }) => kind),
          ["provider"]
        )
        assert.match(rows[0]!.text, /^needs a login: .*OAuth token has expired/)
        at.now = "up"
        yield* healed(project)
        const told = (yield* weather(project)).filter(({ kind }) => kind !== "provider.moved").map(({ kind }) => kind)
        assert.deepStrictEqual(told, ["provider.lasting", "provider.recovered"])
      }).pipe(Effect.scoped)
  )
})
