/**
 * SessionPlugin: generates the plugin through which opencode and Kilo report their sessions. These CLIs run no hook
 * commands; they load JavaScript files from their settings folder, and pass their events to them.
 *
 * Guarantees: the plugin opens no port and uses no token: it writes to the daemon's unix socket, under the same conditions
 * as HookCommand. It sends no text of a conversation but the beginning of a prompt. It changes nothing in its program,
 * never makes it wait, and never fails. What the daemon has not received is sent again, in order. A subagent's session
 * is reported as part of the session that started it.
 */
import { dirname } from "node:path"

/** Begins each plugin file of agentd. */
const MARK = "// Written by agentd:"

export const isOurs = (text: string): boolean => text.startsWith(MARK)

const program = String.raw`
import { statSync } from "node:fs"
import { connect } from "node:net"

const MAX_WAITING = 200
const waiting = []
let isSending = false

const clean = (text = "") => text.replace(/[^\w.:/-]/g, "").slice(0, 256)

const send = (body) =>
  new Promise((done) => {
    // Only we may write in the folder: nobody else can have put a socket there.
    const { mode, uid } = statSync(FOLDER)
    if (uid !== process.geteuid() || (mode & 0o022) !== 0) return done(false)
    const text = JSON.stringify(body)
    const head = ["POST " + ROUTE + " HTTP/1.0", "content-type: application/json", "content-length: " + Buffer.byteLength(text),
      "x-agentd-plate: " + clean(process.env.AGENTD_PLATE), "x-agentd-run: " + clean(process.env.AGENTD_RUN), "x-agentd-pid: " + process.pid, "", text]
    let answer = ""
    const socket = connect({ path: SOCKET })
    socket.setTimeout(1000, () => socket.destroy())
    socket.on("connect", () => socket.write(head.join("\r\n")))
    socket.on("data", (part) => (answer += part))
    socket.on("error", () => {})
    // a body that is refused would be refused again
    socket.on("close", () => done(/^HTTP\/1\.[01] [234]/.test(answer)))
  }).catch(() => false)

const sendAll = async () => {
  isSending = true
  while (waiting.length > 0) {
    const [body] = waiting
    if (!(await send(body))) await new Promise((done) => setTimeout(done, 2000).unref())
    else if (waiting[0] === body) waiting.shift()
  }
  isSending = false
}

const words = process.argv.slice(2)
// the process of a terminal has one row, whose session changes; that of a server has a row for each session
const isServer = !words.includes("run") && ["serve", "web", "acp"].some((word) => words.includes(word))
const parents = new Map()
const folders = new Map()
const busy = new Set()
const asked = new Map()
const tools = new Map()
let shown
let saidAt = 0

const say = (hook_event_name, sessionID, fields) => {
  // an event of another version
  if (typeof sessionID !== "string") return
  let root = sessionID
  while (parents.has(root)) root = parents.get(root)
  const session_id = isServer ? root : (shown ?? root)
  const agent = session_id === sessionID ? {} : { agent_id: sessionID }
  waiting.push({ hook_event_name, session_id, ...agent, cwd: folders.get(root) ?? process.cwd(), ...fields })
  if (waiting.length > MAX_WAITING) waiting.shift()
  saidAt = performance.now()
  if (!isSending) sendAll()
}

const show = (sessionID) => {
  if (isServer || sessionID === shown || parents.has(sessionID)) return
  shown = sessionID
  say("agentd.shown", sessionID, {})
}

const learn = ({ info: { directory, id, parentID } }) => {
  folders.set(id, directory)
  if (parentID) parents.set(id, parentID)
}

const listeners = {
  "session.created": learn,
  "session.updated": learn,
  "session.status": ({ sessionID, status }) => {
    if (status.type === "idle") busy.delete(sessionID)
    else {
      if (!busy.has(shown)) show(sessionID)
      busy.add(sessionID)
    }
    say("session.status", sessionID, { status: status.type })
  },
  "session.idle": ({ sessionID }) => say("session.idle", sessionID, {}),
  "session.error": ({ error, sessionID }) =>
    say("session.error", sessionID, { error: [error?.name, error?.data?.statusCode].filter(Boolean).join(" ") }),
  "message.part.updated": ({ part }) => {
    const { callID, sessionID, state, tool, type } = part
    if (type !== "tool") return
    // a permission can be asked before the call is said to run
    const isOpen = state.status === "pending" || state.status === "running"
    if (!isOpen) tools.delete(callID)
    else if (tools.has(callID)) return
    else tools.set(callID, tool)
    say(isOpen ? "tool.running" : "tool." + state.status, sessionID, { tool_name: tool, tool_use_id: callID })
  },
  "permission.asked": ({ id, permission, sessionID, tool }) => {
    const call = { tool_name: tools.get(tool?.callID) ?? permission, tool_use_id: tool?.callID ?? id }
    asked.set(id, call)
    say("permission.asked", sessionID, call)
  },
  "permission.replied": ({ reply, requestID, sessionID }) => {
    const call = asked.get(requestID)
    if (!asked.delete(requestID)) return
    say("permission.replied", sessionID, call)
    if (reply !== "reject" && tools.has(call.tool_use_id)) say("tool.running", sessionID, call)
  },
  "question.asked": ({ id, sessionID }) => say("question.asked", sessionID, { request: id }),
  "question.replied": ({ requestID, sessionID }) => say("question.replied", sessionID, { request: requestID }),
  "question.rejected": ({ requestID, sessionID }) => say("question.rejected", sessionID, { request: requestID })
}

// a long answer is a sign of life
const lives = ({ sessionID }) => busy.has(sessionID) && performance.now() - saidAt > 10000 && say("agentd.alive", sessionID, {})

const quietly = (listen) => async (...of) => {
  try {
    listen(...of)
  } catch {
    // likewise
  }
}

export const Agentd = async () => {
  if (!isServer && shown === undefined) show("open-" + crypto.randomUUID())
  return {
    event: quietly(({ event: { properties, type } }) => {
      if (Object.hasOwn(listeners, type)) listeners[type](properties)
      else lives(properties)
    }),
    "chat.message": quietly(({ sessionID }, { parts }) => {
      show(sessionID)
      const text = parts.find(({ synthetic, type }) => type === "text" && !synthetic)?.text ?? ""
      if (!parents.has(sessionID)) say("chat.message", sessionID, { prompt: text.slice(0, 200) })
    })
  }
}
`

interface Place {
  /** Absolute path of the daemon's HTTP socket. */
  readonly socket: string
  readonly state: string
}

/** The text of the plugin file. `id`: the CLI. */
export const textOf = (id: string, { socket, state }: Place): string =>
  `${MARK} reports the sessions of this program. To remove it: agentd hooks uninstall --agent ${id}
// It answers nothing, changes nothing, and opens no port. The daemon's state directory: ${JSON.stringify(state)}
const SOCKET = ${JSON.stringify(socket)}
const FOLDER = ${JSON.stringify(dirname(socket))}
const ROUTE = "/hooks/${id}"
${program}`
