import { assert, describe, it } from "@effect/vitest"
import { mermaid } from "../../../src/core/event-actor/StateDiagram.ts"
import { Plate } from "../../../src/plates/PlateMachine.ts"
import { Worker } from "../../../src/agents/machines/WorkerMachine.ts"

describe("docs/machines.md", () => {
  it("draws every state of every machine", () => {
    for (const state of Object.keys(Worker.states)) assert.include(mermaid(Worker), `${state} `)
    for (const state of Object.keys(Plate.states)) assert.include(mermaid(Plate), `${state} `)
  })

  it("draws one arrow for a pair of states, and a shared branch list as a choice", () => {
    const arrows = mermaid(Plate)
      .split("\n")
      .filter((line) => line.includes("-->"))
      .map((line) => line.split(" : ")[0])
    assert.strictEqual(new Set(arrows).size, arrows.length)
    assert.isBelow(arrows.length, 30)
  })
})
