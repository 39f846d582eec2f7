import { Arbitrary } from "effect"
import { assert, describe, it } from "@effect/vitest"
import { Conversation, type Data as ConversationData } from "../../../src/agents/machines/ConversationMachine.ts"
import { Plate } from "../../../src/plates/PlateMachine.ts"
import { type Data as WorkerData, Worker } from "../../../src/agents/machines/WorkerMachine.ts"
import { type AnySubject, deafTimers, escapes, holes, loose, stuck, throws, unreachable, walks } from "./laws.ts"
import * as subjects from "./subjects.ts"

const all: { readonly [name: string]: AnySubject } = { ...subjects }

describe.each(Object.keys(all))("the laws hold for the %s machine", (name) => {
  const subject = all[name]!
  it("every state decides every event of the Schema", () => assert.deepStrictEqual(holes(subject), []))
  it("every pair steps without throwing, twice alike, and changes nothing that it was given", () =>
    assert.deepStrictEqual(throws(subject), []))
  it("every state is reachable", () => assert.deepStrictEqual(unreachable(subject), []))
  it("every state can reach its end, or its rest", () => assert.deepStrictEqual(stuck(subject), []))
  it("a final state absorbs", () => assert.deepStrictEqual(escapes(subject), []))
  it("every named guard, update, action, timer and kind is used", () => assert.deepStrictEqual(loose(subject), []))
  it("every timer's event moves the state that it limits", () => assert.deepStrictEqual(deafTimers(subject), []))
  it("walks keep the invariant, and their runes fold to the live state", () => {
    const result = walks(subject)
    assert.strictEqual(result._tag, "Passed", Arbitrary.formatCheckFailure(result))
  })
})

describe("the walks catch a planted bug", () => {
  const caught = (subject: AnySubject) => {
    const result = walks(subject)
    assert.strictEqual(result._tag, "Falsified", "the walks are too short or too tame to find it")
  }
  const worker: AnySubject = subjects.worker
  const conversation: AnySubject = subjects.conversation
  const plate: AnySubject = subjects.plate

  it("a threshold that is off by one", () =>
    caught({
      ...worker,
      machine: {
        ...Worker,
        guards: { ...Worker.guards, exhausted: (data: WorkerData) => data.totalErrors > data.limits.maxTotalErrors }
      }
    }))
  it("a threshold that is off by one, deep in the walk", () =>
    caught({
      ...conversation,
      machine: {
        ...Conversation,
        guards: {
          ...Conversation.guards,
          erring: (data: ConversationData) =>
            data.fatalStops >= 2 || data.turnErrors > (data.limits.maxTurnErrors ?? Infinity)
        }
      }
    }))
  it("a fence that is missing", () => caught({ ...worker, machine: { ...Worker, fenced: () => false } }))
  it("an update that changes its data in place", () =>
    caught({
      ...worker,
      machine: {
        ...Worker,
        updates: { ...Worker.updates, clear: (data: WorkerData) => Object.assign(data, { runId: null }) }
      }
    }))
  it("a branch that is missing", () => {
    const { Running, ...others } = Plate.table
    const cell = { set: "apply", then: { to: "Running" } } as const
    caught({
      ...plate,
      machine: { ...Plate, table: { ...others, Running: { ...Running, HookPermissionRequest: cell } } }
    })
  })
})
