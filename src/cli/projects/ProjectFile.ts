/**
 * ProjectFile: the name of a project, written into its `agentd.jsonc`.
 *
 * Guarantees: nothing else of the file is changed; it is replaced whole, or stays as it was.
 */
import { Effect, FileSystem, type PlatformError } from "effect"
import { applyEdits, modify } from "jsonc-parser"
import { remedyOf, troubleOf } from "../../config/FileTrouble.ts"
import { slug } from "../../config/ProjectName.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"

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
    remedy: remedyOf(error, "See that the file is yours."),
    exitCode: ExitCode.failed
  })

export const replace = (path: string, text: string) => Effect.mapError(written(path, text), io(path))

/** Refuses what is no name; `command`: how it would be typed with one that is. */
export const checkName = (name: string, command: (name: string) => string) =>
  slug(name) === name
    ? Effect.void
    : Effect.fail(
        new VerbFailed({
          message: `"${name}" is no name of a project: lower-case letters, digits, "-", "_" and "." are, 40 at most.`,
          remedy: `Try: ${command(slug(name))}`,
          exitCode: ExitCode.usage
        })
      )

/** Writes the name into the file; answers with its texts before and now. */
export const rename = Effect.fnUntraced(function* (path: string, name: string) {
  const fs = yield* FileSystem.FileSystem
  const before = yield* Effect.mapError(fs.readFileString(path), io(path))
  const now = renamed(before, name)
  if (now !== before) yield* replace(path, now)
  return { before, now }
})
