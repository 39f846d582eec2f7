#!/bin/sh
# opencode 1.18.33, over ACP: it asks for leave with other arguments than it then tells of the call.
#
# Expected: rawInput of a tool call is what the call is made with, and session/request_permission shows the same: what a
#   person agrees to can be compared with what is carried out.
# Seen: the request shows { command } alone, while the updates of the same call have more fields beside it. A client
#   that compares the two sees a call that was changed after it was allowed.
#
# Needs node 20 or newer and npm. Ends with 0 while it is so, and with 1 when it is not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm i --silent --no-audit --no-fund opencode-ai@1.18.33
mkdir -p home project
cat > drive.mjs <<'JS'
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { createInterface } from "node:readline"

// a model that has one command run, and then says that it is done
let calls = 0
const model = createServer((request, response) => {
  let body = ""
  request.on("data", (part) => (body += part)).on("end", () => {
    if (request.method !== "POST") return void response.writeHead(404).end()
    const hasTools = JSON.parse(body).tools?.length > 0
    const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model: "stub-model" }
    const input = JSON.stringify({ command: "echo hello", description: "Says hello" })
    const use = { index: 0, id: "call_1", type: "function", function: { name: "bash", arguments: input } }
    const asks = hasTools && calls++ === 0
    const delta = asks ? { tool_calls: [use] } : { content: "Done." }
    const chunks = [
      { ...base, choices: [{ index: 0, delta: { role: "assistant", ...delta }, finish_reason: null }] },
      { ...base, choices: [{ index: 0, delta: {}, finish_reason: asks ? "tool_calls" : "stop" }] },
      { ...base, choices: [], usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } }
    ]
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + "data: [DONE]\n\n")
  })
})
await new Promise((listening) => model.listen(0, "127.0.0.1", listening))

const cwd = `${process.cwd()}/project`
const provider = {
  npm: "@ai-sdk/openai-compatible",
  name: "Stub",
  options: { baseURL: `http://127.0.0.1:${model.address().port}/v1`, apiKey: "dummy" },
  models: { "stub-model": { name: "Stub", tool_call: true, limit: { context: 100000, output: 8000 } } }
}
const config = {
  autoupdate: false,
  share: "disabled",
  model: "stub/stub-model",
  small_model: "stub/stub-model",
  provider: { stub: provider },
  permission: { bash: "ask" }
}
writeFileSync("project/opencode.json", JSON.stringify(config))
const env = {
  PATH: process.env.PATH,
  HOME: `${process.cwd()}/home`,
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
  OPENCODE_DISABLE_DEFAULT_PLUGINS: "1"
}
const agent = spawn(process.cwd() + "/node_modules/.bin/opencode", ["acp"], {
  cwd,
  env,
  stdio: ["pipe", "pipe", "ignore"]
})
const end = (code) => {
  agent.kill("SIGKILL")
  process.exit(code)
}
setTimeout(() => (console.log("it took too long"), end(1)), 300_000)

const waiting = new Map()
const told = []
let asked
const send = (message) => agent.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
createInterface({ input: agent.stdout }).on("line", (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) waiting.get(message.id)?.(message)
  if (message.method === "session/request_permission") {
    const { options, toolCall } = message.params
    asked = toolCall
    const { optionId } = options.find(({ kind }) => kind === "allow_once")
    send({ id: message.id, result: { outcome: { outcome: "selected", optionId } } })
  }
  const update = message.params?.update
  if (/^tool_call/.test(update?.sessionUpdate) && update.rawInput !== undefined) told.push(update)
})
let next = 0
const call = (method, params) =>
  new Promise((answered) => {
    waiting.set(next, answered)
    send({ id: next++, method, params })
  })

await call("initialize", { protocolVersion: 1, clientCapabilities: {} })
const { sessionId } = (await call("session/new", { cwd, mcpServers: [] })).result
await call("session/prompt", { sessionId, prompt: [{ type: "text", text: "Say hello." }] })
const ofCall = told.filter(({ toolCallId }) => toolCallId === asked?.toolCallId).map(({ rawInput }) => rawInput)
console.log("asked for leave with:", JSON.stringify(asked?.rawInput))
for (const input of ofCall) console.log("told of the call:    ", JSON.stringify(input))
const fields = (input) => Object.keys(input ?? {}).toSorted().join()
end(asked !== undefined && ofCall.some((input) => fields(input) !== "" && fields(input) !== fields(asked.rawInput)) ? 0 : 1)
JS
node drive.mjs
