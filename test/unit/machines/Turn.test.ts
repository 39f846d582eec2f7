import { assert, describe, it } from "@effect/vitest"
import {
  type Action,
  type Data,
  type Event,
  initial,
  nextOf,
  type State,
  sweepable,
  SWEEP_AGE,
  SWEEP_INTERVAL,
  Turn
} from "../../../src/agents/machines/TurnMachine.ts"
import { begin, drive, type Driven } from "../../world/machines/drive.ts"

const idle = begin<State, Data, Action>(Turn, initial())
const after = (events: ReadonlyArray<Event>, from: Driven<State, Data, Action> = idle) => drive(Turn, from, events)

const begins = (turnId: string, source: "resume" | "steer" | "queue" = "queue"): Event => ({
  _tag: "start_turn",
  turnId,
  agentId: "pm",
  input: "go",
  source,
  messageIds: ["m1"],
  at: 100
})
const steer = (turnId: string, input: string): Event => ({
  _tag: "steer",
  turnId,
  agentId: "pm",
  input,
  messageIds: [input],
  at: 200
})
const calls: Event = { _tag: "tool_calls_received", turnId: "t1", callIds: ["c1", "c2"] }
const finished = (goesOn: boolean): Event => ({ _tag: "tools_finished", turnId: "t1", results: [], continue: goesOn })
const interrupt: Event = { _tag: "interrupt", by: "me", reason: "enough" }
const finalized: Event = { _tag: "turn_finalized", turnId: "t1" }

describe("Turn", () => {
  it("goes through its tools to an answer, one rune a move; its last rune finalizes it", () => {
    const done: Event = { _tag: "response_done", turnId: "t1", finalOutput: "42", usage: { tokens: 7 } }
    const { kinds, payloads, state } = after([begins("t1"), calls, finished(true), done])
    assert.strictEqual(state, "idle")
    assert.deepStrictEqual(kinds, ["turn.started", "turn.tool_calls_received", "turn.tools_finished", "turn.completed"])
    assert.deepInclude(payloads[0], { turn_id: "t1", agent_id: "pm", input: "go" })
    assert.deepInclude(payloads[1], { call_ids: ["c1", "c2"] })
    assert.deepInclude(payloads[3], { final_output: "42", usage: { tokens: 7 } })
  })

  it("INV-TURN-SEQUENTIAL: a start outside idle is refused, and kept", () => {
    for (const events of [[], [calls], [interrupt]] as ReadonlyArray<ReadonlyArray<Event>>) {
      assert.strictEqual(after([begins("t1"), ...events, begins("t2")]).refused, "postpone")
    }
  })

  it("an event of another turn is stale", () => {
    assert.strictEqual(after([begins("t1"), { ...calls, turnId: "t0" }]).refused, "stale")
    assert.strictEqual(after([begins("t1"), { ...interrupt, turnId: "t0" }]).refused, "stale")
    assert.isNull(after([begins("t1"), { ...interrupt, turnId: "t1" }]).refused)
  })

  it("a steered turn ends interrupted with reason steered, and its text starts the next one", () => {
    const steered = after([begins("t1"), steer("t2", "left")])
    assert.strictEqual(steered.state, "interrupted")
    assert.deepInclude(steered.payloads.at(-1), { reason: "steered" })
    assert.deepStrictEqual(steered.data.steer, { turnId: "t2", input: "left", messageIds: ["left"] })
    const next = after([finalized, begins("t2", "steer")], steered)
    assert.strictEqual(next.state, "streaming")
    assert.isNull(next.data.steer)
  })

  it("two steers before the next turn are one input; a turn of another source takes none of it", () => {
    const twice = after([begins("t1"), steer("t2", "left"), finalized, begins("t3"), steer("t4", "right")])
    assert.deepStrictEqual(twice.data.steer, { turnId: "t4", input: "left\n\nright", messageIds: ["left", "right"] })
  })

  it("a steer waits while tools run, and starts a turn where none is active", () => {
    assert.strictEqual(after([begins("t1"), calls, steer("t2", "left")]).refused, "postpone")
    const started = after([steer("t2", "left")])
    assert.strictEqual(started.state, "streaming")
    assert.deepInclude(started.payloads[0], { turn_id: "t2", input: "left" })
  })

  it("an interrupt stops the work; when its grace runs out, by force", () => {
    const interrupted = after([begins("t1"), calls, interrupt])
    assert.deepStrictEqual([...interrupted.actions], [{ _tag: "StopWork", turnId: "t1" }])
    assert.strictEqual(Turn.timers.grace.after(interrupted.data, 0), 10_000)
    const forced = after([Turn.timers.grace.fires(interrupted.data)], interrupted)
    assert.strictEqual(forced.state, "idle")
    assert.deepStrictEqual([...forced.actions], [{ _tag: "ForceStopWork", turnId: "t1" }])
  })

  it("INV-TURN-TERMINAL: the sweep may end one that is older than five minutes and has no live run", () => {
    assert.deepStrictEqual([SWEEP_INTERVAL, SWEEP_AGE], [60_000, 300_000])
    const { data } = after([begins("t1")])
    assert.isFalse(sweepable("streaming", data, 100 + SWEEP_AGE, false))
    assert.isTrue(sweepable("streaming", data, 101 + SWEEP_AGE, false))
    assert.isFalse(sweepable("streaming", data, 101 + SWEEP_AGE, true))
    assert.isFalse(sweepable("completed", data, 101 + SWEEP_AGE, false))
  })

  it("the next turn takes what resumes, then what steers, then the oldest in the queue", () => {
    const waiting = [
      { source: "queue", messages: ["a"] },
      { source: "steer", messages: ["b", "c"] },
      { source: "resume", messages: ["d"] },
      { source: "resume", messages: [] }
    ] as const
    assert.strictEqual(nextOf(waiting), waiting[2])
    assert.strictEqual(nextOf([waiting[0], waiting[1], waiting[3]]), waiting[1])
    assert.strictEqual(nextOf([waiting[0], waiting[3]]), waiting[0])
    assert.isUndefined(nextOf([waiting[3]]))
  })
})
