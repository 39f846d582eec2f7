/** Where a run's shell may stand, as the run's state keeps it: for calls that wait, and over a daemon's end. */
import { assert, describe, it } from "@effect/vitest"
import { LiveRun } from "../../../src/agents/run/LiveRun.ts"
import type { Run } from "../../../src/runs/Backend.ts"

const RUN = { runId: "11112222-3333" } as Run
const bash = (live: LiveRun, command: string) =>
  live.called(RUN, { arguments: { command }, callId: command, readOnly: false, tool: "Bash", voice: false }, "/repo")

describe("LiveRun", () => {
  it("a call begins where earlier calls may have left the shell; its own cd does not count", () => {
    const live = new LiveRun()
    const first = bash(live, "cd src && ls")
    assert.deepStrictEqual(live.standsAt(first), [""])
    assert.deepStrictEqual(live.standsAt(bash(live, "ls")), ["", "src"])
  })

  it("a call that waits meets the folder of a later call, too", () => {
    const live = new LiveRun()
    const first = bash(live, "cat key")
    bash(live, "cd private")
    assert.deepStrictEqual(live.standsAt(first), ["", "private"])
  })

  it("a later daemon knows the same folders, and none for a state that does not tell them", () => {
    const [live, adopted, old] = [new LiveRun(), new LiveRun(), new LiveRun()]
    bash(live, "cd src")
    adopted.recalls(JSON.parse(JSON.stringify(live.known)))
    assert.deepStrictEqual(adopted.standsAt(bash(adopted, "ls")), ["", "src"])
    const { folders: _folders, ...rest } = live.known
    old.recalls(rest)
    assert.strictEqual(old.standsAt(bash(old, "ls")), undefined)
    bash(live, "pushd src")
    adopted.recalls(JSON.parse(JSON.stringify(live.known)))
    assert.strictEqual(adopted.standsAt(bash(adopted, "ls")), undefined)
  })

  it("a new run begins in its folder", () => {
    const live = new LiveRun()
    bash(live, "cd src")
    live.gone()
    assert.deepStrictEqual(live.standsAt(bash(live, "ls")), [""])
  })
})
