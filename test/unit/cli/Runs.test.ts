/** Runs as `agentd log --runs` reads them out of the log. */
import { assert, describe, it } from "@effect/vitest"
import { runNamed, runs, runsIn, runsOf } from "../../../src/cli/log/Runs.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"

let eventId = 0
const rune = (actor: string, kind: string, event: object): Rune =>
  ({ eventId: ++eventId, stream: "shop", at: eventId * 1000, kind, actor, payload: { event } }) as unknown as Rune
const moved = (event: object, agent = "builder") => rune(`worker/${agent}`, "worker.moved", event)
const began = (runId: string, agent = "builder") => moved({ _tag: "PromptReady", runId, messageIds: [] }, agent)
const turn = (agent = "builder") => rune(`turn/${agent}`, "turn.started", { _tag: "start_turn" })
const exited = (runId: string, outcome: object, agent = "builder") =>
  moved({ _tag: "SessionExited", runId, outcome }, agent)

const told = (runes: ReadonlyArray<Rune>) =>
  runsIn(runes).map(({ agent, detail, ended, how, run, turns }) => [agent, run, turns, how, detail, ended === null])

describe("runs", () => {
  it("finds a long run whose spending fills all that is read of that, and says that it is more", () => {
    const moves = [began("r1")]
    const turns = [turn()]
    const usage = Array.from({ length: 3 }, () => {
      const of = rune("meter/builder", "agent.usage", {})
      return { ...of, payload: { tokens: 10, usd: 0.5 } }
    })
    const [row] = runsOf([moves, turns, usage], 3)
    assert.deepInclude(row, { run: "r1", turns: 1, usd: 1.5, tokens: 30, ended: null, isMore: true })
    assert.isUndefined(runsOf([moves, turns, usage], 4)[0]!.isMore, "all of it was read")
  })

  it("says of each how it ended, with its turns", () => {
    const runes = [
      began("r1"),
      turn(),
      turn(),
      exited("r1", { _tag: "Error", detail: "exit code 3" }),
      began("r2"),
      turn(),
      rune("turn/builder", "turn.completed", { _tag: "response_done", exit: { runId: "r2" } }),
      began("r3"),
      moved({ _tag: "GraceExceeded", runId: "r3" }),
      exited("r3", { _tag: "Success" }),
      began("r4"),
      moved({ _tag: "OperatorStop", by: "ada" }),
      began("r5")
    ]
    assert.deepStrictEqual(told(runes), [
      ["builder", "r1", 2, "error", "exit code 3", false],
      ["builder", "r2", 1, "success", "", false],
      ["builder", "r3", 0, "cut short", "it did not end within its grace period", false],
      ["builder", "r4", 0, "stopped", "stopped by ada", false],
      ["builder", "r5", 0, null, "", true]
    ])
  })

  it("keeps agents apart, and says nothing of a run whose begin it does not know", () => {
    const runes = [
      exited("r0", { _tag: "Success" }),
      began("a1", "a"),
      began("b1", "b"),
      turn("a"),
      turn("b"),
      turn("a")
    ]
    assert.deepStrictEqual(told(runes), [
      ["a", "a1", 2, null, "", true],
      ["b", "b1", 1, null, "", true]
    ])
  })

  it("its outcome is a word for people, its cost what was spent while it was the newest", () => {
    const usage = (usd: number) =>
      ({ ...rune("meter/builder", "agent.usage", {}), payload: { agent_id: "builder", tokens: 10, usd } }) as Rune
    const rows = runsIn([
      began("r1"),
      rune("turn/builder", "turn.started", { _tag: "start_turn", run: { seq: 7 } }),
      usage(0.5),
      usage(0.25),
      exited("r1", { _tag: "Uncounted", reason: "quota" }),
      usage(0.25),
      began("r2"),
      moved({ _tag: "OperatorStop", by: "ada" }),
      began("r3"),
      exited("r3", { _tag: "Success" }),
      began("r4"),
      exited("r4", { _tag: "Timeout" }),
      began("r5")
    ])
    assert.deepStrictEqual(
      rows.map(({ detail, seq, tokens, usd, word }) => [word, detail, seq, tokens, usd]),
      [
        ["failed", "its quota is used up (not counted as an error)", 7, 30, 1],
        ["stopped", "stopped by ada", null, 0, 0],
        ["done", "", null, 0, 0],
        ["failed", "it exceeded its time limit", null, 0, 0],
        ["working", "", null, 0, 0]
      ]
    )
  })

  it("one is named by its id, the end of it, its number, or from the newest back, of each agent", () => {
    const rows = runsIn([
      began("01aaaaaaaaaa", "a"),
      rune("turn/a", "turn.started", { _tag: "start_turn", run: { seq: 1 } }),
      began("01bbbbbbbbbb", "a"),
      began("01cccccccccc", "b")
    ])
    const named = (name: string) => runNamed(rows, name).map(({ run }) => run.slice(2, 4))
    assert.deepStrictEqual(named("last"), ["bb", "cc"])
    assert.deepStrictEqual(named("-1"), ["aa"])
    assert.deepStrictEqual(named("1"), ["aa"])
    assert.deepStrictEqual(named("01bbbbbbbbbb"), ["bb"])
    assert.deepStrictEqual(named("bbbbbb"), ["bb"])
    for (const none of ["", "b", "9", "-9", "zzzzzz"]) assert.deepStrictEqual(named(none), [])
  })

  it("is a table without colour where none is asked for, and CSV without formulas", () => {
    const detail = '=1+1, "no"'
    const rows = runsIn([began("r1"), turn(), exited("r1", { _tag: "Error", detail })]).map((row) => ({
      ...row,
      name: row.agent
    }))
    const world = { now: eventId * 1000 + 5000, colour: false, columns: null, world: null }
    const view = runs.view({ csv: false, rows }, world)
    assert.match(view.join("\n"), /^RUN +AGENT +BEGAN[^\n]*\n- r1 [^\n]*failed +=1\+1, "no"$/)
    const [head, row] = runs.view({ csv: true, rows }, world)
    assert.strictEqual(head, "run,number,agent,began,ended,seconds,turns,tokens,usd,outcome,reason")
    assert.match(row!, /^r1,,builder,1970-[^,]*Z,1970-[^,]*Z,2,1,0,0,failed,"'=1\+1, ""no"""$/)
  })
})
