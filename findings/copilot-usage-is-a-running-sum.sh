#!/bin/sh
# GitHub Copilot CLI 1.0.102, over ACP: the usage that a prompt is answered with is a running sum.
#
# Expected: the usage in the answer to session/prompt is that of the prompt, as with other agents: a client that adds
#   them up knows what the session used.
# Seen: two prompts with one request each, of 100 and 20 tokens by the model's own count, are answered with 120 and 240.
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

// a model that says hello, for 100 tokens in and 20 out
let requests = 0
const model = createServer((request, response) => {
  request.resume().on("end", () => {
    if (request.method !== "POST") return void response.writeHead(404).end()
    requests += 1
    const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model: "stub-model" }
    const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }
    const chunks = [
      { ...base, choices: [{ index: 0, delta: { role: "assistant", content: "Hello." }, finish_reason: null }] },
      { ...base, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
      { ...base, choices: [], usage }
    ]
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + "data: [DONE]\n\n")
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
createInterface({ input: agent.stdout }).on("line", (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) waiting.get(message.id)?.(message)
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
const prompt = async (text) => {
  const before = requests
  const { result } = await call("session/prompt", { sessionId, prompt: [{ type: "text", text }] })
  console.log(`${requests - before} request(s) to the model, answered with`, JSON.stringify(result))
  return result?.usage?.totalTokens / 120 - (requests - before)
}
const first = await prompt("Say hello.")
const second = await prompt("Say hello once more.")
// what is told beyond the prompt's own requests: nothing at first, then all that was told before
end(first === 0 && second > 0 ? 0 : 1)
JS
node drive.mjs
