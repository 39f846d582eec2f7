import { assert, describe, it } from "@effect/vitest"
import { next, type Phase, type Signal, TABLE, type Work } from "../../../src/runs/line/RunPhases.ts"
import * as RunEnd from "../../../src/runs/RunEnd.ts"

const PHASES: ReadonlyArray<Phase> = ["Running", "Interrupting", "Closing", "Signalled"]
const SIGNALS: ReadonlyArray<Signal> = ["stop", "change", "lapse"]
const WORKS: ReadonlyArray<Work> = ["turn", "none", "other"]

describe("RunPhases", () => {
  it("every pair of phase and signal is decided, and no phase goes back", () => {
    assert.deepStrictEqual(Object.keys(TABLE), [...PHASES])
    for (const phase of PHASES)
      for (const signal of SIGNALS)
        for (const work of WORKS)
          assert.isAtLeast(PHASES.indexOf(next(phase, signal, work)), PHASES.indexOf(phase), `${phase} × ${signal}`)
  })

  it("a run that is not asked to end goes on, whatever its program does", () => {
    for (const work of WORKS) {
      assert.strictEqual(next("Running", "change", work), "Running")
      assert.strictEqual(next("Running", "lapse", work), "Running")
    }
  })

  it("stop × turn → interrupted, stop × none → its input is closed, stop × other → SIGTERM", () => {
    assert.strictEqual(next("Running", "stop", "turn"), "Interrupting")
    assert.strictEqual(next("Running", "stop", "none"), "Closing")
    assert.strictEqual(next("Running", "stop", "other"), "Signalled")
  })

  it("each phase of an end has a successor when its time is over: a program that does nothing gets SIGTERM", () => {
    for (const work of WORKS) {
      assert.strictEqual(next("Interrupting", "lapse", work), "Signalled")
      assert.strictEqual(next("Closing", "lapse", work), "Signalled")
    }
    assert.strictEqual(next("Interrupting", "change", "none"), "Closing")
    assert.strictEqual(next("Interrupting", "change", "other"), "Signalled")
  })
})

describe("RunEnd", () => {
  const END: RunEnd.End = {
    status: { code: 0, signal: null },
    survived: undefined,
    verdict: undefined,
    isAsked: false,
    isActive: false,
    isUp: true,
    words: "it ended"
  }
  const birth = () => "birth" as const
  const of = (end: Partial<RunEnd.End>) => RunEnd.outcomeOf({ ...END, ...end }, birth)
  const failed = { _tag: "Error", detail: "it ended" } as const
  const success = { _tag: "Success" } as const

  it("unasked: exit 0 between turns is a success; in a turn, by a code or by a signal it is an error", () => {
    assert.deepEqual(of({}), success)
    assert.deepEqual(of({ isActive: true }), failed)
    assert.deepEqual(of({ status: { code: 1, signal: null } }), failed)
    assert.deepEqual(of({ status: { code: null, signal: "SIGKILL" } }), failed)
  })

  it("asked: every status is a success unless a turn was active", () => {
    assert.deepEqual(of({ isAsked: true, status: { code: null, signal: "SIGTERM" } }), success)
    assert.deepEqual(of({ isAsked: true, isActive: true, status: { code: null, signal: "SIGTERM" } }), failed)
    assert.deepEqual(of({ isAsked: true, isUp: false, isActive: true }), success)
  })

  it("a program that was not ready has the outcome of its birth", () => {
    assert.strictEqual(of({ isUp: false }), "birth")
    assert.strictEqual(of({ isUp: false, isActive: true }), "birth")
  })

  it("words say how the program ended, and no more than is known", () => {
    assert.strictEqual(RunEnd.wordsOf("it", { code: 3, signal: null }, "why"), "it ended with exit code 3: why")
    assert.strictEqual(RunEnd.wordsOf("it", { code: null, signal: "SIGKILL" }, ""), "it was killed by SIGKILL")
    assert.strictEqual(RunEnd.wordsOf("it", { code: null, signal: null }, ""), "it ended, and it is not known how")
  })

  it("a fault and a process that cannot be ended come before the status", () => {
    const verdict = { _tag: "Uncounted", reason: "quota" } as const
    const survived = { _tag: "Error", detail: "a process survived" } as const
    assert.deepEqual(of({ verdict, isAsked: true }), verdict)
    assert.deepEqual(of({ verdict, survived }), survived)
  })
})
