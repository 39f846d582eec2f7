import { assert, describe, it } from "@effect/vitest"
import {
  type Action,
  AGENTS,
  Conversation,
  type Data,
  type Event,
  initial,
  type State
} from "../../../src/agents/machines/ConversationMachine.ts"
import { begin, drive, type Driven } from "../../world/machines/drive.ts"

const fresh = begin<State, Data, Action>(Conversation, initial())
const after = (events: ReadonlyArray<Event>, from: Driven<State, Data, Action> = fresh) =>
  drive(Conversation, from, events)

const created: Event = { _tag: "create_requested", conversationId: "c", rootAgentId: "pm", config: {} }
const message: Event = { _tag: "first_message", messageId: "m" }
const active = after([created, message])
const turn = (turnId: string): Event => ({ _tag: "new_turn", turnId, agentId: "pm" })
const ended = (turnId: string, outcome: "completed" | "interrupted" | "error"): Event => ({
  _tag: "turn_completed",
  turnId,
  agentId: "pm",
  outcome
})
const failed: Event = { _tag: "agent_failed", agentId: "pm", error: "it broke" }
const close: Event = { _tag: "close_requested", by: "me", reason: "done" }
const pause = (inFlight: "interrupt" | "complete"): Event => ({
  _tag: "pause_requested",
  by: "me",
  reason: "lunch",
  inFlight
})
const resume: Event = { _tag: "resume_requested", by: "me" }
const spent: Event = { _tag: "budget_exhausted", resource: "usd", spent: 10, limit: 10 }

/** So many turns that end like this. */
const turns = (count: number, outcome: "completed" | "interrupted" | "error") =>
  Array.from({ length: count }, (_, n) => [turn(`${outcome}${n}`), ended(`${outcome}${n}`, outcome)]).flat()

describe("Conversation", () => {
  it("lives from its creation to the archive, one rune a move", () => {
    const { kinds, payloads } = after(
      [close, { _tag: "cleanup_complete", stats: { turns: 0 } }, { _tag: "archive_requested", by: "me" }],
      active
    )
    assert.deepStrictEqual(kinds, [
      "session.created",
      "session.activated",
      "session.closing",
      "session.closed",
      "session.archived"
    ])
    assert.deepInclude(payloads[0], { conversation_id: "c", config: {} })
    assert.deepInclude(payloads[1], { root_agent_id: "pm" })
    assert.deepInclude(payloads[3], { final_stats: { turns: 0 } })
  })

  it("suspends after five turn errors in a row; a turn that completes starts anew", () => {
    const almost = after([...turns(4, "error"), turn("x"), ended("x", "completed"), ...turns(4, "error")], active)
    assert.strictEqual(almost.state, "active")
    const suspended = after([turn("y"), ended("y", "error")], almost)
    assert.strictEqual(suspended.state, "suspended")
    assert.deepInclude(suspended.payloads.at(-1), { reason: "5 turns in a row ended with an error", budget_info: null })
  })

  it("suspends after three agents that stopped for good", () => {
    assert.strictEqual(after([failed, failed], active).state, "active")
    assert.strictEqual(after([failed, failed, failed], active).state, "suspended")
  })

  it("a spent budget suspends it; a person leads it out by reset or resume, with fresh counters", () => {
    const suspended = after([...turns(4, "error"), spent], active)
    assert.deepInclude(suspended.payloads.at(-1), { budget_info: { resource: "usd", spent: 10, limit: 10 } })
    assert.strictEqual(after([turn("x")], suspended).refused, "illegal")
    for (const event of [
      { _tag: "reset", by: "me" },
      resume,
      { _tag: "budget_replenished", by: "me", config: {} }
    ] as const) {
      const again = after([event], suspended)
      assert.strictEqual(again.state, "active")
      assert.strictEqual(again.kinds.at(-1), "session.unsuspended")
      assert.strictEqual(again.data.turnErrors, 0)
    }
  })

  it("a pause interrupts what is in flight or lets it end, as asked, and takes no new turn", () => {
    const busy = after([turn("t1")], active)
    assert.deepStrictEqual(
      [...after([pause("interrupt")], busy).actions],
      [{ _tag: "InterruptTurns", turnIds: ["t1"] }]
    )
    const paused = after([pause("complete")], busy)
    assert.deepStrictEqual([...paused.actions], [])
    assert.strictEqual(after([turn("t2")], paused).refused, "illegal")
    assert.strictEqual(after([spent], paused).refused, "postpone")
    const over = after([ended("t1", "completed"), resume], paused)
    assert.strictEqual(over.state, "active")
    assert.deepStrictEqual(over.data.turnIds, [])
    assert.deepStrictEqual([...over.actions], [{ _tag: "DrainQueues" }])
  })

  it("can be closed from every state in which it lives", () => {
    for (const events of [
      [created],
      [created, message],
      [created, message, pause("complete")],
      [created, message, spent]
    ]) {
      assert.strictEqual(after([...events, close]).state, "closing")
    }
  })

  it("a turn that is not in flight is stale, and none is counted twice", () => {
    assert.strictEqual(after([ended("t9", "error")], active).refused, "stale")
    assert.strictEqual(after([turn("t1"), turn("t1")], active).refused, "stale")
  })

  it("runs ten agents, twenty at most", () => assert.deepStrictEqual(AGENTS, { soft: 10, hard: 20 }))
})
