/**
 * `agentd project rename OLD NEW`: changes the name of a project in its config file.
 *
 * Guarantees: the project keeps its conversation and its log. Nothing else in the file changes, and the daemon applies
 * exactly the new text. If the daemon rejects it, the old text is restored.
 */
import { Effect } from "effect"
import * as ConfigTrust from "../../projects/ConfigTrust.ts"
import { distinguished } from "../../config/ProjectName.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { checkName, rename, replace } from "./ProjectFile.ts"
import { find } from "./ProjectLife.ts"
import * as Trust from "./Trust.ts"

export interface Input {
  readonly from: string
  readonly to: string
}

const failed = (message: string, remedy: string, exitCode: number = ExitCode.failed) =>
  new VerbFailed({ message, remedy, exitCode })

export const run = Effect.fnUntraced(function* ({ from, to }: Input) {
  if (yield* Trust.isRun) {
    return yield* failed(
      "This command runs inside an agent (AGENTD_RUN is set), which may not rename a project.",
      `Run this in your own terminal, outside of the agent: agentd project rename ${from} ${to}`
    )
  }
  yield* checkName(to, (name) => `agentd project rename ${from} ${name}`)
  const { found } = yield* find(from)
  const { config, conversation, project } = found
  if (project === to) return yield* print(found, () => [`The project is already called ${to}.`])
  const change = yield* Trust.pending(conversation)
  if (change.waits || change.hash === null) {
    return yield* failed(
      `${config} has changes that are not in force, so nothing was renamed.`,
      `Review the changes first: agentd trust ${project}`
    )
  }
  const { paths } = yield* Invocation
  const projects = yield* call(paths.socket, (client) => client.Projects())
  const other = projects.find(({ name }) => name === to)
  if (other !== undefined) {
    const free = distinguished(config, to, (name) => projects.some((one) => one.name === name))
    return yield* failed(
      `Another project is already called ${to}: ${other.config}. Nothing was renamed.`,
      `Choose another name: agentd project rename ${project} ${free}`
    )
  }
  const { files } = (yield* ConfigTrust.look(config)).config
  const text = yield* rename(config, to)
  const now = yield* Effect.onError(Trust.agree(config, ConfigTrust.hashOf(config, text.now, files)), () =>
    Effect.ignore(replace(config, text.before))
  )
  yield* print(now, () => [
    `${project} is now called ${now.name}. Its agents continue, and it keeps its history: ${conversation}`
  ])
})
