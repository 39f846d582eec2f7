/**
 * Explore: a counter that goes round, and what is told of it: how much there is, the
 * shortest way to what is wrong, and that nothing is cut short.
 */
import { assert, describe, it } from "@effect/vitest"
import { explore, type Model, say } from "./Explore.ts"

const counter = (more: Partial<Model<number>> = {}): Model<number> => ({
  initial: 0,
  key: String,
  moves: (n) => [
    { name: "one more", next: () => (n + 1) % 12 },
    { name: "twice", next: () => (n * 2) % 12 }
  ],
  invariant: () => undefined,
  isGoal: (n) => n === 0,
  most: 100,
  ...more
})

describe("an exploration", () => {
  it("reaches each state once", () => {
    const { problem: _, ...sizes } = explore(counter())
    assert.deepStrictEqual(sizes, { states: 12, transitions: 24, goals: 1, depth: 6 })
  })

  it("tells the shortest way to what is wrong", () => {
    const found = explore(counter({ invariant: (n) => (n === 9 ? "nine" : undefined) }))
    assert.strictEqual(say(found), "nine, after:\n  one more\n  one more\n  twice\n  twice\n  one more")
  })

  it("tells from where no goal is reached", () => {
    const stays = counter({ moves: (n) => (n === 5 ? [] : counter().moves(n)) })
    assert.strictEqual(explore(stays).problem?.what, "no goal is reached from here")
    assert.strictEqual(
      explore(counter({ helps: (move) => move === "twice" })).problem?.what,
      "no goal is reached from here"
    )
  })

  it("tells of a move that throws", () => {
    const next = () => {
      throw new Error("broken")
    }
    assert.strictEqual(explore(counter({ moves: () => [{ name: "on", next }] })).problem?.what, "on throws: broken")
  })

  it("fails where there are more states than were said", () => {
    assert.throws(() => explore(counter({ most: 11 })), /more than 11 states/)
  })
})
