/** The agents that goals and channels stand behind: which of them do not go on without a person, and for what. */
import { assert, describe, it } from "@effect/vitest"
import { needsOf } from "../../../src/projects/service/LiveAgentPort.ts"
import type { AgentInfo, CallInfo } from "../../../src/domain/Messages.ts"

const bob = (more: Partial<AgentInfo>) =>
  ({
    agent: "bob",
    project: "web",
    word: "working",
    state: "Running",
    since: 9,
    detail: "thinks",
    ...more
  }) as AgentInfo
const call = (state: CallInfo["state"], since = 5) => ({ state, since }) as CallInfo

describe("an agent needs a person", () => {
  it("for a call, since it asks, also while another one runs", () => {
    const asks = bob({ word: "needs you", busy: true, detail: "asks for shell: agentd approve c1" })
    const found = needsOf(asks, [call("executing", 1), call("awaiting_approval", 5), call("awaiting_approval", 7)])
    assert.deepStrictEqual(found, { text: "bob asks for shell: agentd approve c1", since: 5 })
  })

  it("for what came to no answer once it rests, and not while it works on", () => {
    const open = bob({
      word: "needs you",
      state: "BuildingPrompt",
      detail: "it came to no answer: agentd retry web/bob"
    })
    assert.deepStrictEqual(needsOf(open, []), { text: `bob ${open.detail}`, since: 9 })
    assert.isUndefined(needsOf({ ...open, state: "Running", busy: true }, [call("executing")]))
  })

  it("to be started, whoever stopped it; one that waits for a place starts by itself", () => {
    const text = "bob is stopped (stopped by ada): agentd start web/bob"
    for (const word of ["done", "failed"] as const)
      assert.deepStrictEqual(needsOf(bob({ word, state: "Stopped", detail: "stopped by ada" }), []), { text, since: 9 })
    assert.isUndefined(needsOf(bob({ word: "waiting", state: "Stopped" }), []))
  })

  it("not while it works", () => {
    assert.isUndefined(needsOf(bob({ busy: true }), [call("executing")]))
    assert.isUndefined(needsOf(undefined, []))
  })
})
