import { assert, describe, it } from "@effect/vitest"
import { type Account, fault, refusal, retryAfter, saidIn } from "../../../src/model-agent/ProviderFault.ts"

const account: Account = {
  key: "sk-secret-0123456789",
  keySource: "the variable K",
  baseUrl: "https://api.example.org",
  model: "m"
}

const NOW = Date.parse("2026-11-20T12:00:00Z")
const error = (fields: object) => JSON.stringify({ error: fields })
const kind = (status: number | undefined, body: string, headers = {}) =>
  refusal(saidIn(body, status), account, NOW, headers).kind

describe("what a refusal means", () => {
  const rows: ReadonlyArray<readonly [kind: string, status: number | undefined, body: string]> = [
    ["auth", 401, error({ type: "authentication_error", message: "invalid x-api-key" })],
    ["auth", 403, "<html>Forbidden</html>"],
    ["billing", 402, ""],
    [
      "billing",
      400,
      error({ type: "invalid_request_error", message: "Your credit balance is too low to access the API." })
    ],
    ["billing", 429, error({ code: "insufficient_quota", message: "You exceeded your current quota" })],
    ["rate_limit", 429, error({ type: "rate_limit_error", message: "This request would exceed your limit" })],
    ["rate_limit", 429, ""],
    ["rate_limit", 400, error({ message: "You have reached your specified API usage limits." })],
    ["overflow", 400, error({ message: "prompt is too long: 200251 tokens > 200000 maximum" })],
    ["overflow", 400, error({ message: "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000" })],
    ["overflow", 400, error({ code: "context_length_exceeded", message: "…" })],
    ["overflow", 400, error({ message: "This model's maximum context length is 128000 tokens." })],
    ["overflow", 400, error({ message: "the request exceeds the available context size" })],
    ["overflow", 413, error({ type: "request_too_large", message: "Request exceeds the maximum size" })],
    ["overflow", 429, error({ code: "rate_limit_exceeded", message: "Request too large for m: Limit 30000" })],
    ["overloaded", 529, error({ type: "overloaded_error", message: "Overloaded" })],
    ["overloaded", 503, ""],
    ["overloaded", undefined, error({ type: "overloaded_error", message: "Overloaded" })],
    ["server", 500, error({ type: "api_error", message: "Internal server error" })],
    ["server", 502, "<html>Bad gateway</html>"],
    ["server", 408, ""],
    ["server", undefined, error({ type: "something_new", message: "?" })],
    ["auth", undefined, error({ type: "authentication_error", message: "expired" })],
    ["overloaded", undefined, error({ code: 503, message: "upstream" })],
    ["not_found", 404, error({ type: "not_found_error", message: "model: m" })],
    ["not_found", 400, error({ code: "model_not_found", message: "no such model" })],
    ["not_found", 301, ""],
    ["invalid_request", 400, error({ type: "invalid_request_error", message: "tools.0.name: too long" })],
    ["invalid_request", 422, JSON.stringify({ detail: "bad" })]
  ]
  it.each(rows)("%s: %s %s", (expected, status, body) => assert.strictEqual(kind(status, body), expected))
})

describe("how long to wait", () => {
  const after = (headers: { readonly [name: string]: string }) => retryAfter(headers, NOW)
  it("comes in seconds, milliseconds or as a date", () => {
    assert.strictEqual(after({ "retry-after": "2" }), 2_000)
    assert.strictEqual(after({ "retry-after": "2", "retry-after-ms": "1500" }), 1_500)
    assert.strictEqual(after({ "retry-after": "Fri, 20 Nov 2026 12:01:00 GMT" }), 60_000)
  })
  it("is nothing where it is not said, or not to be understood, and never in the past", () => {
    assert.isUndefined(after({}))
    assert.isUndefined(after({ "retry-after": "soon" }))
    assert.strictEqual(after({ "retry-after": "Fri, 20 Nov 2026 11:00:00 GMT" }), 0)
    assert.strictEqual(after({ "retry-after": "-5" }), 0)
  })
  it("is read from a limit that says when it ends", () => {
    const message =
      "You have reached your specified API usage limits. You will regain access on 2026-11-21 at 00:00 UTC."
    assert.strictEqual(refusal(saidIn(error({ message }), 400), account, NOW).retryAfter, 12 * 3_600_000)
  })
})

describe("what is told of it", () => {
  it("is one bounded line without the key", () => {
    const { message } = fault("server", `a\n\tb ${account.key} ${"c".repeat(5_000)}`, account)
    assert.match(message, /^a b \[redacted\] c+$/)
    assert.isAtMost(message.length, 500)
  })
  it("is the text of a page, without its markup", () => {
    const { message } = refusal(saidIn("<html><style>p {}</style><p>Bad gateway</p></html>", 502), account, NOW)
    assert.strictEqual(message, "the API answered 502: Bad gateway")
  })
  it("says which settings to look at", () => {
    assert.include(fault("auth", "", account).remedy, "the variable K")
    assert.include(fault("auth", "", account).remedy, "keyFile")
    assert.include(fault("not_found", "", account).remedy, '"m"')
    assert.include(fault("connection", "", account).remedy, account.baseUrl)
  })
})
