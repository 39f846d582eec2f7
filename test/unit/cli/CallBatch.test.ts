import { describe, expect, it } from "@effect/vitest"
import { batchesOf, hashOf, named } from "../../../src/board/CallBatch.ts"
import { batchTitle, groupsOf } from "../../../src/board/WaitingGroups.ts"
import type { WaitingRow } from "../../../src/board/WaitingMessages.ts"
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

  it("have the words of the rule that would allow them all, and are at most 100", () => {
    const run = { offers: [{ words: "", rules: ["npm run * **", "write build/**"] }] }
    const [one, two] = batchesOf([test("c1"), test("c2", "", run)])
    expect([one!.words, two!.words]).toEqual(["npm test …", "npm run … and write build/**"])
    expect(batchesOf([asked("c1", "rm -rf a")])[0]!.words).toBe("rm -rf a")
    const many = batchesOf(Array.from({ length: 101 }, (_, n) => test(`c${n}`)))
    expect(many.map(({ calls }) => calls.length)).toEqual([100, 1])
  })
})

describe("the list of what waits", () => {
  const row = (id: string, who = "web/builder"): WaitingRow => ({
    id,
    kind: "approval",
    who,
    text: "",
    details: [],
    since: 1,
    until: null,
    commands: []
  })

  it("has one group for the calls of a batch, in the place of the first; all else is alone", () => {
    const rows = [row("agent/a"), row("call/c1"), row("call/c3"), row("call/c2", "web/tester"), row("plate/c1/2")]
    const groups = groupsOf({ rows, batches: batchesOf([test("c1"), test("c2"), asked("c3", "rm a")]) })
    expect(groups.map((group) => group.rows.map(({ id }) => id))).toEqual([
      ["agent/a"],
      ["call/c1", "call/c2"],
      ["call/c3"],
      ["plate/c1/2"]
    ])
    expect(groups.map(({ batch }) => batch?.words)).toEqual([undefined, "npm test …", undefined, undefined])
    expect(batchTitle(groups[1]!.rows, groups[1]!.batch!)).toBe("2 calls: npm test … (web/builder, web/tester)")
  })

  it("names a few agents only", () => {
    const rows = ["a", "b", "c", "d", "e", "f"].map((who) => row(who, who))
    expect(batchTitle(rows, { words: "ls" })).toBe("6 calls: ls (a, b, c, d, 2 more)")
  })
})
