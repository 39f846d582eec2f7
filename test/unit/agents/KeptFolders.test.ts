/** Where a run's shell may stand, as the run's state keeps it: for calls that wait, and over a daemon's end. */
import { assert, describe, it } from "@effect/vitest"
import { factsOf } from "../../../src/agents/actors/Approval.ts"
import { LiveRun } from "../../../src/agents/run/LiveRun.ts"
import { verdictOf } from "../../../src/agents/run/RunEvents.ts"
import type { Run } from "../../../src/runs/Backend.ts"

const RUN = { runId: "11112222-3333" } as Run
const bash = (live: LiveRun, command: string) =>
  live.called(RUN, { arguments: { command }, callId: command, readOnly: false, tool: "Bash", voice: false }, "/repo")

describe("facts of a run", () => {
  const backend = (type: string, more: object = {}) => ({
    type,
    argv: ["x"],
    sandbox: "required",
    network: false,
    ...more
  })
  const config = (one: object) => ({ approvals: { mode: "auto", inside: "run" }, backend: one, fallback: [] }) as never
  const verdict = (live: LiveRun, now: object, command: string) => {
    const setting = { config: () => config(now), rules: () => [] } as never
    return verdictOf(setting, live, { callId: bash(live, command), tool: "Bash", asked: {} as never }).verdict
  }
  const [held, open] = [backend("claude"), backend("claude", { network: true })]
  const begun = (one: object): LiveRun => {
    const live = new LiveRun()
    live.begins(false, factsOf(config(one)))
    return live
  }

  it("what stays in the sandbox runs if the run was started in one, whatever the config says now", () => {
    assert.strictEqual(verdict(begun(held), open, "npm test"), "run")
    assert.strictEqual(verdict(begun(open), held, "npm test"), "ask")
    assert.strictEqual(verdict(begun(backend("claude", { sandbox: "on" })), held, "npm test"), "ask")
  })

  it("the folder of the shell counts if the program that was started keeps it", () => {
    const [keeps, fresh] = [begun(backend("claude")), begun(backend("acp", { argv: ["gemini"] }))]
    for (const live of [keeps, fresh]) bash(live, "cd private")
    const denied = [{ effect: "deny", subject: { read: "private/**" }, place: { scope: "agent", at: null } }]
    const setting = { config: () => config(held), rules: () => denied } as never
    const cat = (live: LiveRun) =>
      verdictOf(setting, live, { callId: bash(live, "cat key"), tool: "Bash", asked: {} as never }).verdict
    assert.deepStrictEqual([cat(keeps), cat(fresh)], ["deny", "run"])
  })

  it("a later daemon knows them by the checkpoint; without one, nothing holds the run, and its folder is kept", () => {
    const live = begun(held)
    const [adopted, old] = [new LiveRun(), new LiveRun()]
    adopted.begins(true)
    assert.strictEqual(verdict(adopted, held, "npm test"), "ask")
    adopted.recalls(JSON.parse(JSON.stringify(live.known)))
    assert.strictEqual(verdict(adopted, held, "npm test"), "run")
    const { facts: _facts, ...rest } = live.known
    old.recalls(rest)
    assert.strictEqual(verdict(old, held, "npm test"), "ask")
    live.gone()
    assert.strictEqual(verdict(live, held, "npm test"), "ask")
  })
})

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
