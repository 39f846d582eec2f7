/** Turns that nobody asked for: a background command of an agent has ended, and its program goes on by itself. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Stage from "../../support/Stage.ts"

const shop = Effect.fnUntraced(function* (more: Stage.More = {}, backend: "claude" | "acp" = "claude") {
  const stage = yield* Stage.make
  const project = stage.home({ agents: { ann: stage.agent(backend, more) } })
  yield* stage.up
  yield* project.register
  /** The agent's background command ends. */
  const go = Effect.sync(() => writeFileSync(join(project.root, "ann", "go"), ""))
  return { go, project, stage }
})

const waits = ({ detail }: { readonly detail: string }) => detail.endsWith("waits for a message")

describe("a turn that nobody asked for", () => {
  it.live("is a turn: it is asked for leave, is charged, is seen, and what works beside turns keeps it working", () =>
    Effect.gen(function* () {
      const { go, project } = yield* shop()
      yield* project.tell("ann", { later: ["go", { ask: "echo made > made" }, { tokens: 700 }, { say: "I went on" }] })
      yield* project.answers("ann", 1)
      yield* project.row("ann", "works beside its turns", ({ detail }) =>
        detail.endsWith('works in the background: shell "until go"')
      )
      yield* project.row("ann", "is working", ({ word }) => word === "working")
      yield* go
      const { callId, tool } = yield* project.asked("ann")
      assert.strictEqual(tool, "Bash")
      yield* project.row("ann", "needs a person", ({ word }) => word === "needs you")
      yield* project.send("ann", "and then?")
      yield* project.answer(callId, "allow")
      assert.deepStrictEqual(yield* project.answers("ann", 3), ["done", "I went on", "done"])
      assert.deepStrictEqual(project.noted("ann", "made"), ["made"])
      const started = yield* project.of("ann", 3, "turn.started")
      const own = started[1]!
      assert.include(own.moves, "agent/ann")
      assert.include(String(own.payload["input"]), 'Background command "until go" completed')
      const used = (yield* project.log("agent.usage")).filter(
        ({ payload }) => payload["turn_id"] === own.payload["turn_id"]
      )
      assert.isAtLeast(
        used.reduce((sum, { payload }) => sum + Number(payload["tokens"]), 0),
        700
      )
      assert.strictEqual(
        used.reduce((sum, { payload }) => sum + Number(payload["tool_calls"]), 0),
        1
      )
      yield* project.row("ann", "is idle", waits)
      const why = yield* project.why("ann")
      assert.strictEqual(yield* project.runs("ann"), 1, JSON.stringify(why))
    }).pipe(Effect.scoped)
  )

  it.live("of an ACP agent, which tells of no background work and of no end: it asks, is in the log, and ends", () =>
    Effect.gen(function* () {
      const { go, project } = yield* shop({}, "acp")
      yield* project.tell("ann", { later: ["go", { ask: "echo made > made" }, { say: "I went on" }] })
      yield* project.answers("ann", 1)
      yield* go
      const { callId } = yield* project.asked("ann")
      yield* project.answer(callId, "allow")
      assert.deepStrictEqual(yield* project.answers("ann", 2), ["done", "I went on"])
      assert.deepStrictEqual(project.noted("ann", "made"), ["made"])
      const own = (yield* project.of("ann", 2, "turn.started"))[1]!
      assert.include(String(own.payload["input"]), "goes on by itself")
      yield* project.tell("ann", { say: "still here" })
      assert.strictEqual((yield* project.answers("ann", 3))[2], "still here")
      assert.strictEqual(yield* project.runs("ann"), 1)
    }).pipe(Effect.scoped)
  )

  it.live("is interrupted where its conversation takes no turns, and says so", () =>
    Effect.gen(function* () {
      const { go, project, stage } = yield* shop()
      yield* project.tell("ann", { later: ["go", { ask: "echo made > made" }] })
      yield* project.answers("ann", 1)
      yield* stage.rpc((client) =>
        client.Pause({ name: "shop", inFlight: "complete", reason: "lunch", caller: project.caller })
      )
      yield* go
      const [notice] = yield* project.of("ann", 1, "run.notice")
      assert.match(String(notice!.payload["text"]), /started a turn by itself .*until go.*interrupted.*paused/)
      assert.deepStrictEqual(project.noted("ann", "made"), [])
      yield* stage.rpc((client) => client.Resume({ name: "shop", caller: project.caller }))
      yield* project.tell("ann", { say: "still here" })
      assert.deepStrictEqual(yield* project.answers("ann", 2), ["done", "still here"])
      assert.strictEqual(yield* project.runs("ann"), 1)
    }).pipe(Effect.scoped)
  )

  it.live("is stopped by a person like any turn; its run goes on", () =>
    Effect.gen(function* () {
      const { go, project } = yield* shop()
      yield* project.tell("ann", { later: ["go", { hold: true }] })
      yield* go
      yield* project.of("ann", 2, "turn.started")
      yield* project.interrupt("ann")
      yield* project.of("ann", 1, "turn.interrupted")
      yield* project.tell("ann", { say: "on" })
      assert.deepStrictEqual(yield* project.answers("ann", 2), ["done", "on"])
      assert.strictEqual(yield* project.runs("ann"), 1)
    }).pipe(Effect.scoped)
  )

  it.live("the daemon is killed while it asks: the turn ends, and the next one answers", () =>
    Effect.gen(function* () {
      const { go, project, stage } = yield* shop()
      yield* project.tell("ann", { later: ["go", { ask: "echo made > made" }] })
      yield* go
      const { callId } = yield* project.asked("ann")
      yield* stage.box.kill9
      yield* stage.up
      yield* project.of("ann", 1, "turn.error")
      yield* project.tell("ann", { say: "after" })
      assert.deepStrictEqual(yield* project.answers("ann", 2), ["done", "after"])
      assert.strictEqual((yield* project.row("ann", "is there", () => true)).totalErrors, 0)
      yield* project.row("ann", "still asks", ({ detail }) => detail.includes(callId))
      // the question may have been lost whole with the daemon that heard it: to say no takes no more than its name
      const no = { name: callId, decision: "deny", reason: "", caller: project.caller } as const
      yield* stage.rpc((client) => client.Answer(no))
      yield* project.row("ann", "has nothing beside its turns", waits)
    }).pipe(Effect.scoped)
  )
})
