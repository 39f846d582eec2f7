/** Bodies of hooks that were cut. */
import { assert, describe, it } from "@effect/vitest"
import * as HookBody from "../../../src/plates/HookBody.ts"

const MAX = HookBody.MAX_BYTES
const of = { session_id: "s", cwd: "/srv", hook_event_name: "PostToolUse" }
const cut = (body: object) => Buffer.from(JSON.stringify(body)).subarray(0, MAX).toString("utf8")

describe("a hook's body", () => {
  it("that is whole is as it is, and what is no JSON is refused unless it was cut", () => {
    assert.deepStrictEqual(HookBody.parse(JSON.stringify(of)), of)
    assert.throws(() => HookBody.parse("{"))
    assert.throws(() => HookBody.parse(`[${" ".repeat(MAX)}`))
  })

  it("that was cut has the fields before the cut, wherever that is, and says so", () => {
    for (let shift = 0; shift < 40; shift++) {
      const room = MAX - 60 - JSON.stringify(of).length - shift
      const body = { ...of, a: "x".repeat(room), é: String.raw`\" { \u0041`, b: { c: ["d", "e"], f: "g".repeat(MAX) } }
      const read = HookBody.parse(cut(body)) as object
      assert.isTrue(HookBody.isCut(read))
      assert.deepInclude(read, of)
    }
  })

  it("keeps the beginning of a text that was cut through", () => {
    for (const text of ["x", "é", "\\", "\u0001", '"}{']) {
      const { agentd_cut, prompt } = HookBody.parse(cut({ ...of, prompt: text.repeat(MAX) })) as Record<string, string>
      assert.isTrue(agentd_cut)
      assert.isAbove(prompt?.length ?? 0, MAX / 8, text)
    }
  })

  it("whose long field comes first is an object without fields", () =>
    assert.deepStrictEqual(HookBody.parse(cut({ long: ["x".repeat(MAX)], ...of })), { agentd_cut: true }))
})
