/**
 * `agentd project rename OLD NEW`: changes the name of a project in its config file.
 *
 * Guarantees: the project keeps its conversation and its log; nothing else in the file is changed, and exactly this
 * text is put into force; if the daemon refuses it, the old text is restored.
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
      "This is a run of an agent (AGENTD_RUN is set): only a person renames a project.",
      `A person runs, in a terminal of their own: agentd project rename ${from} ${to}`
    )
  }
  yield* checkName(to, (name) => `agentd project rename ${from} ${name}`)
  const { found } = yield* find(from)
  const { config, conversation, project } = found
  if (project === to) return yield* print(found, () => [`The project is called ${to} already.`])
  const change = yield* Trust.pending(conversation)
  if (change.waits || change.hash === null) {
    return yield* failed(
      `${config} is not the text that is in force: nothing was renamed.`,
      `Look at it first: agentd trust ${project}`
    )
  }
  const { paths } = yield* Invocation
  const projects = yield* call(paths.socket, (client) => client.Projects())
  const other = projects.find(({ name }) => name === to)
  if (other !== undefined) {
    const free = distinguished(config, to, (name) => projects.some((one) => one.name === name))
    return yield* failed(
      `A project is called ${to} already: ${other.config}. Nothing was renamed.`,
      `Choose another name: agentd project rename ${project} ${free}`
    )
  }
  const text = yield* rename(config, to)
  const now = yield* Effect.onError(Trust.agree(config, ConfigTrust.hashOf(config, text.now)), () =>
    Effect.ignore(replace(config, text.before))
  )
  yield* print(now, () => [
    `${project} is called ${now.name} now. Its agents go on, its history stays: ${conversation}`
  ])
})
