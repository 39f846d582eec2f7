/** The picture of a plan: each task has a place of its own, behind what it waits for; no wire runs under a card. */
import { assert, describe, it } from "@effect/vitest"
import { bend, layout, type Node } from "../../../src/web/Graph.ts"

const SIZE = { w: 100, h: 40, dx: 30, dy: 10 }
const plan = (of: { readonly [id: string]: string }): ReadonlyArray<Node> =>
  Object.entries(of).map(([id, on]) => ({ id, dependsOn: on.split(" ").filter(Boolean) }))

/** A plan of so many tasks, each behind some of those before it; always the same. */
const random = (count: number): ReadonlyArray<Node> => {
  let seed = 7
  const next = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  return Array.from({ length: count }, (_, n) => ({
    id: `t${n}`,
    dependsOn: n === 0 ? [] : Array.from({ length: next(4) }, () => `t${next(n)}`)
  }))
}

describe("the graph of a goal", () => {
  it("goes from left to right, and leaves out what another dependency implies", () => {
    const { at, wires } = layout(plan({ a: "", b: "a", c: "b a gone c", d: "" }), SIZE)
    const x = (id: string) => at.get(id)![0]
    assert.deepStrictEqual([x("a"), x("b"), x("c"), x("d")], [0, 130, 260, 0])
    assert.deepStrictEqual(
      wires.map(({ from, to }) => `${from} ${to}`),
      ["a b", "b c"]
    )
  })

  it("no card lies on another, and no wire runs under one", () => {
    for (const count of [1, 13, 40, 120]) {
      const { at, height, width, wires } = layout(random(count), SIZE)
      assert.strictEqual(at.size, count)
      const places = [...at.values()]
      for (const [n, [x, y]] of places.entries()) {
        assert.isTrue(x >= 0 && y >= -0.01 && x + SIZE.w <= width + 0.01 && y + SIZE.h <= height + 0.01)
        const on = places.slice(n + 1).filter(([x2, y2]) => x === x2 && Math.abs(y - y2) < SIZE.h)
        assert.deepStrictEqual(on, [], `on ${x},${y}`)
      }
      const under = wires
        .flatMap(({ points }) => points.slice(1, -1))
        .filter(([x, y]) => places.some(([cx, cy]) => x >= cx && x <= cx + SIZE.w && y > cy && y < cy + SIZE.h))
      assert.deepStrictEqual(under, [], `${count} tasks: wires under a card`)
    }
  })

  it("of no tasks, of one, and of a circle there is a picture", () => {
    assert.deepStrictEqual(layout([], SIZE), { at: new Map(), wires: [], width: 0, height: 0 })
    assert.deepStrictEqual(layout(plan({ a: "" }), SIZE).at.get("a"), [0, 0])
    assert.strictEqual(layout(plan({ a: "b", b: "a", c: "" }), SIZE).at.size, 1)
    assert.strictEqual(
      bend([
        [0, 0],
        [10, 0],
        [20, 8]
      ]),
      "M0 0L10 0C15 0 15 8 20 8"
    )
  })
})
