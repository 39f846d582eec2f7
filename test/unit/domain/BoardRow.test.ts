/** Tests of the order of names on the board. */
import { assert, describe, it } from "@effect/vitest"
import { byName } from "../../../src/domain/BoardRow.ts"
import { dice } from "../../support/Dice.ts"

const sign = (a: string, b: string) => Math.sign(byName(a, b)) + 0

describe("names on the board", () => {
  it("stand by their numbers", () => {
    const names = [
      "p/agent170",
      "p/agent17",
      "p/agent169",
      "p/agent2",
      "p/agent",
      "p/agent02",
      "p/a10b9",
      "p/a10b10",
      "q/agent1"
    ]
    assert.deepStrictEqual(names.toSorted(byName), [
      "p/a10b9",
      "p/a10b10",
      "p/agent",
      "p/agent02",
      "p/agent2",
      "p/agent17",
      "p/agent169",
      "p/agent170",
      "q/agent1"
    ])
    // longer than a number of this language can be
    assert.isBelow(byName("x99999999999999999998", "x99999999999999999999"), 0)
  })

  it("have one order, whatever they are", () => {
    const below = dice(7)
    const name = () => Array.from({ length: below(6) }, () => "ab/-00129"[below(9)]).join("")
    for (let n = 0; n < 20_000; n++) {
      const [a, b, c] = [name(), name(), name()]
      assert.strictEqual(sign(a, b), -sign(b, a) + 0, `${a} ${b}`)
      assert.strictEqual(sign(a, b) === 0, a === b, `${a} ${b}`)
      if (sign(a, b) <= 0 && sign(b, c) <= 0) assert.isAtMost(sign(a, c), 0, `${a} ${b} ${c}`)
    }
  })
})
