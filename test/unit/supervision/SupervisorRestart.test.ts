import { describe, expect, it } from "@effect/vitest"
import { Cause, Exit, Schema } from "effect"
import type { RestartType } from "../../../src/core/supervision/Child.ts"
import {
  addRestart,
  emptyWindow,
  ending,
  type Ending,
  exceeded,
  restarts,
  Shutdown,
  type Window
} from "../../../src/core/supervision/Restart.ts"

describe("Restart: restart type × ending", () => {
  const cells: ReadonlyArray<readonly [RestartType, Ending, boolean]> = [
    ["permanent", "normal", true],
    ["permanent", "shutdown", true],
    ["permanent", "abnormal", true],
    ["transient", "normal", false],
    ["transient", "shutdown", false],
    ["transient", "abnormal", true],
    ["temporary", "normal", false],
    ["temporary", "shutdown", false],
    ["temporary", "abnormal", false]
  ]
  for (const [type, end, again] of cells) {
    it(`${type} × ${end} → ${again ? "restarted" : "not restarted"}`, () => expect(restarts[type][end]).toBe(again))
  }
})

describe("Restart: how a child ended", () => {
  const interrupt = Cause.interrupt()
  const shutdown = Cause.fail(new Shutdown({ reason: "done for today" }))
  const cases: ReadonlyArray<readonly [string, Exit.Exit<unknown, unknown>, Ending]> = [
    ["a success is normal", Exit.succeed(1), "normal"],
    ["an interruption is a shutdown", Exit.failCause(interrupt), "shutdown"],
    ["a Shutdown is a shutdown", Exit.failCause(shutdown), "shutdown"],
    ["both together are a shutdown", Exit.failCause(Cause.combine(interrupt, shutdown)), "shutdown"],
    ["a failure is abnormal", Exit.fail("no"), "abnormal"],
    ["a defect is abnormal", Exit.die("no"), "abnormal"],
    [
      "a finalizer that dies makes an interruption abnormal",
      Exit.failCause(Cause.combine(interrupt, Cause.die(1))),
      "abnormal"
    ]
  ]
  for (const [fact, exit, end] of cases) it(fact, () => expect(ending(exit)).toBe(end))
})

describe("Restart: the intensity window", () => {
  const after = (times: ReadonlyArray<number>, intensity: number, period: number): Window =>
    times.reduce(
      (window, at) => addRestart(window, { at: BigInt(at), child: "a" }, BigInt(period), intensity),
      emptyWindow
    )

  it("takes `intensity` restarts within the period and not one more", () => {
    expect(exceeded(after([0, 1], 2, 10), 2)).toBe(false)
    expect(exceeded(after([0, 1, 2], 2, 10), 2)).toBe(true)
  })
  it("counts a restart exactly one period ago", () => expect(exceeded(after([0, 10], 1, 10), 1)).toBe(true))
  it("forgets it a nanosecond later", () => expect(exceeded(after([0, 11], 1, 10), 1)).toBe(false))
  it("takes none at intensity 0", () => expect(exceeded(after([5], 0, 10), 0)).toBe(true))

  const Gaps = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 12 })))
  const Small = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))
  it.prop(
    "trips exactly when more than `intensity` restarts lie within the last period",
    [Gaps, Small],
    ([gaps, intensity]) => {
      const period = 10
      let now = 0
      let window = emptyWindow
      const all: Array<number> = []
      for (const gap of gaps) {
        now += gap
        all.push(now)
        window = addRestart(window, { at: BigInt(now), child: "a" }, BigInt(period), intensity)
        const recent = all.filter((at) => now - at <= period).length
        expect(exceeded(window, intensity)).toBe(recent > intensity)
        expect(window.length).toBeLessThanOrEqual(intensity + 1)
      }
    }
  )
})
