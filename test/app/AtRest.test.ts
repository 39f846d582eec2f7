/** The memory of a start is given back a piece at a time, while nothing is done; of a daemon that never rests, once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { giveBack } from "../../src/app/AtRest.ts"

/** A daemon at that load; the seconds at which its heap was collected. */
const daemon = (load: () => number) => {
  const at: Array<number> = []
  let second = 0
  const heap = { collect: () => void at.push(second), load }
  const passes = Effect.fnUntraced(function* (seconds: number) {
    for (let n = 0; n < seconds; n++) {
      second++
      yield* TestClock.adjust("1 second")
    }
  })
  return { at, heap, passes, seconds: () => second }
}

const idle = Effect.succeed(false)

describe("the memory of a start", () => {
  it.effect("is given back in four pieces, seconds apart", () =>
    Effect.gen(function* () {
      const { at, heap, passes } = daemon(() => 0)
      const giving = yield* Effect.forkChild(giveBack(idle, heap), { startImmediately: true })
      yield* passes(60)
      assert.deepStrictEqual(at, [4, 8, 12, 16])
      assert.isNotNull(giving.pollUnsafe() ?? null)
    })
  )

  it.effect("is not while the daemon is asked, and is once nobody asks", () =>
    Effect.gen(function* () {
      const { at, heap, passes, seconds } = daemon(() =>
        seconds() < 20 || (seconds() > 21 && seconds() < 40) ? 0.5 : 0
      )
      yield* Effect.forkChild(giveBack(idle, heap), { startImmediately: true })
      yield* passes(60)
      assert.deepStrictEqual(at, [20, 40, 44, 48])
    })
  )

  it.effect("of a daemon that never rests is given back once, a minute later", () =>
    Effect.gen(function* () {
      const { at, heap, passes } = daemon(() => 1)
      yield* Effect.forkChild(giveBack(idle, heap), { startImmediately: true })
      yield* passes(300)
      assert.deepStrictEqual(at, [63])
    })
  )

  it.effect("is given back once where a run is at work, whose code stays", () =>
    Effect.gen(function* () {
      const { at, heap, passes } = daemon(() => 0)
      yield* Effect.forkChild(giveBack(Effect.succeed(true), heap), { startImmediately: true })
      yield* passes(60)
      assert.deepStrictEqual(at, [4])
    })
  )

  it.effect("is V8's alone where a program may not collect", () =>
    giveBack(idle, { collect: undefined, load: () => assert.fail("nobody asks") })
  )
})
