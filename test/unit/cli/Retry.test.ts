/** `agentd retry` and `dismiss`: a message's id behind its agent is what --message names. */
import { assert, describe, it } from "@effect/vitest"
import { dismiss, retry } from "../../../src/cli/agents/Retry.ts"

const ID = "01kb0c3x5r8y2w4v6t7s9q1p0n"
const OTHER = "01kb0c3x5r8y2w4v6t7s9q1p0m"
const caller = { by: "ada", config: null }
const given = (names: ReadonlyArray<string>, message?: string) => ({
  names,
  labels: [],
  message,
  held: false,
  yes: false
})
const payload = (verb: typeof dismiss | typeof retry, ...of: Parameters<typeof given>) =>
  verb.rpc(given(...of), caller, { now: 0 }).calls[0]!.payload

describe("a message that is named", () => {
  it("stands behind its agent, or after --message", () => {
    for (const verb of [retry, dismiss]) {
      assert.deepInclude(payload(verb, ["builder", ID]), { name: "builder", message: ID })
      assert.deepStrictEqual(payload(verb, ["builder", ID]), payload(verb, ["builder"], ID))
      assert.notProperty(payload(verb, ["builder"]), "message")
      assert.deepInclude(verb.meant?.(given(["a", "b", ID])), { names: ["a", "b"], message: ID })
      assert.isUndefined(verb.wrong?.(given(["builder", ID]), caller))
    }
  })

  it("is one, and has an agent", () => {
    for (const verb of [retry, dismiss]) {
      assert.match(verb.wrong?.(given(["builder", ID, OTHER]), caller)?.message ?? "", /names more than one message/)
      assert.match(verb.wrong?.(given(["builder", ID], OTHER), caller)?.message ?? "", /names more than one message/)
      assert.match(verb.wrong?.(given([ID]), caller)?.message ?? "", /^Missing required argument: agent/)
    }
    assert.match(
      dismiss.wrong?.({ ...given(["builder", ID]), held: true }, caller)?.message ?? "",
      /cannot be used with a message id/
    )
  })
})
