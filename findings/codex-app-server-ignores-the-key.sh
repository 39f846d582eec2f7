#!/bin/sh
# Codex 0.171.0: `codex exec` takes the key in CODEX_API_KEY, `codex app-server` of the same program does not.
#
# Expected: both send the key of the variable to the model, or both say that they do not know it.
# Seen: with the same environment and config, `codex exec` sends "Authorization: Bearer" with the key. The app-server
#   starts a thread and a turn without a word about a login, and sends its requests without any Authorization.
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
import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { createInterface } from "node:readline"

// a model that says hello; it offers no WebSocket
let keys = []
const model = createServer((request, response) => {
  request.resume().on("end", () => {
    if (request.method !== "POST") return response.writeHead(404).end()
    keys.push(request.headers.authorization ?? "none")
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

const home = `${process.cwd()}/home`
const url = `http://127.0.0.1:${model.address().port}/v1`
writeFileSync(
  `${home}/.codex/config.toml`,
  `model = "gpt-5.5"
openai_base_url = "${url}"
check_for_update_on_startup = false
[analytics]
enabled = false
`
)
const cwd = `${process.cwd()}/project`
const env = { PATH: process.env.PATH, HOME: home, CODEX_HOME: `${home}/.codex`, CODEX_API_KEY: "sk-of-the-variable" }
const bin = `${process.cwd()}/node_modules/.bin/codex`
setTimeout(() => (console.log("it took too long"), process.exit(1)), 120_000)

const exec = spawn(bin, ["exec", "--skip-git-repo-check", "Say hello."], { cwd, env, stdio: ["ignore", "ignore", "ignore"] })
const code = await new Promise((ended) => exec.on("exit", ended))
const byExec = keys.splice(0)

const codex = spawn(bin, ["app-server"], { cwd, env, stdio: ["pipe", "pipe", "ignore"] })
const waiting = new Map()
let done
const over = new Promise((resolve) => (done = resolve))
createInterface({ input: codex.stdout }).on("line", (line) => {
  const said = JSON.parse(line)
  if (said.method === undefined) waiting.get(said.id)?.(said.result ?? said.error)
  else if (said.method === "turn/completed") done(said.params.turn.status)
})
let next = 0
const send = (message) => codex.stdin.write(`${JSON.stringify(message)}\n`)
const call = (method, params) =>
  new Promise((answered) => {
    waiting.set(next, answered)
    send({ id: next++, method, params })
  })
await call("initialize", { clientInfo: { name: "try", title: "try", version: "0" } })
send({ method: "initialized" })
const { thread } = await call("thread/start", { cwd, approvalPolicy: "never", sandbox: "read-only" })
await call("turn/start", { threadId: thread.id, input: [{ type: "text", text: "Say hello." }] })
const status = await over
const byServer = keys.splice(0)
codex.kill("SIGKILL")
console.log("codex exec: exit code", code, "authorization:", byExec.join(", "))
console.log("codex app-server: turn", status, "authorization:", byServer.join(", "))
const isSo = byExec.every((key) => key === "Bearer sk-of-the-variable") && byExec.length > 0 && byServer.length > 0 && byServer.every((key) => key === "none")
process.exit(isSo ? 0 : 1)
JS
node drive.mjs
