import { assert, describe, it } from "@effect/vitest"
import { Agent } from "../../../src/agents/machines/AgentMachine.ts"
import { Autonomy } from "../../../src/goals/GoalMachine.ts"
import { Conversation } from "../../../src/agents/machines/ConversationMachine.ts"
import { type AnyMachine, edges } from "../../../src/core/event-actor/StateMachine.ts"
import { Seat } from "../../../src/channels/SeatMachine.ts"
import { Tool } from "../../../src/agents/machines/ToolMachine.ts"
import { Turn } from "../../../src/agents/machines/TurnMachine.ts"
import { Worker } from "../../../src/agents/machines/WorkerMachine.ts"
import { agent } from "../../world/machines/seeds/agent.ts"
import { autonomy } from "../../world/machines/seeds/autonomy.ts"
import { conversation } from "../../world/machines/seeds/conversation.ts"
import { seat } from "../../world/machines/seeds/seat.ts"
import type { Deviation, Row, Seed } from "../../world/machines/seeds/Seed.ts"
import { tool } from "../../world/machines/seeds/tool.ts"
import { turn } from "../../world/machines/seeds/turn.ts"
import { worker } from "../../world/machines/seeds/worker.ts"

const seeds: ReadonlyArray<readonly [string, Seed, AnyMachine]> = [
  ["worker", worker, Worker],
  ["turn", turn, Turn],
  ["tool", tool, Tool],
  ["conversation", conversation, Conversation],
  ["agent", agent, Agent],
  ["autonomy", autonomy, Autonomy],
  ["seat", seat, Seat]
]

interface Edge {
  readonly from: string
  readonly event: string
  readonly to: string
  readonly act: ReadonlyArray<string>
  readonly rune: string
}

const edgesOf = (machine: AnyMachine): ReadonlyArray<Edge> =>
  edges(machine).map((edge) => ({
    from: edge.from,
    event: edge.event,
    to: edge.to as string,
    act: (edge.act as ReadonlyArray<string> | undefined) ?? [],
    rune: (edge.rune as string | undefined) ?? (machine.rune as string)
  }))

const sameActs = (a: ReadonlyArray<string> | undefined, b: ReadonlyArray<string> | undefined): boolean =>
  a === undefined || b === undefined || a.join() === b.join()

const isRow = (edge: Edge, row: Row): boolean =>
  edge.from === row.from &&
  edge.event === row.event &&
  edge.to === row.to &&
  sameActs(edge.act, row.act) &&
  (row.rune === undefined || row.rune === edge.rune)

const isCovered = (edge: Row, deviation: Deviation): boolean =>
  deviation.from.includes(edge.from) &&
  deviation.event.includes(edge.event) &&
  deviation.to === edge.to &&
  sameActs(edge.act, deviation.act)

/** Spreads a deviation over the edges that it stands for. */
const spread = (deviations: ReadonlyArray<Deviation>): ReadonlyArray<Deviation> =>
  deviations.flatMap((deviation) =>
    deviation.from.flatMap((from) => deviation.event.map((event) => ({ ...deviation, from: [from], event: [event] })))
  )

describe.each(seeds)("the %s machine is its source's table", (_, seed, machine) => {
  const ours = edgesOf(machine)
  const dropped = seed.dropped ?? []

  it("has the source's states", () =>
    assert.deepStrictEqual(Object.keys(machine.states).toSorted(), [...seed.states].toSorted()))

  it("has every row of the source, unless the deviation is listed", () =>
    assert.deepStrictEqual(
      seed.rows.filter(
        (row) => !ours.some((edge) => isRow(edge, row)) && !dropped.some((deviation) => isCovered(row, deviation))
      ),
      []
    ))

  it("has no other edge, unless the deviation is listed", () =>
    assert.deepStrictEqual(
      ours.filter(
        (edge) => !seed.rows.some((row) => isRow(edge, row)) && !seed.added.some((added) => isCovered(edge, added))
      ),
      []
    ))

  it("lists no deviation that is none", () => {
    const isSeeded = (edge: Edge) => seed.rows.some((row) => isRow(edge, row))
    const isOurs = (row: Row) => ours.some((edge) => isRow(edge, row))
    const added = spread(seed.added).filter((one) => !ours.some((edge) => isCovered(edge, one) && !isSeeded(edge)))
    const gone = spread(dropped).filter((one) => !seed.rows.some((row) => isCovered(row, one) && !isOurs(row)))
    assert.deepStrictEqual([...added, ...gone], [])
  })
})
