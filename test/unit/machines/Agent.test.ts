import { assert, describe, it } from "@effect/vitest"
import {
  type Action,
  Agent,
  type Data,
  type Event,
  initial,
  type State
} from "../../../src/agents/machines/AgentMachine.ts"
import { begin, drive, type Driven } from "../../world/machines/drive.ts"

const fresh = begin<State, Data, Action>(Agent, initial())
const after = (events: ReadonlyArray<Event>, from: Driven<State, Data, Action> = fresh) => drive(Agent, from, events)

const spawning = after([{ _tag: "spawn_requested", agentId: "pm", role: "plans", model: null, parentId: null }])
const idle = after([{ _tag: "init_complete" }], spawning)
const running = after([{ _tag: "turn_assigned", turnId: "t1" }], idle)
const kill = (tag: "kill" | "kill_forced"): Event => ({ _tag: tag, by: "me", reason: "enough" })
const orphaned: Event = { _tag: "parent_closed", parentId: "boss" }
const spent: Event = { _tag: "budget_exhausted", resource: "tokens", spent: 9, limit: 8 }
const ends: ReadonlyArray<Event> = [
  { _tag: "turn_completed", turnId: "t1" },
  { _tag: "turn_interrupted", turnId: "t1" },
  { _tag: "turn_error", turnId: "t1", message: "it broke" }
]

describe("Agent", () => {
  it("is spawned, gets ready, is busy and idle", () => {
    const { kinds, payloads } = after([ends[0]!], running)
    assert.deepStrictEqual(kinds, ["agent.spawning", "agent.ready", "agent.busy", "agent.idle"])
    assert.deepInclude(payloads[0], { agent_id: "pm", role: "plans", model: null, parent_id: null })
  })

  it("an agent that cannot be initialized has failed, with the error", () => {
    const failed = after([{ _tag: "init_error", error: "no such backend" }], spawning)
    assert.strictEqual(failed.state, "failed")
    assert.deepInclude(failed.payloads.at(-1), { agent_id: "pm", error: "no such backend" })
  })

  it.each([kill("kill"), orphaned])("$_tag waits for the end of a turn, and ends an idle agent", (event) => {
    assert.strictEqual(after([event], running).refused, "postpone")
    const ended = after([event], after([ends[0]!], running))
    assert.strictEqual(ended.state, "terminated")
    assert.deepInclude(ended.payloads.at(-1), { agent_id: "pm", stats: { completed: 1, interrupted: 0, errors: 0 } })
  })

  it("force waits for nothing", () => {
    assert.strictEqual(after([kill("kill_forced")], spawning).state, "terminated")
    const ended = after([kill("kill_forced")], running)
    assert.strictEqual(ended.state, "terminated")
    assert.deepStrictEqual([...ended.actions], [{ _tag: "ForceStopTurn", turnId: "t1" }])
  })

  it.each(ends)("INV-AGENT-BUDGET: a spent budget interrupts the turn, and ends the agent at $_tag", (end) => {
    const interrupted = after([spent], running)
    assert.strictEqual(interrupted.state, "running_turn")
    assert.strictEqual(interrupted.kinds.at(-1), "agent.budget_exhausted")
    assert.deepStrictEqual([...interrupted.actions], [{ _tag: "InterruptTurn", turnId: "t1" }])
    const ended = after([end], interrupted)
    assert.strictEqual(ended.state, "terminated")
    assert.deepInclude(ended.payloads.at(-1), { reason: "the budget of tokens is spent" })
  })

  it("INV-TURN-SEQUENTIAL: a second turn is refused, the end of another is stale", () => {
    assert.strictEqual(after([{ _tag: "turn_assigned", turnId: "t2" }], running).refused, "illegal")
    assert.strictEqual(after([{ _tag: "turn_completed", turnId: "t0" }], running).refused, "stale")
  })
})
