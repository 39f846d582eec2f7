#!/bin/sh
# Codex 0.171.0 (codex app-server): a command in Codex's own sandbox outlives the turn that was interrupted.
#
# Expected: turn/interrupt ends the turn and the command that runs in it, as it does without Codex's sandbox.
# Seen: with the sandbox danger-full-access the command ends with the turn. With workspace-write the turn is just as
#   well "interrupted", but the command works on to its end. The answer to turn/interrupt and turn/completed do not
#   mention it. A client that wants it ended must ask for thread/backgroundTerminals/list and end what it finds there.
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
import { existsSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"

const project = `${process.cwd()}/project`
let sandbox = ""
const file = (name) => `${project}/${name}-${sandbox}`

// a model that runs one command
const model = createServer((request, response) => {
  let body = ""
  request.on("data", (chunk) => (body += chunk)).on("end", () => {
    if (request.method !== "POST") return response.writeHead(404).end()
    const command = `touch ${file("begun")}; sleep 4; touch ${file("ended")}`
    const tools = JSON.parse(body).tools.map(({ name }) => name)
    const [name, input] = tools.includes("exec_command")
      ? ["exec_command", { cmd: command }]
      : ["shell", { command: ["bash", "-lc", command] }]
    const item = { type: "function_call", id: "fc_1", call_id: "call_1", name, arguments: JSON.stringify(input) }
    const usage = { input_tokens: 5, output_tokens: 1, total_tokens: 6 }
    const base = { id: "resp_1", object: "response", model: "m", output: [] }
    response.writeHead(200, { "content-type": "text/event-stream" })
    const event = (type, more) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`)
    event("response.created", { response: base })
    event("response.output_item.added", { output_index: 0, item: { ...item, arguments: "" } })
    event("response.output_item.done", { output_index: 0, item })
    event("response.completed", { response: { ...base, status: "completed", output: [item], usage } })
    response.end()
  })
})
await new Promise((listening) => model.listen(0, "127.0.0.1", listening))

const home = `${process.cwd()}/home`
writeFileSync(
  `${home}/.codex/config.toml`,
  `model = "m"
model_provider = "local"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.local]
name = "Local"
base_url = "http://127.0.0.1:${model.address().port}/v1"
wire_api = "responses"
env_key = "LOCAL_KEY"
`
)
const env = { PATH: process.env.PATH, HOME: home, CODEX_HOME: `${home}/.codex`, LOCAL_KEY: "dummy" }
const cwd = project
const codex = spawn(`${process.cwd()}/node_modules/.bin/codex`, ["app-server"], { cwd, env, stdio: ["pipe", "pipe", "ignore"] })
setTimeout(() => (console.log("it took too long"), process.exit(1)), 120_000)

const waiting = new Map()
const heard = []
createInterface({ input: codex.stdout }).on("line", (line) => {
  const said = JSON.parse(line)
  if (said.method === undefined) waiting.get(said.id)?.(said.result)
  else heard.push(said)
})
let next = 0
const send = (message) => codex.stdin.write(`${JSON.stringify(message)}\n`)
const call = (method, params) =>
  new Promise((answered) => {
    waiting.set(next, answered)
    send({ id: next++, method, params })
  })
const until = async (holds) => {
  while (!holds()) await sleep(50)
}

await call("initialize", { clientInfo: { name: "try", title: "try", version: "0" }, capabilities: { experimentalApi: true } })
send({ method: "initialized" })
const run = async (name) => {
  sandbox = name
  heard.length = 0
  const { thread } = await call("thread/start", { cwd, approvalPolicy: "never", sandbox })
  const { turn } = await call("turn/start", { threadId: thread.id, input: [{ type: "text", text: "Run it." }] })
  await until(() => existsSync(file("begun")))
  await call("turn/interrupt", { threadId: thread.id, turnId: turn.id })
  await until(() => heard.some(({ method }) => method === "turn/completed"))
  const { status } = heard.find(({ method }) => method === "turn/completed").params.turn
  const left = await call("thread/backgroundTerminals/list", { threadId: thread.id })
  await sleep(6000)
  const worksOn = existsSync(file("ended"))
  console.log(`${name}: turn ${status}, ${left?.data?.length} commands listed, the command worked on: ${worksOn}`)
  return { status, worksOn }
}
const free = await run("danger-full-access")
const confined = await run("workspace-write")
codex.kill("SIGTERM")
await sleep(500)
codex.kill("SIGKILL")
const isSo = free.status === "interrupted" && confined.status === "interrupted" && !free.worksOn && confined.worksOn
process.exit(isSo ? 0 : 1)
JS
node drive.mjs
