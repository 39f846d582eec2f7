/** Turns under a real daemon, with agents on three backends: claude, acp, a model behind an API. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as Laws from "../../support/Laws.ts"
import * as Stage from "../../support/Stage.ts"

/** Backends that have a process of their own. */
const PROGRAMS = ["claude", "acp"] as const

class Shop extends Context.Service<Shop, Stage.Project>()("test/Shop") {}

/** A daemon for all rules that need no other. */
const shop = Layer.effect(
  Shop,
  Effect.gen(function* () {
    const stage = yield* Stage.make
    const project = stage.home({
      conversation: { maxFatalStops: 100, maxTurnErrors: 100 },
      agents: {
        ...stage.trio("call"),
        ...stage.trio("stop"),
        ...stage.trio("steer"),
        ...stage.trio("urgent"),
        ...stage.trio("idle", { idleTimeout: "300ms" }),
        ...stage.trio("killed"),
        ...stage.trio("noisy"),
        "ghost-claude": stage.agent("claude", { backend: { binary: "/nowhere/claude" } }),
        "ghost-acp": stage.agent("acp", { backend: { argv: ["/nowhere/acp"] } }),
        locked: stage.agent("model", { backend: { keyFile: stage.key("wrong") } })
      }
    })
    yield* stage.up
    yield* project.register
    return project
  })
)

layer(shop, { excludeTestServices: true })("a turn under the daemon", (it) => {
  it.effect("a call waits for agentd approve, then runs; a denied one never does; both turns are one run's", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* Stage.onEach((on) =>
        Effect.gen(function* () {
          const agent = `call-${on}`
          yield* shop.tell(agent, { ask: `echo 1 >> ${agent}.made` }, { say: "made" })
          const call = yield* shop.asked(agent)
          // nobody is there to be asked: it is shown, with its hash
          const seen = yield* shop.cli("approve", call.callId)
          assert.strictEqual(seen.code, 5)
          const [, hash = ""] = /└ ([0-9a-f]{32})$/m.exec(seen.stdout) ?? []
          const approved = on === "model" ? undefined : yield* shop.cli("approve", call.callId, hash)
          assert.strictEqual(approved?.code ?? 0, 0, approved?.stderr)
          if (on === "model") yield* shop.answer(call.callId, "allow")
          yield* shop.answers(agent, 1)
          yield* shop.tell(agent, { ask: `echo 2 >> ${agent}.made` }, { say: "on" })
          yield* shop.answer((yield* shop.asked(agent)).callId, "deny", "not that one")
          const answers = yield* shop.answers(agent, 2)
          assert.strictEqual(answers[0], "made")
          const results = yield* shop.of(agent, 2, "tool.result")
          assert.deepStrictEqual(
            results.map(({ payload }) => payload["status"]),
            ["success", "denied"]
          )
          const file = on === "model" ? [`${agent}.made`] : [agent, `${agent}.made`]
          assert.deepStrictEqual(shop.noted(...file), ["1"])
          assert.strictEqual(yield* shop.runs(agent), 1, agent)
        })
      )
    })
  )

  it.effect("an interrupt ends the turn, in an answer and in a tool, and the run lives on", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* Stage.onEach((on) =>
        Effect.gen(function* () {
          const agent = `stop-${on}`
          yield* shop.tell(agent, { hold: true })
          yield* shop.of(agent, 1, "turn.started")
          yield* shop.interrupt(agent)
          yield* shop.of(agent, 1, "turn.finalized")
          yield* shop.tell(agent, { stuck: true })
          if (on === "model") yield* shop.answer((yield* shop.asked(agent)).callId, "allow")
          yield* shop.of(agent, 1, on === "model" ? "tool.approved" : "tool.call")
          yield* shop.interrupt(agent)
          const [, cut] = yield* shop.of(agent, 2, "turn.interrupted")
          assert.strictEqual(cut?.payload["reason"], "interrupted by ada")
          yield* shop.tell(agent, { say: "still here" })
          assert.deepStrictEqual(yield* shop.answers(agent, 1), ["still here"])
          assert.strictEqual(yield* shop.runs(agent), 1, agent)
          assert.strictEqual((yield* shop.of(agent, 3, "turn.started")).length, 3, "what was interrupted is dropped")
        })
      )
    })
  )

  it.effect("a steered turn ends at once, and the message is the same run's next turn", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* Stage.onEach((on) =>
        Effect.gen(function* () {
          const agent = `steer-${on}`
          yield* shop.tell(agent, { hold: true })
          yield* shop.of(agent, 1, "turn.started")
          yield* shop.send(agent, 'do: [{"say":"that way"}]', "steer")
          assert.deepStrictEqual(yield* shop.answers(agent, 1), ["that way"])
          const [cut] = yield* shop.of(agent, 1, "turn.interrupted")
          assert.strictEqual(cut?.payload["reason"], "steered")
          assert.strictEqual(yield* shop.runs(agent), 1, agent)
        })
      )
    })
  )

  it.effect("an urgent message ends the run; the next one carries it and the work cut short", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* Stage.onEach((on) =>
        Effect.gen(function* () {
          const agent = `urgent-${on}`
          yield* shop.tell(agent, { hold: true }, { say: "thought" })
          yield* shop.of(agent, 1, "turn.started")
          yield* shop.send(agent, 'do: [{"say":"answered"}]', "urgent")
          assert.deepStrictEqual(yield* shop.answers(agent, 1), ["thought\nanswered"])
          assert.strictEqual(yield* shop.runs(agent), 2)
        })
      )
    })
  )

  it.effect("a run that has long been idle ends in order; the next one goes on with its session", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* Stage.onEach((on) =>
        Effect.gen(function* () {
          const agent = `idle-${on}`
          yield* shop.tell(agent, { say: "first" })
          yield* shop.answers(agent, 1)
          yield* shop.row(agent, "has ended its run", ({ state }) => state === "BuildingPrompt")
          yield* shop.tell(agent, { say: "second" })
          assert.deepStrictEqual(yield* shop.answers(agent, 2), ["first", "second"])
          // the second run may have ended by now, too
          assert.strictEqual(yield* shop.runs(agent), 2)
          assert.strictEqual((yield* shop.row(agent, "is there", () => true)).totalErrors, 0)
        })
      )
      const [first, second] = shop.noted("idle-claude", "starts.jsonl").map((line) => JSON.parse(line).args.join(" "))
      const [, session] = /--session-id (\S+)/.exec(first)!
      assert.include(second, `--resume ${session}`)
      assert.strictEqual(shop.noted("idle-acp", "heard").filter((line) => line.includes("session/load")).length, 1)
      const { messages } = shop.stage.model.asked.findLast(({ body }) =>
        JSON.stringify(body).includes("idle-model")
      )!.body
      assert.strictEqual(messages.length, 3, "it is shown what it was asked and said before")
    })
  )

  it.effect(
    "its process killed in an answer, in a tool, while it asks: an error each, and the work is done again",
    () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        const kill = (agent: string) =>
          Effect.map(
            shop.row(agent, "runs", ({ pid, state }) => pid !== null && state === "Running"),
            ({ pid }) => process.kill(pid!, "SIGKILL")
          )
        yield* Stage.onEach(
          (on) =>
            Effect.gen(function* () {
              const agent = `killed-${on}`
              yield* shop.tell(agent, { hold: true }, { say: "1" })
              yield* shop.of(agent, 1, "turn.started")
              yield* kill(agent)
              yield* shop.answers(agent, 1)
              yield* shop.tell(agent, { stuck: true }, { say: "2" })
              yield* shop.of(agent, 1, "tool.call")
              yield* kill(agent)
              yield* shop.answers(agent, 2)
              yield* shop.tell(agent, { ask: "echo asked >> made" }, { say: "3" })
              const { callId } = yield* shop.asked(agent)
              yield* kill(agent)
              yield* shop.of(agent, 3, "turn.error")
              yield* shop.until(
                "it asks anew",
                Effect.map(shop.asked(agent), (call) => call.callId),
                (id) => id !== callId
              )
              yield* shop.answer((yield* shop.asked(agent)).callId, "allow")
              assert.deepStrictEqual(yield* shop.answers(agent, 3), ["1", "2", "3"])
              assert.deepStrictEqual(shop.noted(agent, "made"), ["asked"])
              const results = yield* shop.of(agent, 3, "tool.result")
              assert.deepStrictEqual(
                results.map(({ payload }) => payload["status"]),
                ["unknown", "cancelled", "success"]
              )
              assert.strictEqual((yield* shop.row(agent, "is there", () => true)).totalErrors, 3)
            }),
          PROGRAMS
        )
      })
  )

  it.effect("garbage on its output ends nothing, and is told of", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      yield* Stage.onEach(
        (on) =>
          Effect.gen(function* () {
            const agent = `noisy-${on}`
            const noise = ["what?", '{"half":', "[1,2]", "null", "\u0000\u001b[2J", "x".repeat(100_000)]
            yield* shop.tell(agent, { noise }, { say: "well" })
            assert.deepStrictEqual(yield* shop.answers(agent, 1), ["well"])
            yield* shop.of(agent, 1, "run.notice")
          }),
        PROGRAMS
      )
    })
  )

  it.effect(
    "a program that is not there is fatal at once, a key that is refused is asked once more and waits, with the remedy",
    () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        const cases = {
          "ghost-claude": /nowhere\/claude/,
          "ghost-acp": /nowhere\/acp/,
          locked: /401.*invalid x-api-key/
        }
        yield* Effect.forEach(
          Object.entries(cases),
          ([agent, words]) =>
            Effect.gen(function* () {
              yield* shop.tell(agent, { say: "never" })
              const row = yield* shop.row(agent, "stops", ({ detail }) => words.test(detail))
              const isLocked = agent === "locked"
              assert.strictEqual(row.state === "Stopped", !isLocked)
              if (isLocked) assert.strictEqual(row.totalErrors, 0)
              if (isLocked) return
              const moves = yield* shop.of(agent, 1, "worker.moved")
              assert.strictEqual(moves.filter(({ to }) => to === "Spawning").length, 1)
              const { advice } = yield* shop.why(agent)
              assert.match(advice!, /agentd start/)
            }),
          { concurrency: "unbounded" }
        )
      })
  )

  it.effect("after all of it the log holds every law", () =>
    Effect.gen(function* () {
      const shop = yield* Shop
      // those three never had a turn
      const broken = Laws.broken(yield* shop.log()).filter((line) => !line.includes('{"say":"never"}'))
      assert.deepStrictEqual(broken, [])
      assert.strictEqual((yield* shop.cli("verify")).code, 0)
    })
  )
})
