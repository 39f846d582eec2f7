/** Meanings of failures, by what real agents and providers say of them: a line each, with its program and version. */
import { assert, describe, it } from "@effect/vitest"
import * as AcpFault from "../../../src/runs/acp/AcpFault.ts"
import * as ClaudeFault from "../../../src/runs/claude/ClaudeFault.ts"
import * as Fault from "../../../src/runs/Fault.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"

const classOf = ({ outcome }: { readonly outcome: Outcome }): string =>
  outcome._tag === "Uncounted" ? outcome.reason : outcome._tag

const agent = { name: "X", authMethods: [] }
const acp = (code: number, message: string, data?: unknown) =>
  AcpFault.ofRefusal({ code, message, ...(data === undefined ? {} : { data }) }, "the prompt", agent, 0)

const gemini = (code: number, message: string, status: string): readonly [number, string] => [
  code,
  JSON.stringify({ error: { code, message, status } })
]
const API = { service: "session", errorName: "APIError" }
const QUOTA = "You exceeded your current quota, please check your plan and billing details."

describe("an ACP agent's refusal", () => {
  const rows: ReadonlyArray<
    readonly [program: string, type: string, outcome: string, said: readonly [number, string, unknown?]]
  > = [
    ["gemini 0.61.0", "auth", "auth", gemini(401, "stub says 401", "INVALID_ARGUMENT")],
    ["gemini 0.61.0", "auth", "auth", gemini(403, "stub says 403", "INVALID_ARGUMENT")],
    ["gemini 0.61.0", "invalid_request", "Error", gemini(400, "stub says 400", "INVALID_ARGUMENT")],
    [
      "gemini 0.61.0, a bad key",
      "auth",
      "auth",
      gemini(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT")
    ],
    [
      "gemini 0.61.0, a minute's quota",
      "rate_limit",
      "quota",
      gemini(429, `${QUOTA} For more information: https://ai.google.dev. Please retry in 34.07s.`, "RESOURCE_EXHAUSTED")
    ],
    [
      "gemini 0.61.0, the same without its code",
      "rate_limit",
      "quota",
      [-32603, `Internal error: ${QUOTA} Please retry in 34.07s.`]
    ],
    [
      "gemini 0.61.0, a day's quota",
      "rate_limit",
      "quota",
      [429, "[API Error: You have exhausted your daily quota on this model.]"]
    ],
    [
      "gemini 0.61.0",
      "server",
      "unavailable",
      gemini(500, "An internal error has occurred. Please retry or report", "INTERNAL")
    ],
    [
      "gemini 0.61.0",
      "overloaded",
      "unavailable",
      gemini(503, "The model is overloaded. Please try again later.", "UNAVAILABLE")
    ],
    ["qwen 0.24.4", "auth", "auth", [-32603, "Internal error", { details: "401 stub says 401" }]],
    ["qwen 0.24.4", "auth", "auth", [-32603, "Internal error", { details: "403 stub says 403" }]],
    ["qwen 0.24.4", "invalid_request", "Error", [-32603, "Internal error", { details: "400 stub says 400" }]],
    [
      "qwen 0.24.4, OpenAI's account is empty",
      "billing",
      "Fatal",
      [-32603, "Internal error", { details: `429 ${QUOTA}` }]
    ],
    ["opencode 1.18.33", "auth", "auth", [-32603, "Internal error: stub says 401", API]],
    ["opencode 1.18.33", "invalid_request", "Error", [-32603, "Internal error: stub says 400", API]],
    ["opencode 1.18.33, Anthropic", "auth", "auth", [-32603, "Internal error: invalid x-api-key", API]],
    ["opencode 1.18.33, Anthropic 529", "overloaded", "unavailable", [-32603, "Internal error: Overloaded", API]],
    [
      "opencode 1.18.33, Anthropic 500",
      "server",
      "unavailable",
      [-32603, "Internal error: Internal server error", API]
    ],
    [
      "opencode 1.18.33, OpenAI 500",
      "server",
      "unavailable",
      [-32603, "Internal error: The server had an error while processing your request. Sorry about that!", API]
    ],
    [
      "opencode 1.18.33, an answer too long",
      "max_tokens",
      "Error",
      [-32603, "Internal error: ", { service: "session", errorName: "MessageOutputLengthError" }]
    ],
    [
      "opencode 1.18.33, no login",
      "auth",
      "auth",
      [-32603, "Internal error: x", { service: "session", errorName: "ProviderAuthError" }]
    ],
    [
      "kilo 7.7.9",
      "overflow",
      "overflow",
      [
        -32603,
        "Internal error: Compaction exhausted: context still exceeds model limits after 3 attempts",
        { service: "session", errorName: "ContextOverflowError" }
      ]
    ],
    [
      "kilo 7.7.9, no name",
      "overflow",
      "overflow",
      [-32603, "Internal error: Compaction exhausted: context still exceeds"]
    ],
    ["cline 3.0.65", "auth", "auth", [-32000, "Authentication required: stub says 401", { message: "stub says 401" }]],
    ["cline 3.0.65", "agent", "Error", [-32603, "Internal error: stub says 400", { message: "stub says 400" }]],
    [
      "cline 3.0.65",
      "max_tokens",
      "Error",
      [-32603, "Internal error: Model reached the maximum output token limit before completing the turn"]
    ],
    ["droid 0.215.0", "auth", "auth", [-32603, "Internal error: Agent error", "401 stub says 401"]],
    ["droid 0.215.0", "rate_limit", "quota", [-32603, "Internal error: Agent error", "429 stub says 429"]],
    ["droid 0.215.0", "connection", "unavailable", [-32603, "Internal error: Agent error", "Connection error."]],
    [
      "droid 0.215.0",
      "refusal",
      "Error",
      [
        -32603,
        "Internal error: Agent error",
        "Request failed due to triggering the model provider's content moderation policy."
      ]
    ],
    ["codex-acp 2.6.0", "auth", "auth", [-32000, "Authentication required"]],
    [
      "codex-acp 2.6.0",
      "rate_limit",
      "quota",
      [-32603, "Internal error", { message: "try again later", codexErrorInfo: "usageLimitExceeded" }]
    ],
    [
      "codex-acp 2.6.0",
      "connection",
      "unavailable",
      [-32603, "Internal error", { codexErrorInfo: { responseStreamDisconnected: { httpStatusCode: null } } }]
    ],
    [
      "codex-acp 2.6.0",
      "server",
      "unavailable",
      [-32603, "Internal error", { codexErrorInfo: { responseTooManyFailed: { httpStatusCode: 502 } } }]
    ],
    [
      "claude-agent-acp 0.101.0",
      "max_tokens",
      "Error",
      [-32603, "Internal error: API Error: Claude's response exceeded", { errorKind: "max_output_tokens" }]
    ],
    [
      "claude-agent-acp 0.101.0",
      "billing",
      "Fatal",
      [-32603, "Internal error: API Error: 402 Payment required", { errorKind: "unknown" }]
    ],
    ["claude-agent-acp 0.101.0", "rate_limit", "quota", [-32603, "Internal error: words", { errorKind: "rate_limit" }]],
    [
      "claude-agent-acp 0.101.0",
      "auth",
      "auth",
      [-32603, "Internal error: words", { errorKind: "oauth_org_not_allowed" }]
    ],
    [
      "claude-agent-acp 0.101.0",
      "connection",
      "unavailable",
      [-32603, "Internal error", { errorKind: "transport_lost" }]
    ],
    [
      "claude-agent-acp 0.101.0",
      "server",
      "unavailable",
      [
        -32603,
        "Internal error: API Error: 500 The server had an error while processing your request. Sorry about that. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:46779).",
        { errorKind: "server_error" }
      ]
    ],
    [
      "claude-agent-acp 0.101.0",
      "rate_limit",
      "quota",
      [
        -32603,
        "Internal error: API Error: Request rejected (429) · Rate limit reached for requests. Please try again in 20s.",
        { errorKind: "rate_limit" }
      ]
    ],
    [
      "claude-agent-acp 0.101.0",
      "overflow",
      "overflow",
      [
        -32603,
        "Internal error: API Error: 400 This model maximum context length is 128000 tokens.",
        { errorKind: "unknown" }
      ]
    ],
    [
      "claude-agent-acp 0.101.0",
      "connection",
      "unavailable",
      [
        -32603,
        "Internal error: API Error: Connection dropped (ECONNRESET). Check the gateway set in ANTHROPIC_BASE_URL, then try again.",
        { errorKind: "server_error" }
      ]
    ],
    ["claude-agent-acp 0.101.0, 401 and 403", "auth", "auth", [-32000, "Authentication required"]],
    [
      "Anthropic, through anyone",
      "rate_limit",
      "quota",
      [-32603, "This request would exceed your organization's rate limit of 40,000 input tokens per minute"]
    ],
    ["auggie 0.36.0", "not_found", "Error", [-32603, "Internal error: HTTP error: 404 Not Found", { httpStatus: 404 }]],
    ["OpenAI", "auth", "auth", [-32603, "Internal error: 403 Country, region, or territory not supported", {}]],
    ["a file", "agent", "Error", [-32603, "Internal error: could not read src/billing.ts", {}]],
    ["a line", "agent", "Error", [-32603, "Internal error: tool failed at line 402", {}]],
    ["a line", "agent", "Error", [-32603, "Internal error: unexpected text at line 402 of x.ts", {}]],
    ["a tool", "agent", "Error", [-32603, "Internal error: the tool bash timed out after 120 s", {}]],
    ["a tool", "agent", "Error", [-32603, "Internal error: MCP error -32001: Request timed out", {}]],
    ["a disk", "agent", "Error", [-32603, "Internal error: EDQUOT: disk quota exceeded", {}]],
    ["JSON", "agent", "Error", [-32603, "Internal error: SyntaxError: Invalid or unexpected token", {}]]
  ]
  it.each(rows)("%s: %s, %s: %j", (_, type, outcome, said) => {
    const fault = acp(...said)
    assert.deepStrictEqual([fault.errorType, classOf(fault)], [type, outcome])
  })
})

/** Texts of an unreachable network, of Node, Bun, Rust, Python and curl, as agents pass them on. */
const NETWORK = [
  "Unable to connect to API (ConnectionRefused)",
  "Unable to connect to API (ENETUNREACH)",
  "Unable to connect to API (ECONNREFUSED)",
  "Unable to connect to API (FailedToOpenSocket)",
  "Unable to connect to API due to poor internet connection",
  "Request timed out.",
  "Request timed out. Check your internet connection and proxy settings",
  "Connection error.",
  "Connection refused",
  "connection refused (os error 111)",
  "connect ECONNREFUSED 127.0.0.1:443",
  "Network is unreachable",
  "network unreachable",
  "connect EHOSTUNREACH 10.0.0.1:443",
  "No route to host",
  "getaddrinfo ENOTFOUND api.anthropic.com",
  "getaddrinfo EAI_AGAIN api.openai.com",
  "Temporary failure in name resolution",
  "Could not resolve host: api.openai.com",
  "dns error: failed to lookup address information",
  "socket hang up",
  "read ECONNRESET",
  "Connection reset by peer",
  "The socket connection was closed unexpectedly. For more information, pass `verbose: true`",
  "Client network socket disconnected before secure TLS connection was established",
  "write EPIPE",
  "other side closed",
  "TypeError: fetch failed",
  "TypeError: terminated",
  "Connection closed mid-response. The response above may be incomplete.",
  "stream disconnected before completion: stream closed before response.completed",
  "error sending request for url (https://api.openai.com/v1/responses)",
  "client error (SendRequest): connection closed before message completed",
  "Premature close",
  "unexpected EOF",
  "tunneling socket could not be established, cause=connect ETIMEDOUT",
  "connect ETIMEDOUT 1.2.3.4:443",
  "operation timed out",
  "context deadline exceeded",
  "UND_ERR_CONNECT_TIMEOUT",
  "timeout of 60000ms exceeded: connection timed out",
  "unable to get local issuer certificate",
  "self-signed certificate in certificate chain",
  "certificate has expired",
  "SSL routines: tlsv1 alert protocol version",
  "The network connection was lost.",
  "You appear to be offline"
]

describe("words of a network that is away are weather", () => {
  for (const words of NETWORK)
    it(words, () => {
      const end = ClaudeFault.endOf(
        { subtype: "success", is_error: true, terminal_reason: "api_error", result: `API Error: ${words}` },
        { error: "unknown", resetsAt: undefined, interrupted: false, now: 0 }
      )
      assert(end._tag === "Failed")
      assert.strictEqual(classOf(end.fault), "unavailable", "claude")
      assert.strictEqual(classOf(acp(-32603, `Internal error: ${words}`)), "unavailable", "acp")
      assert.strictEqual(classOf(acp(-32603, "Internal error", { details: words })), "unavailable", "acp's data")
    })
})

describe("Claude Code 2.1.332", () => {
  const rows: ReadonlyArray<readonly [error: string, words: string, type: string, outcome: string]> = [
    ["unknown", "API Error: 402 Payment required", "billing", "Fatal"],
    [
      "unknown",
      `API Error: 400 {"type":"error","error":{"message":"Your credit balance is too low"}}`,
      "billing",
      "Fatal"
    ],
    ["account_on_hold", "Your account is on hold", "auth", "auth"],
    ["cloud_credential_error", "Could not load credentials", "auth", "auth"],
    ["authentication_failed", "API Error: 401 OAuth token has expired. Please run /login", "auth", "auth"],
    [
      "max_output_tokens",
      "API Error: Claude's response exceeded the 32000 output token maximum.",
      "max_tokens",
      "Error"
    ],
    ["unknown", "API Error: Claude's response exceeded the 32000 output token maximum.", "max_tokens", "Error"],
    ["rate_limit", "You've hit your limit · resets 5pm", "rate_limit", "quota"],
    ["unknown", `API Error: Unexpected token '<', "<!DOCTYPE html>"... is not valid JSON`, "server", "unavailable"],
    ["unknown", "API Error: 400 tools.0.name: too long", "invalid_request", "Error"]
  ]
  it.each(rows)("%s: %s: %s, %s", (error, result, type, outcome) => {
    const end = ClaudeFault.endOf(
      { subtype: "success", is_error: true, terminal_reason: "api_error", result },
      { error, resetsAt: undefined, interrupted: false, now: 0 }
    )
    assert(end._tag === "Failed")
    assert.deepStrictEqual([end.fault.errorType, classOf(end.fault)], [type, outcome])
  })

  it("a program that ends before it is ready, for its network or its login, counts nothing", () => {
    const birth = (said: string) => ClaudeFault.birthOf({ code: 1, signal: null }, said) as Outcome
    assert.strictEqual(classOf({ outcome: birth("getaddrinfo EAI_AGAIN api.anthropic.com") }), "unavailable")
    assert.strictEqual(classOf({ outcome: birth("Invalid API key · Please run /login") }), "auth")
    assert.strictEqual(classOf({ outcome: birth("connection refused by a hook\nno memory left") }), "Error")
  })
})

describe("what is read of an error", () => {
  it("are names, the status and words, wherever they stand", () => {
    assert.deepStrictEqual(Fault.saidIn({ a: { code: 429, reason: "quota" }, b: ["two words"] }), {
      names: "quota",
      status: 429,
      words: "two words"
    })
    assert.strictEqual(Fault.saidIn({ message: `{"error":{"code":503}}` }).status, 503)
    assert.deepStrictEqual(Fault.saidIn(undefined), { names: "", status: 0, words: "" })
  })
  it("is bounded, however deep and long it is", () => {
    let deep: unknown = "the end"
    for (let at = 0; at < 10_000; at++) deep = { deep }
    assert.strictEqual(Fault.saidIn(deep).words, "")
    const long = Fault.saidIn(Array.from({ length: 10_000 }, () => "two words"))
    assert.isAtMost(long.words.split("\n").length, 101)
  })
})
