/**
 * Mail: writes an alert as a plain-text mail: which agent stopped, why, the events before that, its last output, and
 * how to start it again.
 *
 * Pure. Guarantees: the subject is one short line; no text can become a header or move a cursor; the size is bounded.
 */
import { DateTime, Option } from "effect"
import { stripVTControlCharacters } from "node:util"
import type { Alert } from "./Alert.ts"
import { FAILED } from "./AlertPolicy.ts"

const MAX_SUBJECT = 78
const MAX_LINE = 500
const MAX_WHY = 30
const MAX_OUTPUT = 60
/** Maximum number of alerts with the events that led to them. Each further alert has only one line. */
export const MAX_TOLD = 10

export interface Told {
  readonly alert: Alert
  /** The project's name, or its stream if the name is no longer known. */
  readonly project: string
  /** The events that led to the alert, oldest first. */
  readonly why: ReadonlyArray<{ readonly at: number; readonly text: string }>
  readonly output: ReadonlyArray<string>
}

export interface Letter {
  readonly told: ReadonlyArray<Told>
  /** Number of further alerts, which are not in `told`. */
  readonly more: number
  readonly host: string
  readonly redact: (text: string) => string
  /** Rewrites the commands in a mail to the form that the user must type. By default, nothing is changed. */
  readonly typed?: (text: string) => string
}

export interface Mail {
  readonly subject: string
  readonly text: string
}

// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g

/** Makes text one line without control characters. */
const plain = (text: string, length = MAX_LINE): string => {
  const line = stripVTControlCharacters(text).replaceAll(CONTROL, " ").toWellFormed().trimEnd()
  return line.length <= length ? line : `${line.slice(0, length - 3).toWellFormed()}...`
}

const time = (millis: number): string =>
  Option.match(DateTime.make(millis), {
    onNone: () => "at an unknown time",
    onSome: (at) =>
      DateTime.formatIso(at)
        .replace("T", " ")
        .replace(/\.\d+Z$/, " UTC")
  })

const indented = (text: string): ReadonlyArray<string> => text.split("\n").map((line) => `  ${plain(line)}`)

/** `agent shop/builder` or `goal shop/g1`. For any other actor, the actor's name in the log and its project. */
const whoOf = (alert: Alert, project: string): string => {
  if (isStopped(alert) || alert.kind === "agent.nearing_limit") return `agent ${project}/${alert.name}`
  return alert.actor.startsWith("plan/") ? `goal ${project}/${alert.name}` : `${alert.actor} in ${project}`
}

const isStopped = (alert: Alert): boolean => alert.kind === "agent.stopped"

const times = (alert: Alert): string => (alert.count > 1 ? ` (${alert.count} times)` : "")

const story = ({ alert, output, project, why }: Told, typed: (text: string) => string): ReadonlyArray<string> => {
  const address = `${project}/${alert.name}`
  const lines = [
    `${plain(alert.headline)}${times(alert)}`,
    "",
    `Who:     ${plain(whoOf(alert, project))}`,
    `When:    ${time(alert.at)}`
  ]
  if (alert.errors !== null) lines.push(`Errors:  ${alert.errors.row} in a row, ${alert.errors.all} in total`)
  if (alert.runId !== null) lines.push(`Run:     ${plain(alert.runId)}`)
  lines.push(`Rune:    ${alert.cause}`, "", "Why:", ...indented(alert.reason))
  if (why.length > 0) {
    lines.push("", "What happened before:")
    if (why.length > MAX_WHY) lines.push(`  … ${why.length - MAX_WHY} earlier steps`)
    for (const step of why.slice(-MAX_WHY)) lines.push(`  ${time(step.at)}  ${plain(step.text)}`)
  }
  if (output.length > 0)
    lines.push("", "Its last lines:", ...output.slice(-MAX_OUTPUT).map((line) => `  | ${plain(line)}`))
  if (alert.remedy !== null) lines.push("", "What to do:", ...indented(typed(alert.remedy)))
  if (isStopped(alert)) lines.push("", "Start it again:", `  ${typed(`agentd start ${plain(address)}`)}`)
  return lines
}

const short = ({ alert, project }: Told): string =>
  `- ${time(alert.at)}  ${plain(`${project}: ${alert.headline}`)}${times(alert)}`

/** A subject such as `3 alerts: builder has failed, tester has failed, …`, which is then cut to fit. */
const digestSubject = (letter: Letter): string => {
  const { more, told } = letter
  const names = told.map(({ alert }) =>
    alert.headline.includes(` ${FAILED}`) ? `${alert.name} ${FAILED}` : alert.headline
  )
  return `[agentd] ${told.length + more} alerts: ${names.join(", ")}`
}

export const render = (letter: Letter): Mail => {
  const { host, more, redact, told, typed = (text) => text } = letter
  const single = told.length === 1 && more === 0 ? told[0] : undefined
  const subject = single === undefined ? digestSubject(letter) : `[agentd] ${single.alert.headline}`
  const lines: Array<string> = []
  if (single === undefined) lines.push(`${told.length + more} alerts:`, ...told.map(short))
  if (more > 0) lines.push(typed(`- and ${more} more: agentd status`))
  if (lines.length > 0) lines.push("")
  for (const [index, one] of told.slice(0, MAX_TOLD).entries()) {
    if (index > 0 || single === undefined) lines.push("-".repeat(72))
    lines.push(...story(one, typed), "")
  }
  if (told.length > MAX_TOLD) lines.push(typed(`The other ${told.length - MAX_TOLD}: agentd alert ls`), "")
  lines.push("-- ", `agentd on ${plain(host)}`)
  return { subject: plain(redact(subject), MAX_SUBJECT), text: `${redact(lines.join("\n"))}\n` }
}

/** The mail that is sent when systemd no longer restarts the daemon. `last`: the daemon's last lines in the journal. */
export const daemonFailed = (
  of: { readonly host: string; readonly unit: string; readonly last: string; readonly start: string },
  now: number
): Mail => ({
  subject: plain(`[agentd] ${of.unit} on ${of.host} has failed and is down`, MAX_SUBJECT),
  text: [
    `The daemon itself (${plain(of.unit)} on ${plain(of.host)}) has failed; systemd does not start it again.`,
    "No agent is supervised until the daemon runs again.",
    "",
    "What to do:",
    `    see why:      ${of.start.replace("start", "status")}`,
    `    start again:  ${of.start}`,
    ...(of.last === ""
      ? []
      : [
          "",
          "Its last lines:",
          ...of.last
            .split("\n")
            .slice(-20)
            .map((line) => `    ${plain(line)}`)
        ]),
    "",
    "-- ",
    `agentd on ${plain(of.host)}, ${time(now)}`,
    ""
  ].join("\n")
})

export const testMail = (host: string, now: number): Mail => ({
  subject: plain(`[agentd] test mail from ${host}`, MAX_SUBJECT),
  text: [
    "This is the mail that you asked for with: agentd alert test",
    "",
    `If an agent on ${plain(host)} stops permanently, you get a mail like this one.`,
    "",
    "-- ",
    `agentd on ${plain(host)}, ${time(now)}`,
    ""
  ].join("\n")
})
