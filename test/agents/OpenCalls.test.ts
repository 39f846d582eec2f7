import { assert, describe, it } from "@effect/vitest"
import type { Run } from "../../src/backends/Backend.ts"
import type { OpenCall } from "../../src/agents/OpenCall.ts"
import { OpenCalls } from "../../src/agents/OpenCalls.ts"

const run = (runId: string) => ({ runId }) as Run
const call = (callId: string, turnId: string, origin?: OpenCall["origin"]) => ({ callId, turnId, origin }) as OpenCall

describe("OpenCalls", () => {
  it("a call is found by its run's name for it; a name that is used twice means the first that is open", () => {
    const calls = new OpenCalls()
    const [one, two] = [run("r1"), run("r2")]
    const first = call("1", "t1", { run: one, id: "a" })
    const second = call("2", "t1", { run: one, id: "a" })
    const other = call("3", "t2", { run: two, id: "a" })
    for (const each of [first, second, other]) calls.add(each)
    assert.strictEqual(calls.of(one, "a"), first)
    assert.strictEqual(calls.of(two, "a"), other)
    calls.remove(second)
    assert.strictEqual(calls.of(one, "a"), first)
    calls.remove(first)
    assert.isUndefined(calls.of(one, "a"))
    assert.deepStrictEqual(calls.values(), [other])
  })

  it("the last one of a turn is told, whatever an earlier daemon left of it", () => {
    const calls = new OpenCalls()
    const [a, b] = ["a", "b"].map((id) => call(id, "t1", { run: run("r1"), id }))
    const left = call("c", "t1")
    for (const each of [a!, b!, left]) calls.add(each)
    assert.deepStrictEqual([...calls.left], [left])
    assert.deepStrictEqual([calls.remove(a!), calls.remove(left), calls.remove(b!)], [false, false, true])
    assert.deepStrictEqual([...calls.left], [])
  })
})
