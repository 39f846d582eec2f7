/**
 * JournalEntry: sends an event of the daemon's log to the systemd journal as an entry with separate fields, in addition
 * to the log line. It uses `logger --journald`, because Node has no Unix datagram sockets. Starting a process per entry
 * is expensive, so only events, which are rare, are sent.
 *
 * Guarantees: sending never waits and never fails. If the program is missing or hangs, or if too many of its processes
 * are running, only the log line is written. A value contains no line break, because a line break would begin another
 * field.
 */
import { spawn } from "node:child_process"
import { EVENT, FACTS, messageIds } from "../domain/LogEvent.ts"

/** Maximum number of `logger` processes at a time. */
const MOST = 2
/** Timeout of a `logger` process, in ms. */
const WITHIN = 5_000
/** Maximum length of a value, in characters. */
const LONGEST = 2_000

const oneLine = (value: unknown): string =>
  String(value)
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, LONGEST)

const isEvent = (name: unknown): name is keyof typeof messageIds =>
  typeof name === "string" && Object.hasOwn(messageIds, name)

/**
 * The journal entry for a log line with these annotations, in the input format of `logger --journald`. Undefined if the
 * line is not an event. Pure.
 */
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

/** A function that sends entries to the journal. `path`: the PATH in which `logger` is searched for. */
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
    // if a process cannot be started, it emits no exit event
    child.once("error", () => (running -= 1))
    child.once("exit", () => (running -= 1))
    child.stdin.on("error", () => {})
    child.stdin.end(entry)
    child.unref()
  }
}
