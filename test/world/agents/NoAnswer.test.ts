/** An empty answer is none, whichever backend tells it; a turn of calls needs no words. */
import { assert, describe, it } from "@effect/vitest"
import { LiveRun } from "../../../src/agents/run/LiveRun.ts"
import { whyNot } from "../../../src/agents/run/NoAnswer.ts"
import type { Run } from "../../../src/runs/Backend.ts"

const run = { runId: "run-1" } as Run
const call = (id: string) => ({ callId: id, tool: "Bash", arguments: {}, readOnly: false })

/** A live run in a turn that was given. */
const given = () => {
  const live = new LiveRun()
  live.up(run, true, "turn-1")
  return live
}

describe("whether a turn that ended well has answered", () => {
  it("without a word or a call it has not; blanks are no word", () => {
    assert.strictEqual(whyNot(given(), "")?.errorType, "no_answer")
    assert.strictEqual(whyNot(given(), " \n")?.errorType, "no_answer")
    assert.isUndefined(whyNot(given(), "Yes."))
  })

  it("a call is enough; those of an earlier turn are not", () => {
    const live = given()
    live.called(run, call("a"), "/")
    assert.isUndefined(whyNot(live, ""))
    live.give("turn-2")
    assert.strictEqual(whyNot(live, "")?.errorType, "no_answer")
  })

  it("a turn that nobody asked for, and a command of the agent's own, may be without words", () => {
    const live = given()
    live.open("own-1", "turn-2")
    assert.isUndefined(whyNot(live, ""))
    live.give("turn-3")
    live.isCommand = true
    assert.isUndefined(whyNot(live, ""))
  })

  it("one that ended with agentd's own refusal has not; one that went on after it has", () => {
    const live = given()
    live.say("I make it.")
    live.called(run, call("a"), "/")
    live.pause()
    live.refused = "nobody answered in time"
    assert.deepInclude(whyNot(live, "I make it."), { errorType: "refused" })
    live.say("Then not.")
    assert.isUndefined(whyNot(live, "Then not."))
    live.called(run, call("b"), "/")
    live.pause()
    assert.isUndefined(whyNot(live, ""), "another call was made")
  })
})
