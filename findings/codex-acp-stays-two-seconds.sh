#!/bin/sh
# codex-acp 2.6.0: it stays for two seconds after its input was closed, although its Codex has ended long before.
#
# Expected: when the client closes the input, codex-acp ends the `codex app-server` that it started, and then exits.
# Seen: the app-server ends at once. codex-acp still waits for a timer of 2 seconds that would have ended the app-server
#   with SIGTERM. A client that gives an agent 2 seconds to exit always ends it by a signal.
#
# Needs Linux, node 20 or newer and npm. Ends with 0 while it is so, and with 1 when it is not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm i --silent --no-audit --no-fund @agentclientprotocol/codex-acp@2.6.0
mkdir -p home/.codex project
cat > home/.codex/config.toml <<'TOML'
model = "stub-model"
model_provider = "stub"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stub]
name = "Stub"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
TOML
cat > drive.mjs <<'JS'
import { execFileSync, spawn } from "node:child_process"
import { createInterface } from "node:readline"

const env = { PATH: process.env.PATH, HOME: `${process.cwd()}/home` }
const argv = [process.cwd() + "/node_modules/.bin/codex-acp"]
const agent = spawn(process.execPath, argv, { cwd: "project", env, stdio: ["pipe", "pipe", "ignore"] })
setTimeout(() => (console.log("it took too long"), agent.kill("SIGKILL"), process.exit(1)), 120_000)

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
/** Processes that the agent has started and that have not ended. */
const children = () =>
  execFileSync("ps", ["-A", "-o", "ppid=,stat="], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([parent, state]) => parent === String(agent.pid) && !state.startsWith("Z"))

await call("initialize", { protocolVersion: 1, clientCapabilities: {} })
const { result } = await call("session/new", { cwd: `${process.cwd()}/project`, mcpServers: [] })
console.log("children while the session is open:", children().length)
const closed = Date.now()
let ended
const look = setInterval(() => {
  if (ended === undefined && children().length === 0) ended = Date.now() - closed
}, 50)
agent.on("exit", (code) => {
  clearInterval(look)
  const exited = Date.now() - closed
  console.log(`its Codex ended ${ended} ms after the input was closed, codex-acp after ${exited} ms (code ${code})`)
  process.exit(result !== undefined && ended !== undefined && exited >= 2000 && exited - ended > 500 ? 0 : 1)
})
agent.stdin.end()
JS
node drive.mjs
