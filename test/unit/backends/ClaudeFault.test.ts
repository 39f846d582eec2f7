import { assert, describe, it } from "@effect/vitest"
import * as ClaudeFault from "../../../src/runs/claude/ClaudeFault.ts"

const NOW = 1_795_000_000_000
const context = { error: "", resetsAt: undefined, interrupted: false, now: NOW }
const failed = { type: "result", subtype: "success", is_error: true, terminal_reason: "api_error", result: "words" }

const fault = (more: object, about: Partial<ClaudeFault.Context> = {}) => {
  const end = ClaudeFault.endOf({ ...failed, ...more }, { ...context, ...about })
  assert(end._tag === "Failed")
  return end.fault
}

describe("endOf", () => {
  it("success is believed only where nothing contradicts it", () => {
    const fine = { subtype: "success", is_error: false, result: "done" }
    assert.deepStrictEqual(ClaudeFault.endOf(fine, context), { _tag: "Completed", output: "done" })
    assert.strictEqual(fault({}).errorType, "unknown")
    assert.strictEqual(ClaudeFault.endOf({}, context)._tag, "Failed")
  })

  // error of the last message, more of the result → type, whether to ask again, outcome
  const rows: ReadonlyArray<readonly [string, object, string, boolean, string]> = [
    ["server_error", { api_error_status: 529 }, "overloaded", true, "Uncounted"],
    ["server_error", { api_error_status: 500 }, "server", true, "Uncounted"],
    ["server_error", { result: "API Error: Connection dropped (ECONNRESET)." }, "stream", true, "Uncounted"],
    ["server_error", { result: "API Error: Server error mid-response." }, "server", true, "Uncounted"],
    ["rate_limit", { api_error_status: 429 }, "rate_limit", true, "Uncounted"],
    ["authentication_failed", { api_error_status: 401 }, "auth", true, "Uncounted"],
    ["authentication_failed", { result: "Not logged in · Please run /login" }, "auth", true, "Uncounted"],
    ["authentication_failed", { api_error_status: 403 }, "auth", true, "Uncounted"],
    ["billing_error", { api_error_status: 400 }, "billing", true, "Fatal"],
    ["model_not_found", { api_error_status: 404 }, "model", true, "Fatal"],
    ["invalid_request", { api_error_status: 400, terminal_reason: "prompt_too_long" }, "overflow", true, "Uncounted"],
    ["invalid_request", { api_error_status: 413, terminal_reason: "image_error" }, "overflow", true, "Uncounted"],
    ["invalid_request", { stop_reason: "refusal" }, "refusal", false, "Error"],
    ["max_output_tokens", {}, "max_tokens", false, "Error"],
    ["unknown", { api_error_status: 400 }, "invalid_request", false, "Error"],
    ["", { subtype: "error_max_turns", terminal_reason: "max_turns", result: undefined }, "max_turns", false, "Error"],
    ["", { subtype: "error_max_budget_usd", result: undefined }, "budget", false, "Error"],
    ["", { subtype: "error_of_tomorrow", result: undefined }, "unknown", true, "Error"]
  ]
  for (const [error, more, errorType, retry, outcome] of rows) {
    it(`${error} ${JSON.stringify(more)} → ${errorType}, ${outcome}`, () => {
      const got = fault(more, { error })
      assert.deepStrictEqual([got.errorType, got.retry, got.outcome._tag], [errorType, retry, outcome])
    })
  }

  it("a limit ends when the CLI says so; one of which it does not is looked at again in a minute", () => {
    const until = (more: object, resetsAt: number | undefined) => {
      const { outcome } = fault({ api_error_status: 429, ...more }, { resetsAt })
      assert(outcome._tag === "Uncounted")
      return outcome.until
    }
    assert.strictEqual(until({}, NOW + 5), NOW + 5)
    assert.strictEqual(until({}, undefined), NOW + 60_000)
    assert.strictEqual(until({}, NOW - 5), NOW + 60_000)
    assert.strictEqual(until({ result: "Claude AI usage limit reached|1796000000" }, undefined), 1_796_000_000_000)
  })

  it("a turn that was broken off is interrupted, whoever asked; without a reason it is so where we did", () => {
    const broken = { subtype: "error_during_execution", is_error: true }
    const tag = (more: object, interrupted: boolean) =>
      ClaudeFault.endOf({ ...broken, ...more }, { ...context, interrupted })._tag
    assert.strictEqual(tag({ terminal_reason: "aborted_tools" }, false), "Interrupted")
    assert.strictEqual(tag({}, true), "Interrupted")
    assert.strictEqual(tag({}, false), "Failed")
  })
})

describe("birthOf", () => {
  const birth = (said: string) => ClaudeFault.birthOf({ code: 1, signal: null }, said)
  it("a session that is not there is begun anew, one that is open elsewhere forked", () => {
    assert.strictEqual(birth("No conversation found with session ID: x"), "gone")
    assert.deepStrictEqual(birth("Error: this session is already open in another Claude Code process"), {
      _tag: "Uncounted",
      reason: "held"
    })
  })
  it("wrong arguments are fatal, anything else an error with the last words", () => {
    const fatal = birth("error: unknown option '--nonsense'")
    assert.strictEqual(typeof fatal === "string" ? fatal : fatal._tag, "Fatal")
    assert.deepStrictEqual(birth("no\nluck"), { _tag: "Error", detail: "claude ended with exit code 1: no luck" })
  })
})
