/** When the log's thread turns to what nobody asks for, by given times. */
import { assert, describe, it } from "@effect/vitest"
import { AT_LAST, type Left, IdleScheduler, QUIET, SETTLED } from "../../../src/core/event-log/IdleScheduler.ts"

const NEVER = Number.POSITIVE_INFINITY
const nothing: Left = { isUntidy: false, choresDue: () => NEVER }
const untidy: Left = { ...nothing, isUntidy: true }
/** Due at once, and beside appends after 30 ms. */
const chores: Left = { isUntidy: false, choresDue: (isBusy) => (isBusy ? 30 : 0) }

const settled = () => {
  const pace = new IdleScheduler(0)
  assert.isTrue(pace.isForChores(SETTLED, chores))
  return pace
}

describe("the thread's pace", () => {
  it("where nothing is left to do the thread sleeps until it is woken", () => {
    const pace = settled()
    assert.strictEqual(pace.patience(SETTLED, nothing), NEVER)
    assert.isFalse(pace.isForChores(SETTLED, nothing))
  })

  it("housekeeping has its turn when nobody has asked for anything for a moment", () => {
    const pace = new IdleScheduler(0)
    pace.ask(100)
    assert.strictEqual(pace.patience(150, untidy), QUIET - 50)
    assert.isFalse(pace.isQuiet(100 + QUIET - 1))
    assert.isTrue(pace.isQuiet(100 + QUIET))
  })

  it("chores begin when the program has started", () => {
    const pace = new IdleScheduler(0)
    assert.strictEqual(pace.patience(0, chores), SETTLED)
    pace.ask(1_000)
    assert.strictEqual(pace.patience(SETTLED, chores), 1_000)
    assert.isFalse(pace.isForChores(SETTLED, chores))
    assert.isTrue(pace.isForChores(1_000 + SETTLED, chores))
    // for good
    pace.ask(9_000)
    assert.strictEqual(pace.patience(9_000, chores), 30)
  })

  it("chores begin at last although somebody asks for something all the time", () => {
    const pace = new IdleScheduler(0)
    let first = 0
    const due: Left = { ...nothing, choresDue: () => 0 }
    for (let now = 0; first === 0; now += 50) {
      pace.ask(now)
      if (pace.isForChores(now, due)) first = now
    }
    assert.strictEqual(first, AT_LAST)
  })

  it("chores go on beside appends that come again and again, in the share that is theirs there", () => {
    const pace = settled()
    let end = 0
    let steps = 0
    const share: Left = {
      ...nothing,
      choresDue: (isBusy) => Math.max(0, end + (isBusy ? 90 : 10) - now)
    }
    let now = SETTLED
    for (; now < SETTLED + 10_000; now += 1) {
      if (now % 50 === 0) pace.ask(now)
      if (!pace.isForChores(now, share)) continue
      steps += 1
      end = now
    }
    assert.isAtLeast(steps, 100)
    assert.isAtMost(steps, 112)
  })
})
