/**
 * JournalEntry: an event of the daemon's log as an entry of the journal's with fields of its own, besides its line: by
 * `logger --journald`, for Node has no datagram sockets. A process for each is much, so the few that are events have it.
 *
 * Guarantees: nobody waits for it and nothing fails by it: where there is no such program, or it hangs, or several are on
 * their way, the line is all there is. A value holds no line break, which would begin another field.
 */
import { spawn } from "node:child_process"
import { EVENT, FACTS, messageIds } from "../domain/LogEvent.ts"

/** Processes at a time. */
const MOST = 2
/** ms that each may take. */
const WITHIN = 5_000
/** Of a value: characters. */
const LONGEST = 2_000

const oneLine = (value: unknown): string =>
  String(value)
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, LONGEST)

const isEvent = (name: unknown): name is keyof typeof messageIds =>
  typeof name === "string" && Object.hasOwn(messageIds, name)

/** Pure. The entry of a line with these annotations, as `logger --journald` reads it; undefined: it is no event. */
export const entryOf = (
  line: { readonly message: string; readonly priority: number },
  annotations: { readonly [name: string]: unknown }
): string | undefined => {
  const event = annotations[EVENT]
  if (!isEvent(event)) return undefined
  const facts = FACTS.filter((fact) => annotations[fact] !== undefined)
  return [
    `MESSAGE=${oneLine(line.message)}`,
    `MESSAGE_ID=${messageIds[event]}`,
    `PRIORITY=${line.priority}`,
    "SYSLOG_IDENTIFIER=agentd",
    `AGENTD_EVENT=${event}`,
    ...facts.map((fact) => `AGENTD_${fact.toUpperCase()}=${oneLine(annotations[fact])}`),
    ""
  ].join("\n")
}

/** Sends entries; `path`: where the program is found. */
export const sender = (path: string | undefined): ((entry: string) => void) => {
  let running = 0
  return (entry) => {
    if (running === MOST) return
    running += 1
    const child = spawn("logger", ["--journald"], {
      cwd: "/",
      env: path === undefined ? {} : { PATH: path },
      stdio: ["pipe", "ignore", "ignore"],
      timeout: WITHIN,
      killSignal: "SIGKILL"
    })
    // one that cannot be started emits no exit
    child.once("error", () => (running -= 1))
    child.once("exit", () => (running -= 1))
    child.stdin.on("error", () => {})
    child.stdin.end(entry)
    child.unref()
  }
}
