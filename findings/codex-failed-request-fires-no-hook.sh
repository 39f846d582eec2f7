#!/bin/sh
# Codex 0.171.0: after a request that failed for good, no hook says that the turn is over. It has fourteen hooks, among
# them Stop and Interrupt, and none for an error.
#
# Expected: Stop, or a hook of its own, when a turn ends with an error, as after an answer.
# Seen: with an answer, the hooks of `codex exec` are SessionStart, UserPromptSubmit, Stop, SessionEnd. With a request that
#   is answered 401, they are SessionStart, UserPromptSubmit, SessionEnd: in a terminal, where the session goes on, nothing
#   tells "failed" from "still at work".
#
# Needs node 20 or newer and npm. Ends with 0 while it is so, and with 1 when it is not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm i --silent --no-audit --no-fund @openai/codex@0.171.0
mkdir -p home/.codex project
cat > drive.mjs <<'JS'
import { spawn } from "node:child_process"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"

let fails = false
const model = createServer((request, response) => {
  request.resume().on("end", () => {
    if (request.method !== "POST") return response.writeHead(404).end()
    if (fails) return response.writeHead(401, { "content-type": "application/json" }).end('{"error":{"message":"no"}}')
    const item = { type: "message", id: "m", role: "assistant", content: [{ type: "output_text", text: "hello", annotations: [] }] }
    const base = { id: "r", object: "response", model: "m", output: [] }
    const usage = { input_tokens: 5, output_tokens: 1, total_tokens: 6 }
    response.writeHead(200, { "content-type": "text/event-stream" })
    const event = (type, more) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`)
    event("response.created", { response: base })
    event("response.output_item.added", { output_index: 0, item: { ...item, content: [] } })
    event("response.output_item.done", { output_index: 0, item })
    event("response.completed", { response: { ...base, status: "completed", output: [item], usage } })
    response.end()
  })
})
model.on("upgrade", (_, socket) => socket.end("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n"))
await new Promise((listening) => model.listen(0, "127.0.0.1", listening))
setTimeout(() => (console.log("it took too long"), process.exit(1)), 120_000).unref()

const home = `${process.cwd()}/home`
const heard = `${process.cwd()}/heard`
writeFileSync(
  `${home}/.codex/config.toml`,
  `model = "stub"
model_provider = "stub"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stub]
name = "Stub"
base_url = "http://127.0.0.1:${model.address().port}/v1"
wire_api = "responses"
env_key = "STUB_KEY"
request_max_retries = 1
stream_max_retries = 1
`
)
const EVENTS = "SessionStart SessionEnd UserPromptSubmit PreToolUse PermissionRequest PostToolUse Stop Interrupt SubagentStart SubagentStop"
const hook = (event) => [{ hooks: [{ type: "command", command: `echo ${event} >> ${heard}`, timeout: 20 }] }]
writeFileSync(
  `${home}/.codex/hooks.json`,
  JSON.stringify({ hooks: Object.fromEntries(EVENTS.split(" ").map((event) => [event, hook(event)])) })
)
const env = { PATH: process.env.PATH, HOME: home, CODEX_HOME: `${home}/.codex`, STUB_KEY: "dummy" }
const run = async () => {
  rmSync(heard, { force: true })
  const args = ["exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "Say hello."]
  const codex = spawn(`${process.cwd()}/node_modules/.bin/codex`, args, { cwd: `${process.cwd()}/project`, env, stdio: "ignore" })
  const code = await new Promise((ended) => codex.on("exit", ended))
  return { code, hooks: readFileSync(heard, "utf8").trim().split("\n") }
}
const answered = await run()
fails = true
const failed = await run()
console.log("answered:", answered.code, answered.hooks.join(" "))
console.log("failed:  ", failed.code, failed.hooks.join(" "))
model.close()
process.exit(answered.hooks.includes("Stop") && failed.code === 1 && !failed.hooks.includes("Stop") && failed.hooks.includes("SessionEnd") ? 0 : 1)
JS
node drive.mjs
