/**
 * `agentd stop`: stops the daemon gracefully. If agents are working, the user is asked first, and a script must pass
 * --yes. In a project's folder, the user could mean only that project. On a terminal, the user then chooses between the
 * two; a script must name one.
 */
import { Effect, Option } from "effect"
import { Prompt } from "effect/cli"
import type { ProjectInfo } from "../../domain/Messages.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import * as Unit from "../../systemd/Unit.ts"
import { unitName } from "../../systemd/Unit.ts"
import { confirm } from "../parse/Confirm.ts"
import * as DaemonLife from "./DaemonLife.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { hint, Invocation, print } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"

/** Maximum number of agents that are listed when the user chooses between daemon and project. */
const MOST = 5

const WORKING = new Set(["Spawning", "Running", "Interrupting"])

/** Number of agents with an active run, in all projects. */
const working = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const { states } = yield* DaemonLife.status(paths.socket)
  return states.filter(({ state }) => WORKING.has(state)).reduce((sum, { agents }) => sum + agents, 0)
})

/** Returns if `yes` is set, if no agent is working, or if the user agrees. Otherwise fails. */
const ask = Effect.fnUntraced(function* (yes: boolean) {
  if (yes) return
  const count = yield* working
  if (count === 0) return
  const fact = `${count} ${count === 1 ? "agent works" : "agents work"}; their runs end, and the agents run again after the next start.`
  yield* confirm(yes, fact, "Stop the daemon?")
})

type Meant = "daemon" | "nothing" | "project"

/**
 * Asks the user to choose between stopping the daemon and stopping this folder's project, because the two are easily
 * confused.
 */
const choose = Effect.fnUntraced(function* (project: ProjectInfo, projects: number) {
  const { interactive } = yield* Invocation
  const { agents, name } = project
  if (!interactive) {
    return yield* new VerbFailed({
      message: `Do you mean the daemon with ${projects === 1 ? "its project" : `all ${projects} projects`}, or only the project ${name}? Nothing was stopped.`,
      remedy: `Stop the daemon: agentd stop --daemon. Stop only the project: agentd project stop ${name}`,
      exitCode: ExitCode.usage
    })
  }
  const count = yield* working
  const works = count === 0 ? "no agent works" : count === 1 ? "1 agent works" : `${count} agents work`
  const names = agents.length === 0 ? "no agents" : agents.slice(0, MOST).join(", ")
  return yield* Prompt.run(
    Prompt.Select<Meant>({
      message: "What do you want to stop?",
      choices: [
        {
          value: "project",
          title: `only the project ${name} with its agents (${names}), until you run: agentd project start ${name}`
        },
        {
          value: "daemon",
          title: `the daemon, with ${projects === 1 ? "its project" : `all ${projects} projects`}; ${works}`
        },
        { value: "nothing", title: "nothing" }
      ]
    })
  )
})

/** The project of this folder if the daemon knows it, and the number of all projects. */
const here = Effect.gen(function* () {
  const { caller, paths } = yield* Invocation
  const projects = yield* call(paths.socket, (client) => client.Projects())
  return { project: projects.find(({ config }) => config === caller.config), count: projects.length }
})

const stopProject = Effect.fnUntraced(function* (conversation: string) {
  const { caller, paths } = yield* Invocation
  const done = yield* call(paths.socket, (client) => client.StopProject({ name: conversation, caller }))
  yield* print(done, () => [plain(done.message)])
})

/** If the daemon has just ended unexpectedly, prevents systemd from starting it again. True if systemd was about to start it. */
const stopReturn = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const unit = unitName(paths.state, paths.defaultState)
  const status = yield* Unit.status(unit)
  if (Option.isNone(status) || status.value.state !== "activating") return false
  yield* Unit.stop(unit)
  yield* print({ unit }, () => [`The daemon had already ended unexpectedly. systemd will not start ${unit} again.`])
  return true
})

const stopDaemon = Effect.gen(function* () {
  const stopped = yield* DaemonLife.stop("agentd stop")
  const told = yield* hint(`The daemon has stopped (pid ${stopped.pid}). To run its agents again: agentd start`)
  const { returnsBy } = stopped
  yield* print({ ...stopped, returnsBy: returnsBy ?? null }, () => [
    told,
    ...(returnsBy === undefined
      ? []
      : [
          `systemd still listens on the socket, so the next command starts the daemon again. To keep it stopped: sudo systemctl stop ${returnsBy}`
        ])
  ])
})

export const run = Effect.fnUntraced(function* ({ daemon, yes }: { readonly daemon: boolean; readonly yes: boolean }) {
  const { paths } = yield* Invocation
  const isLive = (yield* probe(paths.socket)) === "live"
  if (!isLive && (yield* stopReturn)) return
  // older scripts use --yes alone to stop the daemon, so do not look up the project in this case
  const { count, project } = isLive && !daemon && !yes ? yield* here : { count: 0, project: undefined }
  if (project === undefined) {
    yield* ask(yes)
    return yield* stopDaemon
  }
  const meant = yield* choose(project, count)
  if (meant === "project") return yield* stopProject(project.conversation)
  if (meant === "daemon") return yield* stopDaemon
  return yield* new VerbFailed({
    message: "Nothing was stopped.",
    remedy: `Stop the daemon: agentd stop --daemon. Stop only the project: agentd project stop ${project.name}`,
    exitCode: ExitCode.failed
  })
})
