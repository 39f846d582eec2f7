/**
 * `agentd project rename OLD NEW`: gives a project another name, in its file.
 *
 * Guarantees: its conversation, and all that the log has of it, stay its own; nothing else of the file is changed, and
 * exactly this text is put into force; where that is refused the file is as it was.
 */
import { Effect, FileSystem, type PlatformError } from "effect"
import { applyEdits, modify } from "jsonc-parser"
import * as ConfigTrust from "../agents/ConfigTrust.ts"
import { remedyOf, troubleOf } from "../config/FileTrouble.ts"
import { slug } from "../config/ProjectName.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { print } from "./Invocation.ts"
import { find } from "./ProjectLife.ts"
import * as Trust from "./Trust.ts"

export interface Input {
  readonly from: string
  readonly to: string
}

const failed = (message: string, remedy: string, exitCode: number = ExitCode.failed) =>
  new VerbFailed({ message, remedy, exitCode })

/** The text with that name, first of its fields where it had none. */
export const renamed = (text: string, name: string): string =>
  applyEdits(
    text,
    modify(text, ["name"], name, {
      formattingOptions: { insertSpaces: true, tabSize: 2 },
      getInsertionIndex: () => 0
    })
  )

/** Written beside, then put in its place. */
const replace = Effect.fnUntraced(function* (path: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  const real = yield* Effect.orElseSucceed(fs.realPath(path), () => path)
  const beside = `${real}.agentd-${process.pid}`
  const { mode } = yield* fs.stat(real)
  yield* fs.writeFileString(beside, text, { mode: mode & 0o777 })
  yield* fs.rename(beside, real)
})

export const run = Effect.fnUntraced(function* ({ from, to }: Input) {
  if (yield* Trust.isRun) {
    return yield* failed(
      "This is a run of an agent (AGENTD_RUN is set): only a person renames a project.",
      `A person runs, in a terminal of their own: agentd project rename ${from} ${to}`
    )
  }
  if (slug(to) !== to) {
    return yield* failed(
      `"${to}" is no name of a project: lower-case letters, digits, "-", "_" and "." are, 40 at most.`,
      `Try: agentd project rename ${from} ${slug(to)}`,
      ExitCode.usage
    )
  }
  const fs = yield* FileSystem.FileSystem
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
  const io = (error: PlatformError.PlatformError) =>
    failed(`${config} cannot be changed: ${troubleOf(error)}`, remedyOf(error, "See that the file is yours."))
  const before = yield* Effect.mapError(fs.readFileString(config), io)
  const text = renamed(before, to)
  yield* Effect.mapError(replace(config, text), io)
  const now = yield* Effect.onError(Trust.agree(config, ConfigTrust.hashOf(config, text)), () =>
    Effect.ignore(replace(config, before))
  )
  yield* print(now, () => [
    `${project} is called ${now.name} now. Its agents go on, its history stays: ${conversation}`
  ])
})
