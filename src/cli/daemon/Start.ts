/** `agentd start`: starts the daemon in the background, and then the project of this folder. */
import { Clock, Effect } from "effect"
import { Prompt } from "effect/cli"
import { call } from "../../api/rpc/ControlClient.ts"
import type { ProjectInfo } from "../../domain/Messages.ts"
import { load } from "../../config/ConfigFile.ts"
import { distinguished } from "../../config/ProjectName.ts"
import * as DoctorChecks from "../setup/DoctorChecks.ts"
import * as ConfigRows from "../projects/ConfigRows.ts"
import * as DaemonLife from "./DaemonLife.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { hint, Invocation, print, printLines } from "../parse/Invocation.ts"
import { noProject, unregistered } from "../parse/MisnamedConfig.ts"
import { plainLines } from "../render/Output.ts"
import { checkName, rename } from "../projects/ProjectFile.ts"
import * as Trust from "../projects/Trust.ts"

const RUN = "This command runs inside an agent (AGENTD_RUN is set), which may not name a project."

const projectLines = (project: ProjectInfo): ReadonlyArray<string> => [
  `Project ${project.name}: ${project.agents.length === 0 ? "no agents" : project.agents.join(", ")}. See them: agentd ps`,
  ...(project.stopped === undefined
    ? []
    : [`The project was stopped by ${project.stopped.by}. Start its agents: agentd project start ${project.name}`]),
  ...[...(project.unmetered ?? []), ...(project.unseen ?? [])].flatMap(plainLines),
  ...(project.problems.length === 0
    ? []
    : [
        "The project's config cannot be used; the last usable version stays in force:",
        ...project.problems.flatMap(plainLines).map((line) => `  ${line}`)
      ])
]

/**
 * Registers the project. If the daemon rejects the config file, this process loads the file itself to get the exact
 * error and exit code.
 */
const register = Effect.fnUntraced(function* (config: string) {
  const { caller, paths } = yield* Invocation
  return yield* call(paths.socket, (client) => client.Register({ config, trust: null, caller })).pipe(
    Effect.catchTag("CommandRefused", (refused) =>
      Effect.flatMap(Effect.result(load(config)), (read) =>
        Effect.fail(read._tag === "Failure" ? read.failure : refused)
      )
    )
  )
})

/** Fails if an agent's run would register a new project, because its config would apply without a user's approval. */
const checkBegun = Effect.fnUntraced(function* (config: string) {
  const { paths } = yield* Invocation
  if (!(yield* Trust.isRun)) return
  const known = yield* call(paths.socket, (client) => client.Projects())
  if (known.some((project) => project.config === config)) return
  return yield* new VerbFailed({
    message: `This command runs inside an agent (AGENTD_RUN is set), so it does not start a project from ${config}.`,
    remedy: "Run this in your own terminal, outside of the agent: agentd start",
    exitCode: ExitCode.failed
  })
})

/**
 * Starts the project of this folder. If its config has changed, the change is shown, and is then applied. A dangerous
 * change is applied only if a user agrees on a terminal. Without a terminal, or if an agent's run is the caller, the
 * change waits for approval.
 */
const begin = Effect.fnUntraced(function* (config: string) {
  const { colour, interactive, json } = yield* Invocation
  yield* checkBegun(config)
  const project = yield* register(config)
  const { waits } = project
  if (waits === undefined || (yield* Trust.isRun)) return project
  const change = yield* Trust.pending(project.conversation)
  if (change.hash === null || !change.waits) return project
  if (!json) yield* printLines(ConfigRows.change(change, colour))
  if (change.consequences.some(({ dangerous }) => dangerous)) {
    if (!interactive || json) return project
    if (!(yield* Prompt.run(Prompt.Confirm({ message: "Put this change into force?", initial: false })))) return project
  }
  return yield* Trust.agree(config, change.hash)
})

/**
 * True if the project's last conversation is closed. The project's config then has no effect until a new conversation
 * begins.
 */
const isOver = Effect.fnUntraced(function* ({ conversation, problems }: ProjectInfo) {
  if (problems.length === 0) return false
  const { paths } = yield* Invocation
  const all = yield* call(paths.socket, (client) => client.Conversations())
  return all.some((one) => one.conversation === conversation && (one.state === "closed" || one.state === "archived"))
})

/** A note if another project has the same name, which older versions of agentd permitted; otherwise empty. */
const twinOf = Effect.fnUntraced(function* ({ config, conversation, name }: ProjectInfo) {
  const { paths } = yield* Invocation
  const projects = yield* call(paths.socket, (client) => client.Projects())
  const twin = projects.find((one) => one.name === name && one.conversation !== conversation)
  if (twin === undefined) return []
  const free = distinguished(config, name, (name) => projects.some((one) => one.name === name))
  return [
    `Another project is also called ${name}: ${twin.config}. In commands, this project is ${conversation}. Give it its own name: agentd start --name ${free}`
  ]
})

/** Programs, keys and logins that the daemon finds missing. Empty if it does not answer soon. */
const missing = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const found = yield* call(paths.socket, (client) => client.Doctor()).pipe(
    Effect.timeoutOrElse({ duration: "3 seconds", orElse: () => Effect.succeed([]) }),
    Effect.orElseSucceed(() => [])
  )
  return found.filter(({ level, name }) => level !== "ok" && /^(program|key|login) /.test(name))
})

/**
 * Starts the daemon and the project of this folder; also used by `agentd restart`. `since`: a daemon that has started
 * after this time (in ms since the epoch) counts as started by this command.
 */
export const startDaemon = Effect.fnUntraced(function* (verb: "started" | "restarted", since: number) {
  const { caller, paths } = yield* Invocation
  const { launched, status } = yield* DaemonLife.start(since)
  const { pid, version } = status.daemon
  const { config } = caller
  const project = config === null ? null : yield* begin(config)
  const over = project !== null && (yield* isOver(project))
  const warned = (yield* DoctorChecks.configs(config, paths.userConfig)).filter(({ name }) => name === "notify")
  const lines = [
    launched ? `The daemon is ${verb} (pid ${pid}).` : `The daemon is already running (pid ${pid}).`,
    ...DoctorChecks.reaped(pid).map(({ detail, remedy }) => `Warning: ${detail}. ${remedy}`),
    ...(status.daemon.zone?.doubt == null ? [] : [`${status.daemon.zone.doubt}.`]),
    ...(project === null ? [yield* unregistered] : over ? [] : [...projectLines(project), ...(yield* twinOf(project))]),
    ...warned.flatMap(({ detail }) => plainLines(`Warning: ${detail}`)),
    ...(project === null ? [] : yield* missing).flatMap(({ detail, name, remedy }) =>
      plainLines(`Warning: ${name}: ${detail}. ${remedy}`)
    )
  ]
  const { ownConfig } = status.daemon
  if (ownConfig !== undefined) {
    lines.push(
      `${ownConfig.path} cannot be used; the last usable version stays in force:`,
      ...plainLines(ownConfig.problem).map((line) => `  ${line}`)
    )
  }
  const told = yield* Effect.forEach(lines, hint)
  yield* print(
    { launched, pid, version, zone: status.daemon.zone?.name ?? null, socket: paths.socket, project },
    () => told
  )
  if (project !== null && project.waits !== undefined) {
    return yield* new VerbFailed({
      message: `${project.config} has changed, and the change waits for your approval. Until then the last usable version stays in force.`,
      remedy: `Review the change, and put it into force: agentd trust ${project.name}`,
      exitCode: ExitCode.config
    })
  }
  if (ownConfig !== undefined && (project === null || project.problems.length === 0)) {
    return yield* new VerbFailed({
      message: `${ownConfig.path} has problems.`,
      remedy: "Fix the file. agentd reads it again when it changes.",
      exitCode: ExitCode.config
    })
  }
  if (project === null || project.problems.length === 0) return
  if (over) {
    return yield* new VerbFailed({
      message: `The conversation ${project.conversation} of ${project.name} is closed, so none of its agents runs.`,
      remedy: "Start a new conversation: agentd project new",
      exitCode: ExitCode.failed
    })
  }
  return yield* new VerbFailed({
    message: `${project.config} has problems.`,
    remedy: "Fix the file. agentd reads it again when it changes.",
    exitCode: ExitCode.config
  })
})

/** Writes a new name into the config of this folder's project. Like any change of a config, it then needs approval. */
const called = Effect.fnUntraced(function* (name: string) {
  const { caller } = yield* Invocation
  const { config } = caller
  if (config === null) return yield* new VerbFailed({ ...(yield* noProject), exitCode: ExitCode.failed })
  if (yield* Trust.isRun) {
    return yield* new VerbFailed({
      message: RUN,
      remedy: "Run the command in your own terminal, outside of the agent.",
      exitCode: ExitCode.failed
    })
  }
  yield* checkName(name, (name) => `agentd start --name ${name}`)
  yield* rename(config, name)
})

/** The verb `start`. `name`: a new name for this folder's project; undefined: the name does not change. */
export const run = Effect.fnUntraced(function* (name: string | undefined) {
  if (name !== undefined) yield* called(name)
  yield* startDaemon("started", yield* Clock.currentTimeMillis)
})
