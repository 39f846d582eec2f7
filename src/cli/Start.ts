/**
 * `agentd start`: the daemon in the background, and the current project with it;
 * `agentd start AGENT`: a stopped agent, with fresh counters.
 */
import { Effect } from "effect"
import { call } from "../control/ControlClient.ts"
import type { ProjectInfo } from "../domain/Messages.ts"
import * as DaemonLife from "./DaemonLife.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

const startAgent = Effect.fnUntraced(function* (name: string) {
  const { caller, paths } = yield* Invocation
  const done = yield* call(paths.socket, (client) => client.Start({ name, caller }))
  yield* print(done, () => [plain(done.message)])
})

const projectLines = (project: ProjectInfo): ReadonlyArray<string> => [
  `Project ${project.name}: ${project.agents.length === 0 ? "no agents" : project.agents.join(", ")}. See them: agentd ps`,
  ...project.problems.map((problem) => `Its config has a problem: ${plain(problem)}`)
]

/** Also what `restart` ends with. */
export const startDaemon = Effect.fnUntraced(function* (verb: "started" | "restarted") {
  const { caller, paths } = yield* Invocation
  const { launched, status } = yield* DaemonLife.start
  const { config } = caller
  const project = config === null ? null : yield* call(paths.socket, (client) => client.Register({ config, caller }))
  const { pid, version } = status.daemon
  yield* print({ launched, pid, version, socket: paths.socket, project }, () => [
    launched ? `The daemon is ${verb} (pid ${pid}).` : `The daemon runs already (pid ${pid}).`,
    ...(project === null
      ? ["There is no agentd.jsonc here or above: no project was registered. Write a sample: agentd init"]
      : projectLines(project))
  ])
})

export const run = Effect.fnUntraced(function* (input: { readonly agent: string | undefined }) {
  if (input.agent === undefined) yield* startDaemon("started")
  else yield* startAgent(input.agent)
})
