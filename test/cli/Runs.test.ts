/** Runs as `agentd runs` reads them out of the log. */
import { assert, describe, it } from "@effect/vitest"
import { runs, runsIn } from "../../src/cli/Runs.ts"
import type { Rune } from "../../src/event-log/Rune.ts"

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
      ["builder", "r3", 0, "cut short", "it did not end in its time", false],
      ["builder", "r4", 0, "cut short", "stopped by ada", false],
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

  it("is a table that leads on: the newest last, no colour where none is asked for", () => {
    const rows = runsIn([began("r1"), turn(), exited("r1", { _tag: "Timeout" }), began("r2")])
    const view = runs.view([...rows], { now: eventId * 1000 + 5000, colour: false, columns: null, world: null })
    assert.match(view.join("\n"), /^RUN +AGENT +BEGAN[^\n]*\nr1 [^\n]*timeout[^\n]*\nr2 [^\n]*goes on/)
  })
})
