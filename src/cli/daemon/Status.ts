/** `agentd status`: shows the daemon's status. For each fact, the rune from which it was derived is named. */
import { inForce } from "../../domain/ConfigInForce.ts"
import type { DaemonStatus, StatusReply } from "../../board/DaemonMessages.ts"
import * as DiskRoom from "../../board/DiskRoom.ts"
import { VERSION } from "../../api/rpc/Version.ts"
import * as Accounts from "./Accounts.ts"
import * as ConfigRows from "../projects/ConfigRows.ts"
import { declare, off, read, type World } from "../parse/DeclaredVerb.ts"
import { shown as bytes } from "../../config/ByteCount.ts"
import { LOOKS } from "../../domain/StatusWords.ts"
import { age, clock, type Colour, count, lookColour, paint, plain, plainLines } from "../render/Output.ts"

const phases: { readonly [phase in DaemonStatus["phase"]]: readonly [text: string, colour: Colour] } = {
  recovering: ["recovering: the daemon is reading its log, but already answers", "yellow"],
  ready: ["ready", "green"],
  stopping: ["stopping", "yellow"]
}

/** Lines about the log's streams that are still being read, and about streams that cannot be read. */
export const reading = ({ reading }: Pick<DaemonStatus, "reading">, colour: boolean): ReadonlyArray<string> => {
  if (reading === undefined) return []
  const { aside = [], read, streams, unreadable, waiting } = reading
  const names = waiting.length === 0 ? "" : `; not ready yet: ${plain(waiting.join(", "))}`
  return [
    ...(read === streams && waiting.length === 0 ? [] : [`${read} of ${count(streams, "stream")} read${names}`]),
    ...unreadable.map(({ message, stream }) =>
      paint(colour, "red", `${plain(stream)} cannot be read, so it is skipped: ${plain(message)} → agentd verify`)
    ),
    ...aside.map(({ message, part, stream }) =>
      paint(
        colour,
        "red",
        `${plain(part)} of ${plain(stream)} is skipped: ${plain(message)} → agentd repair ${plain(stream)} --dry-run`
      )
    )
  ]
}

const supervision = ({ by, restsOn, unit }: DaemonStatus["supervision"]): string => {
  const who =
    by === "systemd"
      ? `systemd${unit === null ? "" : ` (${plain(unit)})`}`
      : by === "detached"
        ? "none (a detached process, which does not start again after a reboot)"
        : "the terminal in which it was started"
  return `${who}; ${plain(restsOn)}`
}

const outbox = (mail: DaemonStatus["outbox"], now: number): string => {
  if (mail.unread === true) return "the queue is still being read from the log"
  if (!mail.configured) return "off: the config has no mail section"
  const parts = [`${mail.waiting} waiting`, `${mail.failed} failed`]
  if (mail.lastSentAt !== null) parts.push(`last sent ${age(now - mail.lastSentAt)} ago`)
  if (mail.lastError !== null) parts.push(`last error: ${plain(mail.lastError)}`)
  return `${parts.join(", ")}; based on rune ${mail.restsOn}`
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
          : `not listening on port ${port} yet`
  return `${plain(socket ?? "no socket yet")}; ${tcp}`
}

const logOf = (log: DaemonStatus["log"]): string => {
  const { begins, free, head, perDay, sealed } = log
  const lasts = DiskRoom.lasts(log)
  return [
    `${count(head, "rune")}${begins === undefined ? "" : ` (those before ${begins} are deleted)`}, ${bytes(log.bytes)}`,
    ...(sealed === undefined || sealed === 0 ? [] : [`and ${bytes(sealed)} in segments`]),
    ...(typeof perDay === "number" ? [`${bytes(perDay)} a day`] : []),
    ...(typeof free === "number" ? [`${bytes(free)} free${lasts === undefined ? "" : `, enough for ${lasts}`}`] : [])
  ].join("; ")
}

const checked = (last: DaemonStatus["log"]["checked"], { colour, now }: World): ReadonlyArray<string> => {
  if (last === undefined || last === null) return []
  const { at, first, problems, runes } = last
  const when = `whole log checked ${age(now - at)} ago`
  return problems === 0
    ? [`${when}: no problems (${count(runes, "rune")})`]
    : [paint(colour, "red", `${when}: ${count(problems, "problem")}: ${plain(first ?? "")} → agentd verify`)]
}

/**
 * Number of agents per status, such as `3 working (rune 12)`. For an older daemon, its internal states are shown
 * instead.
 */
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
  const skew =
    daemon.version === VERSION ? "" : ` (this command has version ${VERSION}; to update the daemon: agentd restart)`
  const agents = countsOf(status, colour)
  return [
    line("daemon", `${paint(colour, phaseColour, phase)}, pid ${daemon.pid}, version ${plain(daemon.version)}${skew}`),
    ...(daemon.replaced === true
      ? [
          line(
            "",
            paint(colour, "yellow", "the daemon is older than the installed agentd. To update it: agentd restart")
          )
        ]
      : []),
    line("up", `${age(uptime)}, since ${clock(daemon.startedAt, now)}`),
    line("kept by", supervision(daemon.supervision)),
    line("state", plain(daemon.state)),
    line("socket", plain(daemon.socket)),
    line("http", http(daemon.http)),
    line("log", logOf(daemon.log)),
    ...checked(daemon.log.checked, world).map((text) => line("", text)),
    ...(DiskRoom.isShort(daemon.log)
      ? [line("", paint(colour, "red", "the disk is almost full: free some space, or agentd stops"))]
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
    ...projects.flatMap((project) =>
      project.problems.length === 0
        ? []
        : [
            line("", paint(colour, "yellow", `its config cannot be used; ${inForce(project)}:`)),
            ...project.problems.flatMap(plainLines).map((problem) => line("", `  ${paint(colour, "yellow", problem)}`))
          ]
    )
  ]
}

export const status = declare({
  path: ["status"],
  description: "Show the daemon's status: whether it is ready, its supervisor, log, mail queue and agents",
  examples: [
    {
      command: "agentd status --json",
      description: "Print the status as JSON; exit code 3 means that the daemon is not running"
    }
  ],
  args: { tree: off("Show the supervision tree instead. Help: agentd status --tree --help") },
  rpc: () => read("Status", null),
  view
})
