/** Claude Code's part in a hook: it runs what its settings say, as it does, and takes what is answered for granted. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { request } from "node:http"

/** A handler in the settings. */
export interface Handler {
  readonly type: "command" | "http"
  readonly command?: string
  readonly url?: string
  readonly headers?: { readonly [name: string]: string }
  readonly timeout: number
}

export const handlersIn = (settings: string): ReadonlyArray<{ readonly event: string; readonly handler: Handler }> => {
  const { hooks } = JSON.parse(readFileSync(settings, "utf8")) as {
    readonly hooks: { readonly [event: string]: ReadonlyArray<{ readonly hooks: ReadonlyArray<Handler> }> }
  }
  return Object.entries(hooks).flatMap(([event, groups]) =>
    groups.flatMap((group) => group.hooks.map((handler) => ({ event, handler })))
  )
}

export interface Said {
  /** Exit code of a command, status of an answer; 2 of a command stops the agent. Null: ended at its timeout. */
  readonly code: number | null
  readonly out: string
}

/** Runs a command hook; it is ended at its timeout, as Claude Code does. */
export const run = (
  { command = "", timeout }: Handler,
  body: string,
  env: { readonly [name: string]: string } = {}
): Promise<Said> =>
  new Promise((resolve) => {
    const child = spawn("sh", ["-c", command], {
      env: { PATH: process.env["PATH"] ?? "", ...env },
      stdio: ["pipe", "pipe", "ignore"],
      timeout: timeout * 1000,
      killSignal: "SIGKILL"
    })
    let out = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text))
    child.stdin.on("error", () => {})
    child.on("close", (code) => resolve({ code, out }))
    child.stdin.end(body)
  })

/** Sends an http hook. */
const post = ({ headers = {}, url = "" }: Handler, body: string): Promise<Said> =>
  new Promise((resolve) => {
    const outgoing = request(url, { method: "POST", headers, agent: false }, (response) => {
      let out = ""
      response.setEncoding("utf8").on("data", (text: string) => (out += text))
      response.on("end", () => resolve({ code: response.statusCode ?? 0, out }))
    })
    outgoing.on("error", () => resolve({ code: 0, out: "" }))
    outgoing.end(body)
  })

export const fire = (handler: Handler, body: string, env?: { readonly [name: string]: string }): Promise<Said> =>
  handler.type === "http" ? post(handler, body) : run(handler, body, env)

/** The JSON that a hook is given; `fill`: about so many bytes. */
export const bodyOf = (event: string, sessionId: string, fill = 2_000): string =>
  JSON.stringify({
    session_id: sessionId,
    cwd: "/srv/shop",
    hook_event_name: event,
    source: "startup",
    reason: "other",
    tool_name: "Bash",
    tool_use_id: `toolu_${event}`,
    notification_type: "permission_prompt",
    agent_id: "a1",
    mcp_server_name: "m",
    error: "rate_limit",
    tool_input: { command: "x".repeat(fill) }
  })
