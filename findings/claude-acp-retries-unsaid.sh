#!/bin/sh
# claude-agent-acp 0.101.0 (Claude Code over ACP): while the CLI asks its model again, a client is told nothing.
#
# Expected: session/update says that a request failed and is made again, as codex-acp 2.6.0 does in the session's news.
# Seen: the model answers 529 three times and then well. Between session/prompt and the answer's first words there is
#   no update of it; only a client that asks in session/new (_meta.claudeCode.emitRawSDKMessages) hears of each try, in
#   a notification "_claude/sdkMessage" that is no part of the protocol. With ten tries that is silence for minutes.
#
# Needs node 20 or newer and npm. Ends with 0 while it is so, and with 1 when it is not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm i --silent --no-audit --no-fund @agentclientprotocol/claude-agent-acp@0.101.0
mkdir -p home project
echo '{"hasCompletedOnboarding":true,"customApiKeyResponses":{"approved":["dummy"],"rejected":[]}}' > home/.claude.json
cat > drive.mjs <<'JS'
import { spawn } from "node:child_process"
import { createServer } from "node:http"
import { createInterface } from "node:readline"

// a model that is overloaded three times, and then says hello
let failed = 0
const usage = { input_tokens: 5, output_tokens: 1 }
const message = { id: "m", type: "message", role: "assistant", model: "claude-opus-5-5", stop_sequence: null, usage }
const text = { type: "text", text: "hello" }
const events = [
  { type: "message_start", message: { ...message, content: [], stop_reason: null } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
  { type: "message_stop" }
]
const model = createServer((request, response) => {
  let body = ""
  request.on("data", (chunk) => (body += chunk)).on("end", () => {
    if (request.method !== "POST") return response.writeHead(404).end()
    const { stream } = JSON.parse(body)
    if (failed < 3) {
      failed += 1
      response.writeHead(529, { "content-type": "application/json" })
      return response.end(JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }))
    }
    response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" })
    if (!stream) return response.end(JSON.stringify({ ...message, content: [text], stop_reason: "end_turn" }))
    for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    response.end()
  })
})
await new Promise((listening) => model.listen(0, "127.0.0.1", listening))

const cwd = `${process.cwd()}/project`
const env = {
  PATH: process.env.PATH,
  HOME: `${process.cwd()}/home`,
  ANTHROPIC_API_KEY: "dummy",
  ANTHROPIC_BASE_URL: `http://127.0.0.1:${model.address().port}`,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  IS_SANDBOX: "1"
}
setTimeout(() => (console.log("it took too long"), process.exit(1)), 300_000)

/** The updates and other notifications of a prompt, up to the answer's first words. */
const heard = async (meta) => {
  failed = 0
  const agent = spawn(`${process.cwd()}/node_modules/.bin/claude-agent-acp`, [], { cwd, env, stdio: ["pipe", "pipe", "ignore"] })
  const waiting = new Map()
  const seen = []
  let answers = false
  createInterface({ input: agent.stdout }).on("line", (line) => {
    const said = JSON.parse(line)
    if (said.method === undefined) return waiting.get(said.id)?.(said)
    const kind = said.params?.update?.sessionUpdate
    answers ||= kind === "agent_message_chunk"
    if (!answers) seen.push(kind ?? `${said.method} ${said.params?.message?.subtype ?? ""}`)
  })
  let next = 0
  const call = (method, params) =>
    new Promise((answered) => {
      waiting.set(next, answered)
      agent.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: next++, method, params })}\n`)
    })
  await call("initialize", { protocolVersion: 1, clientCapabilities: {} })
  const session = await call("session/new", { cwd, mcpServers: [], ...meta })
  const { sessionId } = session.result
  seen.length = 0
  const answer = await call("session/prompt", { sessionId, prompt: [{ type: "text", text: "Say hello." }] })
  agent.kill("SIGKILL")
  return { told: seen.filter((what) => /retry|notice|fail|sdkMessage/i.test(what)), seen, answer: answer.result?.stopReason }
}

const plain = await heard({})
console.log("without asking:", JSON.stringify(plain))
const asked = await heard({
  _meta: { claudeCode: { emitRawSDKMessages: [{ type: "system", subtype: "api_retry" }] } }
})
console.log("asked for:     ", JSON.stringify(asked))
const isSo =
  plain.answer === "end_turn" &&
  plain.told.length === 0 &&
  asked.told.length > 0 &&
  asked.told.every((what) => what === "_claude/sdkMessage api_retry")
process.exit(isSo ? 0 : 1)
JS
node drive.mjs
