/** An agent with a fallback: another provider takes over while its own cannot be had, and gives way when it can. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Stage from "../../support/Stage.ts"
import { long } from "../../support/Long.ts"

const OVERLOADED: ModelStand.Reply = {
  status: 529,
  body: JSON.stringify({ error: { type: "overloaded_error", message: "Overloaded" } })
}
const LIMITED: ModelStand.Reply = {
  status: 429,
  headers: { "retry-after": "3600" },
  body: JSON.stringify({ error: { type: "rate_limit_error", message: "too many requests" } })
}

/** A provider under whatever weather it is given, which says its name. */
const sky = Effect.fnUntraced(function* (name: string) {
  const at = { now: "up" as "up" | ModelStand.Reply, asked: 0, heard: "" }
  const { url } = yield* ModelStand.provider("anthropic", ({ body }) => {
    at.asked += 1
    at.heard = JSON.stringify(body.messages)
    return at.now === "up" ? { text: [name] } : at.now
  })
  return { at, url }
})

const shop = Effect.fnUntraced(function* (more: Stage.More = {}, names: ReadonlyArray<string> = ["ann"]) {
  const stage = yield* Stage.make
  const [own, other] = [yield* sky("own"), yield* sky("other")]
  const backend = (baseUrl: string) => ({
    type: "model",
    provider: "anthropic",
    model: "m",
    keyFile: stage.key("right"),
    baseUrl,
    retries: 0
  })
  // the same again is as far away as the first is
  const fallback = [backend(own.url), backend(other.url)]
  const agent = stage.agent("model", { backend: { baseUrl: own.url, retries: 0 }, fallback, ...more })
  const project = stage.home({ agents: Object.fromEntries(names.map((name) => [name, agent])) })
  yield* stage.up
  yield* project.register
  return { other: other.at, own: own.at, project, stage }
})

describe("a fallback", () => {
  long.live("takes over while its own provider cannot be had, says why, survives a kill, and gives way again", () =>
    Effect.gen(function* () {
      const { other, own, project, stage } = yield* shop()
      yield* project.send("ann", "one")
      assert.deepStrictEqual(yield* project.answers("ann", 1), ["own"])
      own.now = OVERLOADED
      yield* project.send("ann", "two")
      assert.deepStrictEqual(yield* project.answers("ann", 2), ["own", "other"])
      assert.match(other.heard, /one.*own.*two/s, "it knows what was said before")
      const away = yield* project.row("ann", "is away", ({ detail }) => detail.includes("on fallback 2"))
      assert.deepInclude(away, { consecutiveErrors: 0, totalErrors: 0 })
      const moved = (yield* project.log("worker.moved")).filter(({ payload }) =>
        JSON.stringify(payload).includes('"because"')
      )
      assert.include(JSON.stringify(moved.at(-1)!.payload), "is unavailable")
      const { lines } = yield* project.why("ann")
      assert.isTrue(
        lines.some(({ text }) => /moves to fallback 2: .*is unavailable/.test(text)),
        JSON.stringify(lines)
      )
      yield* stage.box.kill9
      yield* stage.up
      yield* project.send("ann", "three")
      assert.deepStrictEqual((yield* project.answers("ann", 3)).at(-1), "other")
      own.now = "up"
      for (let count = 4; ; count++) {
        yield* project.send("ann", `${count}`)
        if ((yield* project.answers("ann", count)).at(-1) === "own") break
        assert.isBelow(count, 60, "it goes back")
        yield* Effect.sleep("500 millis")
      }
      yield* project.row("ann", "is back", ({ detail }) => !detail.includes("fallback"))
      assert.match(own.heard, /one.*two.*other.*three/s, "what was said elsewhere, too")
    }).pipe(Effect.scoped)
  )

  it.live("that is down, too, lets its agents wait and counts nothing; the first that can be had goes on", () =>
    Effect.gen(function* () {
      const { other, own, project } = yield* shop({}, ["ann", "bob"])
      own.now = OVERLOADED
      other.now = OVERLOADED
      for (const name of ["ann", "bob"]) yield* project.send(name, "hello")
      for (const name of ["ann", "bob"])
        yield* project.row(name, "waits", ({ detail }) => detail.includes("is unavailable"))
      other.now = "up"
      for (const name of ["ann", "bob"]) {
        assert.deepStrictEqual(yield* project.answers(name, 1), ["other"])
        const row = yield* project.row(name, "is calm", ({ inbox }) => inbox === 0)
        assert.deepInclude(row, { consecutiveErrors: 0, totalErrors: 0 })
      }
    }).pipe(Effect.scoped)
  )

  it.live("takes over at once when the account has reached its limit, unless the config says to wait or to stop", () =>
    Effect.gen(function* () {
      const moving = yield* shop()
      moving.own.now = LIMITED
      yield* moving.project.send("ann", "hello")
      assert.deepStrictEqual(yield* moving.project.answers("ann", 1), ["other"])
      const waiting = yield* shop({ onLimit: "wait" })
      waiting.own.now = LIMITED
      yield* waiting.project.send("ann", "hello")
      yield* waiting.project.row("ann", "cools down", ({ nextAt, state }) => state === "CoolingDown" && nextAt !== null)
      assert.strictEqual(waiting.other.asked, 0)
      const stopping = yield* shop({ onLimit: "stop" })
      stopping.own.now = LIMITED
      yield* stopping.project.send("ann", "hello")
      const row = yield* stopping.project.row("ann", "stops", ({ state }) => state === "Stopped")
      assert.include(row.detail, "reached its usage limit")
      assert.include((yield* stopping.project.why("ann")).advice ?? "", "onLimit")
      assert.strictEqual(stopping.other.asked, 0)
    }).pipe(Effect.scoped)
  )
})
