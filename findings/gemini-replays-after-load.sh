#!/bin/sh
# Gemini CLI 0.61.0, over ACP: session/load is answered before the conversation is replayed.
#
# Expected: the protocol says that the agent streams the whole conversation back with session/update
#   notifications, and answers session/load when all of it has been streamed.
# Seen: the answer comes first, and the old prompts and answers come after it. A client that takes the answer as the end of the
#   replay takes the old conversation for the answer to its next prompt.
#
# Needs node 20 or newer and npm. Ends with 0 while it is so, and with 1 when it is not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm i --silent --no-audit --no-fund @google/gemini-cli@0.61.0
mkdir -p home/.gemini project
cat > home/.gemini/settings.json <<'JSON'
{
  "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
  "privacy": { "usageStatisticsEnabled": false },
  "general": { "disableAutoUpdate": true, "enableAutoUpdate": false }
}
JSON
cat > drive.mjs <<'JS'
import { spawn } from "node:child_process"
import { createServer } from "node:http"
import { createInterface } from "node:readline"

// a model that always says the same
const model = createServer((request, response) => {
  request.resume().on("end", () => {
    const part = (text, finishReason) => ({
      candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0, finishReason }],
      usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 }
    })
    if (request.url.includes("streamGenerateContent")) {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.end(`data: ${JSON.stringify(part("The colour is blue.", "STOP"))}\n\n`)
    } else {
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify(request.url.includes("countTokens") ? { totalTokens: 100 } : part("ok", "STOP")))
    }
  })
})
await new Promise((listening) => model.listen(0, "127.0.0.1", listening))

const cwd = `${process.cwd()}/project`
const env = {
  PATH: process.env.PATH,
  HOME: `${process.cwd()}/home`,
  GEMINI_API_KEY: "dummy",
  GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${model.address().port}`,
  GEMINI_CLI_TRUST_WORKSPACE: "true"
}

/** Starts the agent; what it says goes to `heard`, in order. */
const start = () => {
  const agent = spawn(process.cwd() + "/node_modules/.bin/gemini", ["--acp"], { cwd, env, stdio: ["pipe", "pipe", "ignore"] })
  const heard = []
  const waiting = new Map()
  createInterface({ input: agent.stdout }).on("line", (line) => {
    let message
    try {
      message = JSON.parse(line)
    } catch {
      return
    }
    heard.push(message)
    if (message.method === undefined) waiting.get(message.id)?.(message)
  })
  let next = 0
  const call = (method, params) =>
    new Promise((answered) => {
      waiting.set(next, answered)
      agent.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: next++, method, params })}\n`)
    })
  return { agent, heard, call }
}
const hello = { protocolVersion: 1, clientCapabilities: { fs: { readTextFile: false, writeTextFile: false } } }
const end = (code) => {
  first?.agent.kill("SIGKILL")
  second?.agent.kill("SIGKILL")
  process.exit(code)
}
setTimeout(() => (console.log("it took too long"), end(1)), 300_000)

let second
const first = start()
await first.call("initialize", hello)
const { sessionId } = (await first.call("session/new", { cwd, mcpServers: [] })).result
await first.call("session/prompt", { sessionId, prompt: [{ type: "text", text: "Which colour?" }] })
first.agent.stdin.end()
await new Promise((over) => setTimeout(over, 2_000))

second = start()
await second.call("initialize", hello)
const answer = await second.call("session/load", { sessionId, cwd, mcpServers: [] })
await new Promise((over) => setTimeout(over, 3_000))
const answered = second.heard.indexOf(answer)
const replayed = second.heard.flatMap(({ method, params }, at) => {
  const { content, sessionUpdate } = params?.update ?? {}
  const isWord = method === "session/update" && /message_chunk$/.test(sessionUpdate)
  // what the agent tells the model of its folder is no word of the conversation
  return isWord && !content.text.startsWith("<session_context>") ? [{ text: content.text, late: at > answered }] : []
})
console.log("session/load:", JSON.stringify(answer.error ?? "answered"))
for (const { late, text } of replayed) console.log(late ? "after the answer: " : "before the answer:", JSON.stringify(text))
end(replayed.length > 0 && replayed.every(({ late }) => late) ? 0 : 1)
JS
node drive.mjs
