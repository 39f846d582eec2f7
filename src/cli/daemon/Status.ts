/** `agentd status`: the status of the daemon, and the runes on which each fact is based. */
import type { DaemonStatus, StatusReply } from "../../board/DaemonMessages.ts"
import * as DiskRoom from "../../board/DiskRoom.ts"
import { VERSION } from "../../api/rpc/Version.ts"
import * as Accounts from "./Accounts.ts"
import * as ConfigRows from "../projects/ConfigRows.ts"
import { declare, off, read, type World } from "../parse/DeclaredVerb.ts"
import { shown as bytes } from "../../config/ByteCount.ts"
import { LOOKS } from "../../domain/Words.ts"
import { age, clock, type Colour, count, lookColour, paint, plain, plainLines } from "../render/Output.ts"

const phases: { readonly [phase in DaemonStatus["phase"]]: readonly [text: string, colour: Colour] } = {
  recovering: ["recovering: it reads its log, and already answers", "yellow"],
  ready: ["ready", "green"],
  stopping: ["stopping", "yellow"]
}

/** Streams of the log that are still being read, and those that cannot be read. */
export const reading = ({ reading }: Pick<DaemonStatus, "reading">, colour: boolean): ReadonlyArray<string> => {
  if (reading === undefined) return []
  const { aside = [], read, streams, unreadable, waiting } = reading
  const names = waiting.length === 0 ? "" : `; not ready yet: ${plain(waiting.join(", "))}`
  return [
    ...(read === streams && waiting.length === 0 ? [] : [`${read} of ${count(streams, "stream")} read${names}`]),
    ...unreadable.map(({ message, stream }) =>
      paint(colour, "red", `${plain(stream)} cannot be read, and is left out: ${plain(message)} → agentd verify`)
    ),
    ...aside.map(({ message, part, stream }) =>
      paint(
        colour,
        "red",
        `${plain(part)} of ${plain(stream)} is left out: ${plain(message)} → agentd repair ${plain(stream)} --dry-run`
      )
    )
  ]
}

const supervision = ({ by, restsOn, unit }: DaemonStatus["supervision"]): string => {
  const who =
    by === "systemd"
      ? `systemd${unit === null ? "" : ` (${plain(unit)})`}`
      : by === "detached"
        ? "nobody (a detached process; it does not come back after a reboot)"
        : "the terminal that it was started in"
  return `${who}; ${plain(restsOn)}`
}

const outbox = (mail: DaemonStatus["outbox"], now: number): string => {
  if (mail.unread === true) return "what waits is still being read"
  if (!mail.configured) return "nobody is mailed: no mail section is configured"
  const parts = [`${mail.waiting} waiting`, `${mail.failed} failed`]
  if (mail.lastSentAt !== null) parts.push(`last sent ${age(now - mail.lastSentAt)} ago`)
  if (mail.lastError !== null) parts.push(`last error: ${plain(mail.lastError)}`)
  return `${parts.join(", ")}; rests on rune ${mail.restsOn}`
}

const http = (report: DaemonStatus["http"]): string => {
  if (report === undefined) return "none"
  const { listening, port, problem, socket } = report
  const tcp =
    problem !== null
      ? `${plain(problem.message)} → ${plain(problem.remedy)}`
      : port === null
        ? "TCP is turned off"
        : listening
          ? `http://127.0.0.1:${port}`
          : `port ${port} is not listened on yet`
  return `${plain(socket ?? "no socket yet")}; ${tcp}`
}

const logOf = (log: DaemonStatus["log"]): string => {
  const { begins, free, head, perDay, sealed } = log
  const lasts = DiskRoom.lasts(log)
  return [
    `${count(head, "rune")}${begins === undefined ? "" : ` (those before ${begins} are deleted)`}, ${bytes(log.bytes)}`,
    ...(sealed === undefined || sealed === 0 ? [] : [`and ${bytes(sealed)} in segments`]),
    ...(typeof perDay === "number" ? [`${bytes(perDay)} a day`] : []),
    ...(typeof free === "number" ? [`${bytes(free)} free${lasts === undefined ? "" : `, which lasts ${lasts}`}`] : [])
  ].join("; ")
}

const checked = (last: DaemonStatus["log"]["checked"], { colour, now }: World): ReadonlyArray<string> => {
  if (last === undefined || last === null) return []
  const { at, first, problems, runes } = last
  const when = `checked as a whole ${age(now - at)} ago`
  return problems === 0
    ? [`${when}: all is well (${count(runes, "rune")})`]
    : [paint(colour, "red", `${when}: ${count(problems, "problem")}: ${plain(first ?? "")} → agentd verify`)]
}

/** `3 working (rune 12)`, by status word; an older daemon reports only its internal states. */
const countsOf = ({ states, words }: StatusReply, colour: boolean): ReadonlyArray<string> =>
  words === undefined
    ? states.map(({ agents, restsOn, state }) => `${agents} ${plain(state)} (rune ${restsOn})`)
    : words.map(
        ({ agents, restsOn, word }) =>
          `${agents} ${paint(colour, lookColour[LOOKS[word].colour], word)} (rune ${restsOn})`
      )

export const view = (status: StatusReply, world: World): ReadonlyArray<string> => {
  const { colour, now } = world
  const { accounts = [], daemon, projects, uptime } = status
  const line = (name: string, text: string) => `${paint(colour, "dim", name.padEnd(11))}${text}`
  const [phase, phaseColour] = phases[daemon.phase]
  const skew = daemon.version === VERSION ? "" : ` (this command is ${VERSION}: agentd restart brings them together)`
  const agents = countsOf(status, colour)
  return [
    line("daemon", `${paint(colour, phaseColour, phase)}, pid ${daemon.pid}, version ${plain(daemon.version)}${skew}`),
    ...(daemon.replaced === true
      ? [line("", paint(colour, "yellow", "it runs an older agentd than the one that is installed: agentd restart"))]
      : []),
    line("up", `${age(uptime)}, since ${clock(daemon.startedAt, now)}`),
    line("kept by", supervision(daemon.supervision)),
    line("state", plain(daemon.state)),
    line("socket", plain(daemon.socket)),
    line("http", http(daemon.http)),
    line("log", logOf(daemon.log)),
    ...checked(daemon.log.checked, world).map((text) => line("", text)),
    ...(DiskRoom.isShort(daemon.log)
      ? [line("", paint(colour, "red", "the disk will soon be full: make room, or agentd stops"))]
      : []),
    ...reading(daemon, colour).map((text, index) => line(index === 0 ? "reading" : "", text)),
    line("mail", outbox(daemon.outbox, now)),
    line("agents", agents.length === 0 ? "none" : agents.join(", ")),
    ...Accounts.lines(accounts, world).map((text) => line("account", text)),
    ...projects.map((project) =>
      line("project", `${plain(project.name)} (${count(project.agents.length, "agent")}) ${plain(project.config)}`)
    ),
    ...projects.flatMap((project) =>
      project.waits === undefined ? [] : ConfigRows.rows([project], now, colour).map((row) => line("", row))
    ),
    ...projects.flatMap(({ problems }) =>
      problems.length === 0
        ? []
        : [
            line("", paint(colour, "yellow", "its file cannot be used; the last good version stays in force:")),
            ...problems.flatMap(plainLines).map((problem) => line("", `  ${paint(colour, "yellow", problem)}`))
          ]
    )
  ]
}

export const status = declare({
  path: ["status"],
  description: "Show the daemon: whether it is ready, what keeps it, its log, mail and agents by state",
  examples: [{ command: "agentd status --json", description: "For scripts; exit code 3: not running" }],
  args: { tree: off("The supervision tree instead: agentd status --tree --help") },
  rpc: () => read("Status", null),
  view
})
