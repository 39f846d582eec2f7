import { assert, describe, it } from "@effect/vitest"
import * as AgentMachine from "../../../src/agents/machines/AgentMachine.ts"
import * as ConversationMachine from "../../../src/agents/machines/ConversationMachine.ts"
import * as ToolMachine from "../../../src/agents/machines/ToolMachine.ts"
import * as TurnMachine from "../../../src/agents/machines/TurnMachine.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import * as SeatMachine from "../../../src/channels/SeatMachine.ts"
import { TASK_STATES } from "../../../src/domain/GoalMessages.ts"
import * as StatusWords from "../../../src/domain/StatusWords.ts"
import type { AnyMachine } from "../../../src/core/event-actor/StateMachine.ts"
import * as GoalMachine from "../../../src/goals/GoalMachine.ts"
import * as PlateMachine from "../../../src/plates/PlateMachine.ts"
import * as ProviderMachine from "../../../src/providers/ProviderMachine.ts"

const machines: { readonly [name in Exclude<keyof typeof StatusWords.TABLES, "task">]: AnyMachine } = {
  worker: WorkerMachine.Worker,
  plate: PlateMachine.Plate,
  turn: TurnMachine.Turn,
  tool: ToolMachine.Tool,
  conversation: ConversationMachine.Conversation,
  agent: AgentMachine.Agent,
  autonomy: GoalMachine.Autonomy,
  seat: SeatMachine.Seat,
  provider: ProviderMachine.Provider
}

/** Before a thing is there nobody is shown it. */
const shown = (machine: AnyMachine) => Object.keys(machine.states).filter((state) => state !== "[*]")

describe("words", () => {
  it("there is one for each state of each machine, and for no other", () => {
    for (const [name, machine] of Object.entries(machines)) {
      const table = StatusWords.TABLES[name as keyof typeof machines]
      assert.sameMembers(Object.keys(table), shown(machine), name)
    }
    assert.sameMembers(Object.keys(StatusWords.task), [...TASK_STATES])
    for (const [name, table] of Object.entries(StatusWords.TABLES))
      for (const [state, cases] of Object.entries(table))
        assert.isUndefined(cases.at(-1)?.holds, `${name} ${state}: the last case always holds`)
  })

  it("an agent's is true of it, whatever else is", () => {
    const yes = [true, false]
    for (const state of Object.keys(StatusWords.worker) as ReadonlyArray<keyof typeof StatusWords.worker>)
      for (const asks of yes)
        for (const held of yes)
          for (const works of yes)
            for (const [wasStopped, holds] of yes.flatMap((a) => yes.map((b) => [a, b] as const)))
              for (const waits of [null, "limit", "network", "login", "place", "run"] as const)
                for (const [retries, isOver] of yes.flatMap((a) => yes.map((b) => [a, b] as const))) {
                  const facts = { asks, held, works, waits, wasStopped, holds, retries, isOver }
                  const word = StatusWords.wordOf(StatusWords.worker, state, facts)
                  const about = `${state} ${JSON.stringify(facts)}: ${word}`
                  const rests = state === "BuildingPrompt" || state === "Running"
                  if (rests) assert.strictEqual(word === "needs you", asks, about)
                  if (word === "idle") assert.isFalse(asks || held || works || waits !== null, about)
                  if (word === "paused") assert.isTrue(held, about)
                  if (word === "waiting") assert.isTrue(waits !== null && !held, about)
                  if (word === "retrying")
                    assert.isTrue(state === "CoolingDown" || (state === "Running" && retries), about)
                  if (word === "failed") assert.isTrue(state === "Stopped" && !wasStopped && !isOver, about)
                  if (word === "stopped") assert.isTrue(state === "Stopped" && wasStopped && !holds, about)
                  if (word === "done") assert.isTrue(state === "Stopped" && isOver && !wasStopped, about)
                }
  })

  it("with the time at which it goes on, or with what it waits for", () => {
    const now = new Date(2026, 10, 20, 13, 0, 0).getTime()
    const of = (word: StatusWords.Word, inSeconds: number | null, reason: StatusWords.Reason | null = null) =>
      StatusWords.phrase({ word, until: inSeconds === null ? null : now + inSeconds * 1_000, reason }, now)
    assert.strictEqual(of("retrying", 8), "retrying in 8 s")
    assert.strictEqual(of("retrying", -2), "retrying now")
    assert.strictEqual(of("waiting", 3_600, "limit"), "waiting until 14:00 (limit)")
    assert.strictEqual(of("waiting", 3_600 * 26, "limit"), "waiting until Sat 15:00 (limit)")
    assert.strictEqual(of("waiting", 86_400 * 12, "limit"), "waiting until 2 Dec (limit)")
    assert.strictEqual(of("waiting", 20, "network"), "waiting for the network")
    assert.strictEqual(of("waiting", null, "place"), "waiting for a free slot")
    assert.strictEqual(of("waiting", 20, "run"), "waiting 20 s")
    assert.strictEqual(of("waiting", -1, "run"), "waiting for its next run")
    for (const word of ["needs you", "failed", "working", "paused", "idle", "stopped", "done"] as const)
      assert.strictEqual(of(word, 60, "run"), word)
  })

  it("as what is said of a thing", () => {
    const said = StatusWords.WORDS.map((word) => StatusWords.predicate({ word }, 0))
    assert.deepStrictEqual(said.slice(0, 3), ["needs you", "has failed", "is retrying"])
    assert.isTrue(said.slice(2).every((one) => one.startsWith("is ")))
  })

  it("what needs a person comes first, and each glyph has a shape of its own", () => {
    const words = Object.keys(StatusWords.LOOKS) as ReadonlyArray<StatusWords.Word>
    assert.deepStrictEqual(
      words.toSorted((a, b) => StatusWords.rankOf(a) - StatusWords.rankOf(b)),
      [...words]
    )
    for (const form of ["glyph", "ascii"] as const)
      assert.strictEqual(new Set(words.map((word) => StatusWords.LOOKS[word][form])).size, words.length)
    const groups = words.map((word) => StatusWords.GROUPS.indexOf(StatusWords.LOOKS[word].group))
    assert.deepStrictEqual(groups.toSorted(), groups, "a group is of neighbours")
  })

  it("a channel's is of its floor, its seats and what waits", () => {
    const room = { closed: false, paused: false, floor: null, waits: null, seats: ["idle"] as const }
    assert.strictEqual(StatusWords.channelWord(room), "idle")
    assert.strictEqual(StatusWords.channelWord({ ...room, floor: "pm" }), "working")
    assert.strictEqual(StatusWords.channelWord({ ...room, seats: ["needs you", "idle"] }), "needs you")
    assert.strictEqual(StatusWords.channelWord({ ...room, waits: "rests", floor: "pm" }), "needs you")
    assert.strictEqual(StatusWords.channelWord({ ...room, paused: true }), "paused")
    assert.strictEqual(StatusWords.channelWord({ ...room, seats: ["waiting"] }), "waiting")
    assert.strictEqual(StatusWords.channelWord({ ...room, closed: true, paused: true }), "done")
  })
})
