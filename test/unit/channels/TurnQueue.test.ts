import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import * as TurnQueue from "../../../src/channels/TurnQueue.ts"

const agents = ["a", "b", "c", "d", "e"]
const all = { priority: () => 0, idle: () => true, ready: () => true }
const robin = { ...all, order: "round-robin" } as const
const of = (...line: ReadonlyArray<string>): TurnQueue.TurnQueue => ({ ...TurnQueue.empty, line })

/** Gives the floor back. */
const end = (queue: TurnQueue.TurnQueue) => TurnQueue.rotate(queue, queue.current!)

describe("TurnQueue", () => {
  it("goes round: everyone once in a cycle, in order", () => {
    let queue = of(...agents)
    const turns: Array<string> = []
    for (let turn = 0; turn < 10; turn++) {
      queue = TurnQueue.grant(queue, TurnQueue.next(queue, robin)!)
      turns.push(queue.current!)
      queue = end(queue)
    }
    assert.deepStrictEqual(turns, [...agents, ...agents])
  })

  it("who joins has its turn after everybody else's", () => {
    const queue = TurnQueue.join(TurnQueue.grant(end(TurnQueue.grant(of("a", "b", "c"), "a")), "b"), "d")
    assert.deepStrictEqual(queue, { ...of("b", "c", "a", "d"), current: "b" })
    assert.strictEqual(TurnQueue.join(queue, "a"), queue)
  })

  it("who leaves moves those behind it up; who had the floor leaves it free", () => {
    assert.deepStrictEqual(TurnQueue.leave({ ...of("a", "b", "c"), current: "a" }, "b"), {
      ...of("a", "c"),
      current: "a"
    })
    assert.deepStrictEqual(TurnQueue.leave({ ...of("a", "b"), current: "a" }, "a"), of("b"))
  })

  it("who waits keeps its place, and goes first when it claims the floor, whatever the order", () => {
    let queue = of("a", "b", "c")
    for (const agent of ["b", "a"]) queue = TurnQueue.pause(TurnQueue.grant(queue, agent), agent)
    assert.deepStrictEqual(queue, { ...of("a", "b", "c"), paused: ["b", "a"] })
    assert.strictEqual(TurnQueue.claim(queue, "c"), queue)
    for (const agent of ["b", "a"]) queue = TurnQueue.claim(queue, agent)
    for (const order of ["round-robin", "priority", "manual"] as const) {
      assert.strictEqual(TurnQueue.next(queue, { ...all, order }), "b")
      assert.strictEqual(TurnQueue.next(queue, { ...all, order, idle: (agent) => agent !== "b" }), "a")
    }
    assert.deepStrictEqual(TurnQueue.rotate(queue, "b"), { ...of("a", "c", "b"), paused: ["a"], claims: ["a"] })
    assert.deepStrictEqual(TurnQueue.grant(queue, "b"), {
      ...of("a", "b", "c"),
      current: "b",
      paused: ["a"],
      claims: ["a"]
    })
  })

  it("priority: the highest that is ready, in turn among equals; manual: nobody by itself", () => {
    const priority = (agent: string) => ({ c: 5, d: 5 })[agent] ?? 0
    const rule = { ...all, order: "priority", priority } as const
    assert.strictEqual(TurnQueue.next(of(...agents), rule), "c")
    assert.strictEqual(TurnQueue.next(end(TurnQueue.grant(of(...agents), "c")), rule), "d")
    assert.strictEqual(TurnQueue.next(of(...agents), { ...rule, ready: (agent) => agent === "b" }), "b")
    assert.isNull(TurnQueue.next(of(...agents), { ...all, order: "manual" }))
  })

  it("nobody is next while somebody has the floor", () => {
    assert.isNull(TurnQueue.next({ ...of("a", "b"), current: "a" }, robin))
    assert.strictEqual(TurnQueue.grant({ ...of("a", "b"), current: "a" }, "b").current, "a")
  })

  it("those named come first, the others as they stood", () =>
    assert.deepStrictEqual(TurnQueue.arrange(of(...agents), ["d", "x", "b", "d"]).line, ["d", "b", "a", "c", "e"]))

  const operations = ["join", "leave", "grant", "rotate", "pause", "claim", "next"] as const
  const Step = Schema.Struct({ operation: Schema.Literals(operations), agent: Schema.Literals(agents) })

  it.prop(
    "whatever is done to it: nobody twice, one floor at most and that within the line, others keep their order",
    [Arbitrary.array(Arbitrary.schema(Step), { minLength: 1, maxLength: 80 })],
    ([steps]) => {
      let queue = TurnQueue.empty
      for (const { agent, operation } of steps) {
        const before = queue
        queue =
          operation === "next"
            ? TurnQueue.grant(queue, TurnQueue.next(queue, robin) ?? agent)
            : TurnQueue[operation](queue, agent)
        const others = (line: ReadonlyArray<string>) => line.filter((other) => other !== agent)
        assert.strictEqual(new Set(queue.line).size, queue.line.length)
        if (queue.current !== null) assert.include(queue.line, queue.current)
        // The floor passes through nobody's hands but the holder's own.
        if (before.current !== null && queue.current !== null) assert.strictEqual(queue.current, before.current)
        assert.deepStrictEqual(others(queue.line), others(before.line))
        if (operation === "join") assert.include(queue.line, agent)
        if (operation === "leave") assert.notInclude(queue.line, agent)
        assert.includeMembers([...queue.line], [...queue.paused])
        assert.includeMembers([...queue.paused], [...queue.claims])
        assert.notInclude(queue.paused, queue.current)
      }
    }
  )
})
