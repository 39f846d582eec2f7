#!/bin/sh
# GitHub Copilot CLI 1.0.102, over ACP: a prompt whose request to the model failed ends with "end_turn".
#
# Expected: session/prompt is answered with an error where the turn could not be carried out, as other agents do.
# Seen: the model refuses the request with 400; the answer is { "stopReason": "end_turn" }, and the error is a text of
#   the agent that begins with "Error:". A client cannot tell it from an answer.
#
# Needs node 20 or newer and npm. Ends with 0 while it is so, and with 1 when it is not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm i --silent --no-audit --no-fund @github/copilot@1.0.102
mkdir -p home project
cat > drive.mjs <<'JS'
import { spawn } from "node:child_process"
import { createServer } from "node:http"
import { createInterface } from "node:readline"

// a model that refuses each request
let refused = 0
const model = createServer((request, response) => {
  request.resume().on("end", () => {
    if (request.method === "POST") refused += 1
    response.writeHead(400, { "content-type": "application/json" })
    response.end(JSON.stringify({ error: { message: "this model takes no such request", type: "invalid_request_error" } }))
  })
})
await new Promise((listening) => model.listen(0, "127.0.0.1", listening))

const cwd = `${process.cwd()}/project`
const env = {
  PATH: process.env.PATH,
  HOME: `${process.cwd()}/home`,
  COPILOT_PROVIDER_BASE_URL: `http://127.0.0.1:${model.address().port}/v1`,
  COPILOT_PROVIDER_API_KEY: "dummy",
  COPILOT_MODEL: "stub-model",
  COPILOT_OFFLINE: "true",
  COPILOT_AUTO_UPDATE: "false"
}
const agent = spawn(process.cwd() + "/node_modules/.bin/copilot", ["--acp"], { cwd, env, stdio: ["pipe", "pipe", "inherit"] })
const end = (code) => {
  agent.kill("SIGKILL")
  process.exit(code)
}
setTimeout(() => (console.log("it took too long"), end(1)), 300_000)

const waiting = new Map()
let said = ""
createInterface({ input: agent.stdout }).on("line", (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) waiting.get(message.id)?.(message)
  const update = message.params?.update
  if (update?.sessionUpdate === "agent_message_chunk") said += update.content.text
})
let next = 0
const call = (method, params) =>
  new Promise((answered) => {
    waiting.set(next, answered)
    agent.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: next++, method, params })}\n`)
  })

await call("initialize", { protocolVersion: 1, clientCapabilities: {} })
const session = await call("session/new", { cwd, mcpServers: [] })
if (session.result === undefined) {
  console.log("session/new:", JSON.stringify(session.error))
  end(1)
}
const { sessionId } = session.result
const answer = await call("session/prompt", { sessionId, prompt: [{ type: "text", text: "Say hello." }] })
await new Promise((over) => setTimeout(over, 500))
console.log(`the model refused ${refused} request(s)`)
console.log("the answer:", JSON.stringify(answer.error ?? answer.result))
console.log("the text:  ", JSON.stringify(said))
end(refused > 0 && answer.result?.stopReason === "end_turn" && said.includes("Error:") ? 0 : 1)
JS
node drive.mjs
