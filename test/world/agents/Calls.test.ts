import { assert, describe, it } from "@effect/vitest"
import { Effect, HashMap } from "effect"
import type { ScriptedCall } from "../../../src/runs/ScriptedTurns.ts"
import * as WaitingInputs from "../../../src/agents/run/WaitingInputs.ts"
import { leave } from "./Leave.ts"
import * as Puppet from "./Puppet.ts"
import { type AgentWorld, caller, make, memoryLog, STREAM } from "./AgentWorld.ts"
import { holding } from "./TestLog.ts"
import { until } from "./World.ts"

const one = (call: Partial<ScriptedCall>) => ({
  steps: [{ calls: [{ id: "a", tool: "shell", ...call }] }, { say: "ok" }]
})
const asked = (world: AgentWorld) =>
  until(
    Effect.sync(() => world.tree.calls()),
    (calls) => calls.some(({ state }) => state === "awaiting_approval")
  )
const yes = { behavior: "allow", reason: "" } as const
const no = { behavior: "deny", reason: "not today" } as const
const statuses = (world: AgentWorld) =>
  Effect.map(world.runes, (runes) =>
    runes.filter(({ kind }) => kind === "tool.result").map(({ payload }) => payload["status"])
  )

describe("tool calls", () => {
  it.live("a call without side effects runs; its one result is in the log before the turn goes on", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ readOnly: true, asks: true, output: "42" })])
      yield* world.tree.send("go", "queue", caller)
      yield* world.kind("turn.completed")
      const kinds = (yield* world.runes).map(({ kind }) => kind).filter((kind) => /^(tool|turn)\./.test(kind))
      assert.deepStrictEqual(
        kinds.filter((kind) => kind !== "turn.assistant_delta").slice(0, 6),
        [
          "turn.started",
          "tool.call",
          "turn.tool_calls_received",
          "tool.started",
          "tool.result",
          "turn.tools_finished"
        ].toSorted((a, b) => kinds.indexOf(a) - kinds.indexOf(b))
      )
      assert.deepStrictEqual(yield* statuses(world), ["success"])
      assert.deepStrictEqual(world.tree.calls(), [])
    }).pipe(Effect.scoped)
  )

  it.live("one with side effects waits for a person, with its arguments shown", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true, arguments: { command: "rm -rf build" } })])
      yield* world.tree.send("go", "queue", caller)
      const [call] = yield* asked(world)
      assert.strictEqual(call!.arguments, '{"command":"rm -rf build"}')
      assert.strictEqual(call!.reason, "removes files")
      const done = yield* world.tree.answer(call!.callId, leave(world.tree, call!.callId), caller)
      assert.isAbove(done.eventId, 0)
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(yield* statuses(world), ["success"])
      assert.deepStrictEqual(world.backend.played()[0]!.turns!.answers, [["a", { behavior: "allow" }]])
    }).pipe(Effect.scoped)
  )

  it.live("a question that its agent takes back asks nobody, and cannot be answered; the call goes on", () =>
    Effect.gen(function* () {
      const world = yield* make([])
      const puppet = Puppet.make()
      world.puppet = puppet
      yield* world.tree.send("go", "queue", caller)
      const run = yield* puppet.run()
      yield* run.say({ _tag: "ToolCall", callId: "a", tool: "Bash", arguments: { command: "make" }, readOnly: false })
      yield* run.say({ _tag: "ApprovalRequested", callId: "a", reason: "it writes" })
      const [call] = yield* asked(world)
      const said = leave(world.tree, call!.callId)
      yield* run.say({ _tag: "ApprovalWithdrawn", callId: "a" })
      yield* world.kind("tool.approval_withdrawn")
      assert.deepInclude(world.tree.calls()[0], { state: "pending_call", reason: null })
      for (const word of [said, no]) {
        const refused = yield* Effect.flip(world.tree.answer(call!.callId, word, caller))
        assert.include(refused.message, "its agent has withdrawn the question")
      }
      yield* run.say({ _tag: "ToolStarted", callId: "a" })
      yield* run.say({ _tag: "ToolResult", callId: "a", status: "success", output: "built" })
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(yield* statuses(world), ["success"])
      assert.deepStrictEqual(run.answers, [])
    }).pipe(Effect.scoped)
  )

  it.live("a denied call ends denied and with a result, and its agent is told why", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true })])
      yield* world.tree.send("go", "queue", caller)
      const [call] = yield* asked(world)
      yield* world.tree.answer(call!.callId, no, caller)
      yield* world.kind("turn.completed")
      assert.strictEqual((yield* world.kind("tool.denied"))[0]!.payload["reason"], "not today")
      assert.deepStrictEqual(yield* statuses(world), ["denied"])
      assert.deepStrictEqual(world.backend.played()[0]!.turns!.answers, [
        ["a", { behavior: "deny", message: "not today", words: true }]
      ])
    }).pipe(Effect.scoped)
  )

  it.live("a call that asks to choose takes an answer and no approval; the rune and its run have what was chosen", () =>
    Effect.gen(function* () {
      const options = [
        { label: "Red", description: "warm" },
        { label: "Blue", description: "" }
      ]
      const questions = [{ question: "Which?", options, several: false }]
      const world = yield* make([one({ asks: true, questions })])
      yield* world.tree.send("go", "queue", caller)
      const [call] = yield* asked(world)
      assert.deepStrictEqual(call!.questions, questions)
      assert.match(
        (yield* Effect.flip(world.tree.answer(call!.callId, leave(world.tree, call!.callId), caller))).message,
        /asks you to choose/
      )
      const done = yield* world.tree.answer(call!.callId, { ...yes, answers: ["2"] }, caller)
      assert.include(done.message, "answered: Blue")
      yield* world.kind("turn.completed")
      const event = (yield* world.kind("tool.approved"))[0]!.payload["event"]
      assert.deepStrictEqual((event as { readonly answers: unknown }).answers, ["Blue"])
      assert.deepStrictEqual(world.backend.played()[0]!.turns!.answers, [
        ["a", { behavior: "allow", answers: ["Blue"] }]
      ])
    }).pipe(Effect.scoped)
  )

  it.live("an answer to a call that asks for leave is refused, and says how to give it", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true })])
      yield* world.tree.send("go", "queue", caller)
      const [call] = yield* asked(world)
      const refused = yield* Effect.flip(world.tree.answer(call!.callId, { ...yes, answers: ["2"] }, caller))
      assert.include(refused.remedy, `agentd approve ${call!.callId}`)
    }).pipe(Effect.scoped)
  )

  it.live("an answer that comes twice, or for nothing, is refused and says what became of the call", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true, takes: "30 millis" })])
      yield* world.tree.send("go", "queue", caller)
      const [call] = yield* asked(world)
      yield* world.tree.answer(call!.callId, leave(world.tree, call!.callId), caller)
      assert.match((yield* Effect.flip(world.tree.answer(call!.callId, no, caller))).message, /is already running/)
      yield* world.kind("turn.completed")
      assert.match(
        (yield* Effect.flip(world.tree.answer(call!.callId, no, caller))).message,
        /no longer waits for an answer: shell ended/
      )
      assert.match(
        (yield* Effect.flip(world.tree.answer("none", leave(world.tree, "none"), caller))).message,
        /does not wait for an answer/
      )
    }).pipe(Effect.scoped)
  )

  it.live("two answers at the same time: one wins, the other is told", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true })])
      yield* world.tree.send("go", "queue", caller)
      const [call] = yield* asked(world)
      const both = yield* Effect.forEach(
        [yes, no],
        (how) => Effect.exit(world.tree.answer(call!.callId, how, caller)),
        {
          concurrency: 2
        }
      )
      assert.strictEqual(both.filter(({ _tag }) => _tag === "Success").length, 1)
      yield* world.kind("turn.completed")
      assert.strictEqual((yield* statuses(world)).length, 1)
    }).pipe(Effect.scoped)
  )

  it.live("a call waits for as long as it takes, unless a time is set", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true })])
      yield* world.tree.send("go", "queue", caller)
      const [call] = yield* asked(world)
      assert.isNull(call!.until)
    }).pipe(Effect.scoped)
  )

  it.live(
    "nobody answers: the call ends as timed out, the agent waits no longer, and a person is told until one lets it be",
    () =>
      Effect.gen(function* () {
        const command = { command: "npm publish" }
        const world = yield* make([one({ asks: true, arguments: command })], { approvals: { timeout: "30ms" } })
        yield* world.tree.send("go", "queue", caller)
        yield* world.kind("turn.completed")
        assert.deepStrictEqual(yield* statuses(world), ["timeout"])
        const bounds = () => (world.tree.inbox().data.bounds ?? []).map(({ text }) => text)
        assert.deepStrictEqual(bounds(), ["nobody answered within 0 s: shell: npm publish expired, and was denied"])
        const [rune] = (yield* world.runes).filter(({ kind }) => kind === "agent.bound_reached")
        const [result] = (yield* world.runes).filter(({ kind }) => kind === "tool.result")
        assert.strictEqual(rune!.payload["call_id"], result!.payload["call_id"])
        const late = yield* Effect.flip(world.tree.answer(String(result!.payload["call_id"]), no, caller))
        assert.match(late.message, /no longer waits for an answer: shell expired: nobody answered in time/)
        yield* world.tree.tellInbox({ _tag: "Dismiss", which: undefined, by: "ada" })
        assert.deepStrictEqual(bounds(), [])
        assert.strictEqual(world.backend.played()[0]!.turns!.answers[0]![1].behavior, "deny")
      }).pipe(Effect.scoped)
  )

  it.live("approvals.mode read_only denies what may have side effects; always and never win over it", () =>
    Effect.gen(function* () {
      const world = yield* make(
        [
          {
            steps: [
              {
                calls: [
                  { id: "a", tool: "write", asks: true },
                  { id: "b", tool: "mcp__x__y", asks: true }
                ]
              },
              { say: "ok" }
            ]
          }
        ],
        { approvals: { mode: "read_only", never: ["mcp__*"] } }
      )
      yield* world.tree.send("go", "queue", caller)
      yield* world.kind("turn.completed")
      assert.deepStrictEqual((yield* statuses(world)).toSorted(), ["denied", "success"])
    }).pipe(Effect.scoped)
  )

  it.live("a call that takes too long is ended and has timed out; the turn goes on", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ readOnly: true, takes: "hang" })], { toolTimeout: "30ms" })
      yield* world.tree.send("go", "queue", caller)
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(yield* statuses(world), ["timeout"])
    }).pipe(Effect.scoped)
  )

  it.live("an interrupt with an open question and a running call: both are cancelled, each has one result", () =>
    Effect.gen(function* () {
      const world = yield* make([
        {
          steps: [
            {
              calls: [
                { id: "a", tool: "x", asks: true },
                { id: "b", tool: "y", readOnly: true, takes: "hang" }
              ]
            }
          ]
        }
      ])
      yield* world.tree.send("go", "queue", caller)
      yield* asked(world)
      yield* world.kind("tool.started")
      yield* world.tree.interrupt(caller)
      yield* world.over()
      assert.deepStrictEqual(yield* statuses(world), ["cancelled", "cancelled"])
    }).pipe(Effect.scoped)
  )

  it.live("a question outlives the daemon; approved late, the same call runs without asking when it comes again", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true, arguments: { command: "deploy" } })])
      yield* world.tree.send("go", "queue", caller)
      const [before] = yield* asked(world)
      yield* world.lose
      world.play([{ steps: [{ wait: "150 millis" }, ...one({ asks: true, arguments: { command: "deploy" } }).steps] }])
      yield* world.open
      const [open] = yield* asked(world)
      assert.strictEqual(open!.callId, before!.callId)
      const done = yield* world.tree.answer(open!.callId, leave(world.tree, open!.callId), caller)
      assert.match(done.message, /applies when the agent repeats the call/)
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(yield* statuses(world), ["unknown", "success"])
      const starts = yield* world.kind("tool.started")
      assert.match(JSON.stringify(starts.at(-1)!.payload), /approved before by ada/)
    }).pipe(Effect.scoped)
  )

  it.live("a question of which the whole is not known any more ends with its run: nobody could allow it", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true })])
      yield* world.tree.send("go", "queue", caller)
      yield* asked(world)
      yield* world.lose
      // killed before it was kept
      world.waiting = WaitingInputs.memory()
      world.play([{ steps: [{ say: "ok" }] }])
      yield* world.open
      const [result] = yield* world.kind("tool.result")
      assert.strictEqual(result!.payload["status"], "cancelled")
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(world.tree.calls(), [])
    }).pipe(Effect.scoped)
  )

  it.live("what a question would do is kept before the question is written: no kill comes between", () =>
    Effect.gen(function* () {
      const gate = holding(yield* memoryLog)
      const world = yield* make([one({ asks: true })], {}, { log: gate.log })
      gate.hold(({ kind }) => kind === "tool.approval_requested")
      yield* world.tree.send("go", "queue", caller)
      yield* gate.caught
      assert.lengthOf(world.waiting.of(STREAM, "builder"), 1)
      yield* gate.free
      const [call] = yield* asked(world)
      yield* world.tree.answer(call!.callId, leave(world.tree, call!.callId), caller)
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(world.waiting.of(STREAM, "builder"), [])
    }).pipe(Effect.scoped)
  )

  it.live("of a call that runs unasked nothing is kept", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true, readOnly: true })])
      yield* world.tree.send("go", "queue", caller)
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(world.waiting.of(STREAM, "builder"), [])
    }).pipe(Effect.scoped)
  )

  it.live("what was chosen late is the answer when the same is asked again", () =>
    Effect.gen(function* () {
      const options = [{ label: "Red", description: "" }]
      const asks = one({ asks: true, questions: [{ question: "Which?", options, several: false }] })
      const world = yield* make([asks])
      yield* world.tree.send("go", "queue", caller)
      yield* asked(world)
      yield* world.lose
      // and lost again between the answer and the asking
      world.play([{ hang: true }])
      yield* world.open
      const [open] = yield* asked(world)
      assert.strictEqual(open!.questions?.length, 1)
      yield* world.tree.answer(open!.callId, { ...yes, answers: ["1"] }, caller)
      yield* world.lose
      world.play([asks])
      yield* world.open
      yield* world.kind("turn.completed")
      const starts = yield* world.kind("tool.started")
      assert.match(JSON.stringify(starts.at(-1)!.payload), /"answers":\["Red"\]/)
    }).pipe(Effect.scoped)
  )

  it.live("of a call that has its result nothing is held", () =>
    Effect.gen(function* () {
      const world = yield* make([one({ asks: true })])
      yield* world.tree.send("go", "queue", caller)
      const [asking] = yield* asked(world)
      yield* world.tree.answer(asking!.callId, leave(world.tree, asking!.callId), caller)
      yield* world.kind("turn.completed")
      const { counts, open } = world.tree.actors.tools.state
      assert.deepStrictEqual([HashMap.size(open), HashMap.size(counts)], [0, 0])
      assert.isUndefined(world.tree.live.origin(asking!.callId))
    }).pipe(Effect.scoped)
  )

  it.live("huge arguments and outputs are kept as excerpts, and say how much is left out", () =>
    Effect.gen(function* () {
      const world = yield* make([
        one({ readOnly: true, arguments: { text: "x".repeat(900_000) }, output: "y".repeat(2_000_000) })
      ])
      yield* world.tree.send("go", "queue", caller)
      yield* world.kind("turn.completed")
      const [call] = yield* world.kind("tool.call")
      assert.match(JSON.stringify(call!.payload["arguments"]), /characters are left out/)
      const [result] = yield* world.kind("tool.result")
      assert.match(String(result!.payload["output"]), /characters are left out/)
    }).pipe(Effect.scoped)
  )
})
