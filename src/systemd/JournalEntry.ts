/**
 * JournalEntry: sends an event of the daemon's log to the journal as an entry with its own fields, in addition to the
 * log line. It uses `logger --journald`, because Node has no datagram sockets. A process per entry is expensive, so
 * only events, which are rare, are sent.
 *
 * Guarantees: sending never waits and never fails. If the program is missing or hangs, or several are running, only the
 * log line is written. A value contains no line break, which would begin another field.
 */
import { spawn } from "node:child_process"
import { EVENT, FACTS, messageIds } from "../domain/LogEvent.ts"

/** Maximum number of processes at a time. */
const MOST = 2
/** Timeout of a process, ms. */
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

/** `path`: the PATH in which the program is searched. */
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
    // a process that cannot be started emits no exit
    child.once("error", () => (running -= 1))
    child.once("exit", () => (running -= 1))
    child.stdin.on("error", () => {})
    child.stdin.end(entry)
    child.unref()
  }
}
