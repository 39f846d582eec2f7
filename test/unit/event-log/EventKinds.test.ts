/** The registry of rune kinds. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import * as AgentMachine from "../../../src/agents/machines/AgentMachine.ts"
import * as GoalMachine from "../../../src/goals/GoalMachine.ts"
import * as ConversationMachine from "../../../src/agents/machines/ConversationMachine.ts"
import * as PlateMachine from "../../../src/plates/PlateMachine.ts"
import * as SeatMachine from "../../../src/channels/SeatMachine.ts"
import * as ToolMachine from "../../../src/agents/machines/ToolMachine.ts"
import * as TurnMachine from "../../../src/agents/machines/TurnMachine.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import { readTurn, type turnKinds } from "../../../src/agents/machines/TurnKinds.ts"
import { kinds } from "../../../src/app/EventKinds.ts"
import type { channelKinds } from "../../../src/channels/ChannelKinds.ts"
import type * as EventKinds from "../../../src/core/event-log/EventKinds.ts"

const { accepts, explain } = kinds

const lost = { _tag: "stream_error", turnId: "t", errorType: "exit", message: "" }

const machines = [
  AgentMachine,
  GoalMachine,
  ConversationMachine,
  PlateMachine,
  SeatMachine,
  ToolMachine,
  TurnMachine,
  WorkerMachine
]

describe("Kinds", () => {
  it("knows every kind of every machine, and asks for the whole event", () => {
    for (const { kinds: names } of machines) {
      for (const name of names) {
        expect(kinds.get(name), name).toBeDefined()
        expect(accepts(name, {}), name).toBe(false)
        expect(accepts(name, { event: { _tag: "NoSuchEvent" } }), name).toBe(false)
      }
    }
  })

  it("takes an event of the machine, with the fields that the kind names beside it", () => {
    const event = { _tag: "SessionStarted", runId: "r1", seq: 3 }
    expect(accepts("worker.moved", { event, sessionSeq: 3 })).toBe(true)
    expect(accepts("worker.moved", { event: { ...event, seq: "three" } })).toBe(false)
    expect(explain("worker.moved", { event: { ...event, seq: "three" } })).toContain("seq")
  })

  it("refuses a kind that is not there, and names it", () => {
    expect(accepts("worker.mooved", {})).toBe(false)
    expect(explain("worker.mooved", {})).toContain("worker.mooved")
    expect(accepts("constructor", {})).toBe(false)
    expect(explain("toString", {})).toContain("no kind")
  })

  it("lets only those be lazy that no fold reads", () => {
    const lazy = kinds.names.filter(kinds.lazy)
    expect(lazy.toSorted()).toEqual([
      "actor.dead_letter",
      "hook.refused",
      "run.background",
      "run.notice",
      "run.output",
      "run.thought",
      "tool.progress",
      "turn.assistant_delta"
    ])
  })

  it("keeps from the public what is for agentd itself", () => {
    for (const name of ["turn.finalized", "plan.critique", "actor.dead_letter", "hook.refused", "runes.dropped"]) {
      expect(kinds.get(name)!.visibility, name).toBe("internal")
    }
    expect(kinds.get("worker.moved")!.visibility).toBe("public")
  })

  it("spells every kind `family.what`", () => {
    for (const name of kinds.names) expect(name).toMatch(/^[a-z]+\.[a-z_]+$/)
  })

  it("a reader's type is that of the schema which checks the kind on writing", () => {
    const payload = { turn_id: "t", error_type: "exit", message: null, event: lost }
    expect(accepts("turn.error", payload)).toBe(true)
    const rune = readTurn({ kind: "turn.error", payload })
    if (rune?.kind !== "turn.error") return expect.unreachable()
    expect(rune.payload).toBe(payload)
    expectTypeOf(rune.payload).toEqualTypeOf<EventKinds.PayloadOf<(typeof turnKinds)["turn.error"]>>()
    expectTypeOf(rune.payload.event).toEqualTypeOf<TurnMachine.Event>()
    expectTypeOf(rune.payload.message).toEqualTypeOf<string | null>()
    expectTypeOf<EventKinds.RuneOf<typeof channelKinds>["payload"]>().not.toBeAny()
  })
})
