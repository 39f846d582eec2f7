/**
 * DemoShop: the files for `agentd demo`: a project, its config, its plan, and the script that simulates its agents.
 * Pure.
 *
 * Guarantees: no agent calls a model or uses the network. Each speaks the Agent Client Protocol, like a real agent.
 */

/** Options for git that override the user's own settings, so that no commit is signed and no hook runs. */
export const PLAIN_GIT = ["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"] as const

/** Script of an agent that works in small steps, asks before it changes a file, and answers every message. */
export const AGENT = `import { execFileSync } from "node:child_process"
import { readdirSync, writeFileSync } from "node:fs"
import { createInterface } from "node:readline"

const role = process.argv[2]
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n")
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
let session = ""
let calls = 0
let answered = () => {}
let interrupted = false

const update = (sessionUpdate, more) =>
  send({ method: "session/update", params: { sessionId: session, update: { sessionUpdate, ...more } } })
const content = (words) => ({ type: "text", text: words })
const text = (words) => update("agent_message_chunk", { content: content(words) })
const call = async (name, given, work, asks) => {
  const toolCall = { toolCallId: "c" + ++calls, title: name, name, kind: asks ? "edit" : "read", rawInput: given }
  const { toolCallId } = toolCall
  const tell = (status, more) => update("tool_call_update", { toolCallId, status, ...more })
  update("tool_call", { ...toolCall, status: "pending" })
  if (asks) {
    const options = [
      { optionId: "yes", name: "Allow", kind: "allow_once" },
      { optionId: "no", name: "Deny", kind: "reject_once" }
    ]
    send({ id: toolCallId, method: "session/request_permission", params: { sessionId: session, toolCall, options } })
    const { outcome } = await new Promise((resolve) => (answered = resolve))
    if (outcome.optionId !== "yes") {
      tell("failed")
      return false
    }
  }
  tell("in_progress")
  let said = ""
  const progress = (line) => {
    said += line + "\\n"
    tell("in_progress", { content: [{ type: "content", content: content(said) }] })
  }
  tell("completed", { rawOutput: await work(progress) })
  return true
}

const page = () => "page" + readdirSync(".").filter((name) => name.startsWith("page")).length + ".html"
const commit = (name) => {
  execFileSync("git", ["add", "-A"])
  const who = [...${JSON.stringify(PLAIN_GIT)}, "-c", "user.name=" + role, "-c", "user.email=" + role + "@example.org"]
  execFileSync("git", [...who, "commit", "-qm", "Write " + name])
}

const build = async () => {
  text("I look at what is there.\\n")
  await call("list", { path: "." }, async () => ({ files: readdirSync(".") }), false)
  const name = page()
  const write = async (progress) => {
    progress("writing " + name)
    writeFileSync(name, "<h1>" + name + "</h1>\\n")
    await pause(1500)
    progress("committing")
    commit(name)
    return { written: name }
  }
  const done = await call("write", { file: name, text: "<h1>" + name + "</h1>" }, write, true)
  return done ? "I wrote " + name + " and committed it." : "Then I leave " + name + " alone."
}

const think = async () => {
  for (let step = 1; step <= 600 && !interrupted; step++) {
    if (step % 10 === 1) text("Thought " + step + ". ")
    await pause(1000)
  }
  return interrupted ? "I was interrupted." : "I have thought enough."
}

const SAYINGS = ["The sign needs paint.", "The till works again.", "I would open at nine.", "Agreed."]
const talk = () => SAYINGS[calls++ % SAYINGS.length] + "\\n\\nTURN_COMPLETE"

const prompt = async (given) => {
  await pause(700)
  const work = given.includes("TURN_COMPLETE") ? talk : role === "builder" ? build : role === "thinker" ? think : talk
  const output = await work()
  if (interrupted) return { stopReason: "cancelled" }
  text(output)
  return { stopReason: "end_turn", usage: { inputTokens: 1200, outputTokens: 80, totalTokens: 1280 } }
}

const choices = {
  models: { currentModelId: "script", availableModels: [{ modelId: "script", name: "script" }] },
  modes: { currentModeId: "ask", availableModes: [{ id: "ask", name: "Ask" }] }
}
const answer = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: { loadSession: true } }),
  "session/new": () => ({ sessionId: (session = "demo-" + process.pid), ...choices }),
  "session/load": ({ sessionId }) => {
    session = sessionId
    return choices
  },
  "session/prompt": ({ prompt: parts }) => prompt(parts.map((part) => part.text ?? "").join("\\n"))
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params, result } = JSON.parse(line)
  if (method === undefined) return answered(result)
  if (method === "session/prompt") interrupted = false
  if (method === "session/cancel") interrupted = true
  if (id === undefined) return
  const does = answer[method]
  if (does === undefined) send({ id, error: { code: -32601, message: "unknown: " + method } })
  else send({ id, result: await does(params) })
}).on("close", () => process.exit(0))
`

/**
 * Shell script of a worker agent, which does a task of the goal in a branch. The task "till" fails at its first
 * attempt.
 */
const WORKER = `p=$(cat); id=$(printf '%s\\n' "$p" | sed -n 's/.*Task \\([a-z0-9-]*\\): .*/\\1/p' | head -n 1)
echo "I begin with \${id:-it}"; sleep 4
if [ "$id" = till ] && mkdir "\${DEMO_FOLDER:?}/tried" 2>/dev/null; then echo "the drawer is stuck" >&2; exit 3; fi
if [ -z "$id" ]; then exit 0; fi
echo "$id" > "$id.txt"; git add "$id.txt"
git -c user.name=worker -c user.email=worker@example.org commit -qm "$id" && echo "made $id.txt"`

/** Shell script of the critic agent, which rejects the task "sign" once. */
const CRITIC = `cat > /dev/null; sleep 3
if mkdir "\${DEMO_FOLDER:?}/judged" 2>/dev/null
then echo '{"findings":[{"severity":"error","task":"sign","message":"the sign is crooked","fix":"hang the sign straight"}]}'
else echo '{"findings":[{"severity":"info","message":"a fine shop"}]}'; fi`

export const PLAN = {
  tasks: [
    { id: "menu", title: "Write the menu" },
    { id: "prices", title: "Set the prices", dependsOn: ["menu"] },
    { id: "till", title: "Set up the till", dependsOn: ["menu"] },
    { id: "sign", title: "Paint the sign" },
    { id: "opening", title: "Open the shop", dependsOn: ["prices", "till", "sign"], priority: 1 }
  ]
}

/** The demo's config. `node`: the program that runs the agents' script; `agent`: path of that script. */
export const configOf = (node: string, agent: string): object => {
  const scripted = (role: string, more: object = {}) => ({
    backend: { type: "acp", argv: [node, agent, role] },
    ...more
  })
  const shell = (line: string, more: object) => ({
    backend: { type: "command", shell: line, readyAfter: "100ms", killGrace: "1 second", passEnv: ["DEMO_FOLDER"] },
    ...more
  })
  return {
    agents: {
      builder: scripted("builder", { role: "writes a page for each message, and asks first", worktree: true }),
      thinker: scripted("thinker", { role: "thinks for ten minutes unless interrupted" }),
      ann: shell(WORKER, { role: "does tasks", worktree: true }),
      ben: shell(WORKER, { role: "does tasks", worktree: true }),
      critic: shell(CRITIC, { role: "reviews what they made" }),
      eve: scripted("eve", { role: "talks in the channel" }),
      joe: scripted("joe", { role: "talks in the channel" }),
      doomed: shell('echo "cannot open the database" >&2; exit 3', {
        role: "can never work",
        mode: "loop",
        prompt: "serve",
        backoff: { base: "500ms", cap: "4 seconds" }
      })
    },
    goals: {
      workers: ["ann", "ben"],
      critic: "critic",
      checks: ["test -f opening.txt"],
      backoff: { base: "1 second", cap: "2 seconds" },
      autoStart: true
    },
    channels: { counter: { agents: ["eve", "joe"], topic: "the opening", turnConfig: { restAfterPosts: 4 } } }
  }
}
