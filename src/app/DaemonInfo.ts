/** DaemonInfo: the daemon's status, its own checks, and its requested shutdown. */
import { zoneOf } from "../cli/render/OwnZone.ts"
import { GONE } from "../config/FileTrouble.ts"
import { Config, Deferred, Effect, FileSystem, Option } from "effect"
import { Agents } from "../projects/service/Agents.ts"
import { Channels } from "../channels/Channels.ts"
import { AlertContext } from "../alerts/AlertContext.ts"
import * as Outbox from "../alerts/Outbox.ts"
import * as Alerter from "../alerts/Alerter.ts"
import { LiveOutbox } from "../alerts/LiveOutbox.ts"
import { RunLimits } from "../runs/process/RunLimits.ts"
import { accountsOf } from "../board/AccountMessages.ts"
import { DaemonControl } from "../api/rpc/DaemonControl.ts"
import type { Check, DaemonStatus } from "../board/DaemonMessages.ts"
import * as ReachReport from "../board/ReachReport.ts"
import * as MailCheck from "../alerts/MailCheck.ts"
import * as Readiness from "../board/Readiness.ts"
import { treeOf, type TreeRow } from "../board/TreeMessages.ts"
import type { Supervisor } from "../core/supervision/Supervisor.ts"
import { counted } from "../domain/ErrorLimit.ts"
import { refuse, refusedBy } from "../domain/Messages.ts"
import { ProviderStatus } from "../domain/ProviderStatus.ts"
import * as Keeper from "../runs/keeper/Keeper.ts"
import { Redact } from "../core/event-log/Redact.ts"
import { kinds } from "./EventKinds.ts"
import * as ListenerStatus from "../api/http/ListenerStatus.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import { unitIn } from "../systemd/CurrentUnit.ts"
import * as Backoff from "../core/supervision/Backoff.ts"
import * as InstalledProgram from "./InstalledProgram.ts"
import * as LogSize from "../board/LogSize.ts"
import * as NotifyControl from "../alerts/NotifyControl.ts"
import * as SentAlerts from "../alerts/SentAlerts.ts"

/** A request to end the daemon. `keep`: runs continue for the next daemon. */
export interface Asked {
  readonly reason: string
  readonly keep: boolean
}

export interface Facts {
  readonly pid: number
  readonly version: string
  readonly state: string
  readonly socket: string
  readonly userConfig: string
  /** The problem with the user's own config, if the config cannot be used. */
  readonly ownConfig: () => Pick<DaemonStatus, "ownConfig">
  readonly command: ReadonlyArray<string>
  /** Start time of the daemon, ms since the epoch. */
  readonly startedAt: number
  /** The environment variables that runs inherit. */
  readonly environment: { readonly [name: string]: string | undefined }
  /** The root of the supervision tree; undefined until it exists. */
  readonly root: () => Pick<Supervisor, "inspect"> | undefined
  /** Completed with the reason when the daemon is asked to end. */
  readonly asked: Deferred.Deferred<Asked>
  /** Completed when the project for which the daemon is started is registered in the log, or is refused. */
  readonly taken: Deferred.Deferred<void>
}

/** How the daemon was started. systemd gives each service an invocation id, and a background daemon has no terminal. */
const supervision = Effect.gen(function* () {
  const invocation = yield* Config.option(Config.String("INVOCATION_ID"))
  const unit = yield* ownUnit
  if (Option.isSome(invocation) && unit !== null) {
    return { by: "systemd", unit, restsOn: "its control group" } as const
  }
  return process.stdin.isTTY
    ? ({ by: "foreground", unit: null, restsOn: "its standard input is a terminal" } as const)
    : ({ by: "detached", unit: null, restsOn: "its standard input is no terminal" } as const)
})

/** Name of the daemon's systemd unit, such as `…/agentd.service` */
const ownUnit = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const groups = yield* Effect.orElseSucceed(fs.readFileString("/proc/self/cgroup"), () => "")
  return unitIn(groups)
})

const projectChecks = Effect.map(
  Effect.flatMap(Agents, (agents) => agents.projects),
  (projects): ReadonlyArray<Check> =>
    projects.map(({ agents, config, name, problems }) =>
      problems.length === 0
        ? {
            name: `project ${name}`,
            level: "ok",
            detail: `${config}: ${counted(agents.length, "agent")}`,
            remedy: null
          }
        : {
            name: `project ${name}`,
            level: "fail",
            detail: problems.join("\n"),
            remedy: problems.some((problem) => problem.endsWith(GONE))
              ? `Restore the folder, or end the project: agentd project remove ${name}`
              : `Fix ${config}; it is read again when it changes.`
          }
    )
)

const configs = Effect.gen(function* () {
  const agents = yield* Agents
  const found = yield* Effect.forEach(yield* agents.projects, ({ conversation }) => agents.configOf(conversation))
  return found.filter((project) => project !== undefined)
})

const accounts = Effect.gen(function* () {
  const { accounts } = yield* ProviderStatus
  return accountsOf(accounts(), yield* configs)
})

/** Checks that the daemon can find the programs and keys of all agents. */
const readiness = Effect.fnUntraced(function* (environment: Facts["environment"]) {
  const lists = yield* Effect.forEach(yield* configs, ({ agents, root }) =>
    Readiness.checks(agents, { root, environment, whose: "the daemon's" })
  )
  // two projects can use the same program or key: report each problem once
  return [...new Map(lists.flat().map((check) => [`${check.name} ${check.detail}`, check])).values()]
})

const agentChecks = Effect.map(
  Effect.flatMap(Agents, (agents) => agents.all),
  (agents): ReadonlyArray<Check> =>
    agents
      .filter(({ state, totalErrors }) => state === "Stopped" && totalErrors > 0)
      .map(({ agent, detail, project }) => ({
        name: `agent ${project}/${agent}`,
        level: "warn",
        detail,
        remedy: `See why: agentd why ${project}/${agent}. Start it again: agentd start ${project}/${agent}`
      }))
)

const outboxOf = <E, R>(letters: LiveOutbox["Service"], mails: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
  Effect.gen(function* () {
    const seen = yield* letters.seen
    const { batches, failsSince, givenUp, lastError, lastSentAt, restsOn } = seen ?? Outbox.initial
    const isMail = ({ channel }: Outbox.Batch): boolean => channel === undefined
    return {
      ...(seen === undefined ? { unread: true } : {}),
      configured: (yield* mails).length > 0,
      waiting: batches.filter(isMail).length,
      failed: givenUp.filter(isMail).length,
      lastSentAt,
      lastError,
      ...(failsSince === undefined ? {} : { failsSince }),
      restsOn
    }
  })

const keeping = Effect.map(Keeper.Keeper, ({ trouble }): Pick<DaemonStatus, "keeper"> => {
  const keeper = trouble()
  return keeper === undefined ? {} : { keeper }
})

/** Problems that concern no single agent and no single project. */
const troubles = ({ ownConfig }: Facts) => Effect.map(keeping, (found) => ({ ...ownConfig(), ...found }))

const programCheck = (isReplaced: boolean): ReadonlyArray<Check> =>
  isReplaced
    ? [
        {
          name: "program",
          level: "warn",
          detail: "the daemon runs an older agentd than the one that is installed",
          remedy: "Restart the daemon; turns of Claude Code and of commands keep running: agentd restart"
        }
      ]
    : []

const keeperCheck = ({ keeper }: Pick<DaemonStatus, "keeper">): ReadonlyArray<Check> => {
  if (keeper === undefined) return []
  const remedy =
    "agentd keeps trying to start another one. If that does not help, restart the daemon; runs continue: agentd restart"
  const detail = `the keeper of runs cannot be reached, and no run can start: ${keeper.message}`
  return [{ name: "keeper", level: "fail", detail, remedy }]
}

const limitsCheck = Effect.map(RunLimits, ({ held, how }): ReadonlyArray<Check> => [
  held
    ? { name: "limits", level: "ok", detail: how, remedy: null }
    : { name: "limits", level: "warn", detail: how, remedy: "Limit the daemon as a whole, or run it on Linux." }
])

const fleetChecks = (environment: Facts["environment"]) =>
  Effect.map(Effect.all([projectChecks, readiness(environment), limitsCheck, agentChecks]), (lists) => lists.flat())

const channelsConfigured = Effect.gen(function* () {
  const agents = yield* Agents
  const channels = yield* Channels
  const sound = (yield* agents.projects).filter(({ problems }) => problems.length === 0)
  const configured = yield* Effect.forEach(sound, ({ conversation }) => channels.isConfigured(conversation))
  return configured.every(Boolean)
})

/** The access of each agent (files, network, secrets), reported when all agents are known. */
const reach = Effect.fnUntraced(function* (facts: Facts) {
  yield* Deferred.await(facts.taken)
  // an unreadable log ends the daemon, so its error can be ignored here
  yield* Effect.ignore((yield* Agents).recovered)
  return yield* ReachReport.of(yield* configs, facts)
})

const unready = Effect.fnUntraced(function* ({ taken }: Facts) {
  const agents = yield* Agents
  const parts: ReadonlyArray<readonly [name: string, isReady: boolean]> = [
    ["project", yield* Deferred.isDone(taken)],
    ["agents", yield* agents.ready],
    ["channels", yield* channelsConfigured],
    ["mail", (yield* (yield* LiveOutbox).seen) !== undefined]
  ]
  return parts.filter(([, isReady]) => !isReady).map(([name]) => name)
})

const partsOf = (root: ReturnType<Facts["root"]>, redact: Redact["Service"]): ReadonlyArray<TreeRow> =>
  (root === undefined ? [] : treeOf("agentd", root.inspect())).map((row) =>
    row.crash === null ? row : { ...row, crash: { ...row.crash, message: redact.text(row.crash.message) } }
  )

const nobodyIsMailed = ({ userConfig }: Facts) =>
  refuse(
    "conflict",
    "Nobody is mailed: no mail section is configured.",
    `Add "mail" to a project's agentd.jsonc, or to ${userConfig}; see \`agentd schema\`.`
  )

/** The address of the web page. Requests that the daemon listens on the port, and waits for that. */
const addressOf = ({ ask, report }: ListenerStatus.ListenerStatus["Service"]) =>
  Effect.gen(function* () {
    yield* ask
    const { listening, port, problem } = yield* report.pipe(
      Effect.repeat({
        until: ({ listening, problem }) => listening || problem !== null,
        schedule: Backoff.waits(LOOK_AT_PORT)
      }),
      Effect.timeoutOrElse({ duration: PORT_WAIT, orElse: () => report })
    )
    if (listening) return `http://127.0.0.1:${port}`
    return yield* refuse(
      "unavailable",
      `No page can be opened: ${problem?.message ?? "the daemon does not listen on its port yet"}.`,
      problem?.remedy ?? "Try again in a moment."
    )
  })

const pagesAt = (listening: ListenerStatus.ListenerStatus["Service"]) => ({
  address: addressOf(listening),
  pagePort: Effect.mapError(listening.openPage, ({ message, remedy }) =>
    refuse("unavailable", `No page can be opened: ${message}.`, remedy)
  )
})

/** Interval for checking whether the daemon listens on its port, and the maximum wait. */
const LOOK_AT_PORT = Backoff.constant("20 millis")
const PORT_WAIT = "5 seconds"

/** All mail sections of configs in force, without duplicates. */
const sections = Effect.gen(function* () {
  const agents = yield* Agents
  const { mailFor } = yield* AlertContext
  const projects = yield* agents.projects
  // no project has the stream "": for this stream the user's own mail section is selected
  const streams = projects.length === 0 ? [""] : projects.map(({ conversation }) => conversation)
  const mails = (yield* Effect.forEach(streams, mailFor)).filter((mail) => mail !== undefined)
  return [...new Map(mails.map((mail) => [JSON.stringify(mail), mail])).values()]
})

export const make = Effect.fnUntraced(function* (facts: Facts, zone = zoneOf(facts.environment["TZ"])) {
  const isReplaced = InstalledProgram.noted(facts.command[1] ?? "")
  const log = yield* EventLog
  const logSize = yield* LogSize.make(facts.state)
  const letters = yield* LiveOutbox
  const redact = yield* Redact
  const weather = yield* ProviderStatus
  const listening = yield* ListenerStatus.ListenerStatus
  const context = yield* Effect.context<
    AlertContext | Channels | FileSystem.FileSystem | Agents | LiveOutbox | Redact
  >()
  const by = yield* Effect.orDie(supervision)
  const mails = Effect.provideContext(sections, context)
  const alertTest = Effect.gen(function* () {
    const sections = yield* mails
    if (sections.length === 0) return yield* nobodyIsMailed(facts)
    const answers = yield* Effect.forEach(sections, (mail) =>
      Alerter.sendTest(mail).pipe(
        Effect.map(({ response, to }) => `${mail.smtp.host} accepted it for ${to.join(", ")}: ${response}`),
        Effect.mapError((error) => refusedBy(error))
      )
    )
    return { message: answers.join("\n") }
  }).pipe(Effect.provideContext(context))
  const outbox = Effect.provideContext(outboxOf(letters, mails), context)
  const status: Effect.Effect<DaemonStatus> = Effect.gen(function* () {
    const waiting = yield* unready(facts)
    const isReady = waiting.every((part) => part === "mail")
    return {
      pid: facts.pid,
      version: facts.version,
      ...(isReplaced() ? { replaced: true, zone } : { zone }),
      ...(yield* troubles(facts)),
      startedAt: facts.startedAt,
      state: facts.state,
      socket: facts.socket,
      phase: (yield* Deferred.isDone(facts.asked)) ? "stopping" : isReady ? "ready" : "recovering",
      reading: { ...(yield* log.reading), waiting },
      supervision: by,
      log: yield* logSize,
      outbox: yield* outbox,
      http: yield* listening.report
    } satisfies DaemonStatus
  }).pipe(Effect.provideContext(context))
  return DaemonControl.of({
    status,
    shutdown: (reason, who, keep) =>
      Effect.asVoid(Deferred.succeed(facts.asked, { reason: `${reason} (${who})`, keep })),
    alertTest,
    notifyList: Effect.provideContext(NotifyControl.rows, context),
    notifyTest: (name) => Effect.provideContext(NotifyControl.test(facts.userConfig)(name), context),
    alerts: (options) => Effect.provideContext(SentAlerts.of(log, options), context),
    checks: Effect.all([
      fleetChecks(facts.environment),
      Effect.flatMap(mails, MailCheck.checks),
      NotifyControl.checks,
      Effect.map(listening.report, (report) => [ListenerStatus.check(report)]),
      Effect.map(keeping, (found) => [...programCheck(isReplaced()), ...keeperCheck(found)])
    ]).pipe(
      Effect.map((lists) => lists.flat()),
      Effect.provideContext(context)
    ),
    reach: Effect.provideContext(reach(facts), context),
    tree: Effect.sync(() => partsOf(facts.root(), redact)),
    outages: Effect.sync(() => weather.lasting()),
    accounts: Effect.provideContext(accounts, context),
    ...pagesAt(listening),
    kinds: kinds.names
  })
})
