/**
 * ProjectFile: writes the name of a project into its `agentd.jsonc`.
 *
 * Guarantees: nothing else in the file changes. The file is replaced as a whole, or stays unchanged.
 */
import { Effect, FileSystem, type PlatformError } from "effect"
import { applyEdits, modify } from "jsonc-parser"
import { remedyOf, troubleOf } from "../../config/FileTrouble.ts"
import { slug } from "../../config/ProjectName.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"

/** The config's text with the new name. If the field `name` is missing, it is added as the first field. */
export const renamed = (text: string, name: string): string =>
  applyEdits(
    text,
    modify(text, ["name"], name, {
      formattingOptions: { insertSpaces: true, tabSize: 2 },
      getInsertionIndex: () => 0
    })
  )

/** Writes a new file next to the old one, then replaces the old file by a rename. */
const written = Effect.fnUntraced(function* (path: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  const real = yield* Effect.orElseSucceed(fs.realPath(path), () => path)
  const beside = `${real}.agentd-${process.pid}`
  const { mode } = yield* fs.stat(real)
  yield* fs.writeFileString(beside, text, { mode: mode & 0o777 })
  yield* fs.rename(beside, real)
})

const io = (path: string) => (error: PlatformError.PlatformError) =>
  new VerbFailed({
    message: `${path} cannot be changed: ${troubleOf(error)}`,
    remedy: remedyOf(error, "Check that you own the file."),
    exitCode: ExitCode.failed
  })

export const replace = (path: string, text: string) => Effect.mapError(written(path, text), io(path))

/** Fails if the name is invalid. `command`: makes the command line with a valid name, for the remedy. */
export const checkName = (name: string, command: (name: string) => string) =>
  slug(name) === name
    ? Effect.void
    : Effect.fail(
        new VerbFailed({
          message: `"${name}" is not a valid project name: use at most 40 lower-case letters, digits, "-", "_" and ".".`,
          remedy: `Try: ${command(slug(name))}`,
          exitCode: ExitCode.usage
        })
      )

/** Writes a new name into the file, and returns the file's text before and after. */
export const rename = Effect.fnUntraced(function* (path: string, name: string) {
  const fs = yield* FileSystem.FileSystem
  const before = yield* Effect.mapError(fs.readFileString(path), io(path))
  const now = renamed(before, name)
  if (now !== before) yield* replace(path, now)
  return { before, now }
})
