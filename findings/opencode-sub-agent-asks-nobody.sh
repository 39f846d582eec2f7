#!/bin/sh
# opencode 1.18.33, over ACP: a question of its sub-agent reaches nobody, and the turn waits for it forever.
#
# Expected: with permission { bash: "ask" }, session/request_permission is sent for a command of a sub-agent (the tool
#   task), as it is for one of the agent itself, or the command is refused.
# Seen: nothing is sent for 30 seconds after the sub-agent's model has asked for the command, and the turn does not end.
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

// a model that starts a sub-agent, and one that has the sub-agent run a command
let asksForCommand
const began = new Promise((told) => (asksForCommand = told))
const model = createServer((request, response) => {
  let body = ""
  request.on("data", (part) => (body += part)).on("end", () => {
    if (request.method !== "POST") return void response.writeHead(404).end()
    const { messages, tools = [] } = JSON.parse(body)
    const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model: "stub-model" }
    const said = JSON.stringify(messages.filter(({ role }) => role === "user"))
    const isSub = said.includes("SUBWORK")
    const [name, input] = isSub
      ? ["bash", { command: "echo hello", description: "Says hello" }]
      : ["task", { description: "Greets", prompt: "SUBWORK", subagent_type: "general" }]
    const asks = tools.length > 0 && messages.every(({ role }) => role !== "tool")
    if (asks && isSub) asksForCommand()
    const use = { index: 0, id: `call_${name}`, type: "function", function: { name, arguments: JSON.stringify(input) } }
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
const asked = []
const send = (message) => agent.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
createInterface({ input: agent.stdout }).on("line", (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) waiting.get(message.id)?.(message)
  if (message.method === "session/request_permission") {
    const { options, toolCall } = message.params
    asked.push(toolCall.title)
    const { optionId } = options.find(({ kind }) => kind === "allow_once")
    send({ id: message.id, result: { outcome: { outcome: "selected", optionId } } })
  }
})
let next = 0
const call = (method, params) =>
  new Promise((answered) => {
    waiting.set(next, answered)
    send({ id: next++, method, params })
  })

await call("initialize", { protocolVersion: 1, clientCapabilities: {} })
const { sessionId } = (await call("session/new", { cwd, mcpServers: [] })).result
let isOver = false
call("session/prompt", { sessionId, prompt: [{ type: "text", text: "Have a sub-agent say hello." }] }).then(
  () => (isOver = true)
)
await began
await new Promise((resolve) => setTimeout(resolve, 30_000))
console.log("questions:", JSON.stringify(asked))
console.log(isOver ? "the turn has ended" : "the turn has not ended")
end(asked.length === 0 && !isOver ? 0 : 1)
JS
node drive.mjs
