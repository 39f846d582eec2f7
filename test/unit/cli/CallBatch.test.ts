import { describe, expect, it } from "@effect/vitest"
import { batchesOf, hashOf, named } from "../../../src/cli/agents/CallBatch.ts"
import type { AskedCall } from "../../../src/domain/Messages.ts"

const asked = (id: string, command: string, over: Partial<AskedCall> = {}): AskedCall => ({
  id,
  agent: "web/builder",
  run: "r1",
  tool: "Bash",
  folder: "/srv/web",
  input: JSON.stringify({ command }),
  hash: `hash of ${id}`,
  reason: null,
  since: Number(id.slice(1)),
  until: null,
  ...over
})
const parts = [{ text: "", verdict: "ask", reason: "runs the project's code" }] as const
const test = (id: string, more = "", over: Partial<AskedCall> = {}) =>
  asked(id, `npm test ${more}`, { parts, offers: [{ words: "", rules: ["npm test **"] }], ...over })

describe("calls of one kind", () => {
  it("are one batch: the same rule would allow them, for the same reasons, in one project", () => {
    const calls = [
      test("c3", "b"),
      test("c1"),
      test("c2", "a", { agent: "web/other" }),
      test("c4", "c", { agent: "shop/builder" }),
      test("c5", "d", { parts: [{ ...parts[0], reason: "writes" }] }),
      asked("c6", "rm -rf a"),
      asked("c7", "rm -rf a"),
      asked("c8", "rm -rf b"),
      test("c9", "e", { questions: [] })
    ]
    expect(batchesOf(calls).map((batch) => batch.calls.map(({ id }) => id))).toEqual([
      ["c1", "c2", "c3"],
      ["c4"],
      ["c5"],
      ["c6", "c7"],
      ["c8"]
    ])
  })

  it("are named by the hash of the list: a later one is not taken along, and one that is gone ends it", () => {
    const calls = [test("c1"), test("c2"), test("c3")]
    const hash = hashOf(calls)
    const found = (all: ReadonlyArray<AskedCall>) => named(batchesOf(all), (one) => one === hash)?.map(({ id }) => id)
    expect(found(calls)).toEqual(["c1", "c2", "c3"])
    expect(found([...calls, test("c4")])).toEqual(["c1", "c2", "c3"])
    expect(found(calls.slice(1))).toBeUndefined()
    expect(found([calls[0]!, calls[1]!, { ...calls[2]!, hash: "another" }])).toBeUndefined()
  })
})
