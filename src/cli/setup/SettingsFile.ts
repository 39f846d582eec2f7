/**
 * SettingsFile: changes a settings file of Claude Code, which Claude Code and the user also change.
 *
 * Guarantees: a change is atomic: a new file is written, then renamed. A link is followed, so that it stays a link. If
 * another program writes to the file at the same time, the file is read again, so that no change is lost. A file that
 * cannot be parsed is not changed. Before agentd's first change, a copy of the file is made. When agentd's hooks are
 * removed and nothing else has changed, the file becomes identical to this copy. The file contains a token, so only its
 * owner can read it.
 */
import { Effect, FileSystem, PlatformError, Result, Schedule, Schema } from "effect"
import * as NodePath from "node:path"
import { isDeepStrictEqual } from "node:util"
import * as HookSettings from "./HookSettings.ts"
import { diffOf } from "../../config/ConfigChange.ts"
import { remedyOf, troubleOf } from "../../config/FileTrouble.ts"

export class SettingsRefused extends Schema.TaggedError<SettingsRefused>()("SettingsRefused", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** Error: another program has written the file after it was read. */
class Overtaken extends Schema.TaggedError<Overtaken>()("Overtaken", {}) {}

const BACKUP = ".before-agentd"
const OWNER_ONLY = 0o600

export interface Found {
  /** Path of the file, after links have been resolved. */
  readonly path: string
  /** Text of the file; undefined if the file does not exist. */
  readonly text: string | undefined
  readonly mode: number
  readonly document: HookSettings.Document
}

export const io = (path: string) => (error: PlatformError.PlatformError) =>
  new SettingsRefused({
    message: `${path} cannot be used: ${troubleOf(error)}`,
    remedy: remedyOf(error, "Check that you own the file and its folder.")
  })

const isPlatform = (error: unknown): error is PlatformError.PlatformError =>
  error instanceof PlatformError.PlatformError

const textOf = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.readFileString(path).pipe(
    Effect.catchIf(
      (error) => error.reason._tag === "NotFound",
      () => Effect.as(Effect.void, undefined)
    )
  )
})

/** Reads the file as text. */
export const readText = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const real = yield* Effect.orElseSucceed(fs.realPath(path), () => path)
  const text = yield* Effect.mapError(textOf(real), io(path))
  const mode = text === undefined ? OWNER_ONLY : (yield* Effect.mapError(fs.stat(real), io(path))).mode & 0o777
  return { path: real, text, mode }
})

const refused = (path: string) =>
  new SettingsRefused({
    message: `${path} is not a JSON object, so it was not changed.`,
    remedy: "Fix the file (without comments and trailing commas), then run the command again."
  })

export const read = Effect.fnUntraced(function* (path: string) {
  const found = yield* readText(path)
  const document = found.text === undefined ? HookSettings.NEW : HookSettings.read(found.text)
  if (document === undefined) return yield* refused(path)
  return { ...found, document } satisfies Found
})

/** The text of the file with new settings, in which the user's comments stay. */
const rewritten = ({ document, path, text = "" }: Found, settings: HookSettings.Document["settings"]) => {
  const next = HookSettings.rewrite(text, document, settings)
  return next === undefined
    ? Effect.fail(
        new SettingsRefused({
          message: `${path} has comments that would be lost, so it was not changed.`,
          remedy: "Remove the comments from the file, then run the command again."
        })
      )
    : Effect.succeed(next)
}

export const replace = Effect.fnUntraced(function* (found: Pick<Found, "path" | "text">, text: string, mode: number) {
  const fs = yield* FileSystem.FileSystem
  const beside = `${found.path}.agentd-${process.pid}`
  yield* fs.makeDirectory(NodePath.dirname(found.path), { recursive: true })
  yield* Effect.gen(function* () {
    yield* fs.writeFileString(beside, text, { mode })
    // set the mode again, because `mode` above applies only to a new file
    yield* fs.chmod(beside, mode)
    if ((yield* textOf(found.path)) !== found.text) return yield* new Overtaken()
    yield* fs.rename(beside, found.path)
  }).pipe(Effect.onError(() => Effect.ignore(fs.remove(beside))))
})

/** Reads, changes and writes the file. Tries again if another program has written it meanwhile. */
export const change = <F, A, E, R, E2, R2>(
  path: string,
  reading: Effect.Effect<F, E2, R2>,
  by: (found: F) => Effect.Effect<A, E, R>
) =>
  Effect.flatMap(reading, by).pipe(
    Effect.retry({ schedule: Schedule.recurs(5), while: (error) => error instanceof Overtaken }),
    Effect.mapError((error) =>
      error instanceof Overtaken
        ? new SettingsRefused({
            message: `Other programs change ${path} again and again, so it was not changed.`,
            remedy: "Try again in a moment."
          })
        : error
    )
  )

/**
 * Adds the hooks. `agrees` gets the changed lines of the file before it is written, and fails if it must not be. It is
 * called again if another program has written the file meanwhile, and not if nothing changes.
 */
export const install = Effect.fnUntraced(function* <E, R>(
  path: string,
  plan: HookSettings.Plan | HookSettings.SourcePlan,
  agrees: (diff: ReadonlyArray<string>) => Effect.Effect<void, E, R>
) {
  const fs = yield* FileSystem.FileSystem
  return yield* change(path, read(path), (found) =>
    Effect.gen(function* () {
      const { mode, text } = found
      if (found.document.isCommented && !("source" in plan && plan.source?.comments)) return yield* refused(path)
      const { settings } = found.document
      const result = HookSettings.add(settings, plan)
      if (Result.isFailure(result)) {
        const { field, found } = result.failure
        return yield* new SettingsRefused({
          message: `${path}: the field "${field}" is ${found}, so agentd's hooks cannot be added. The file was not changed.`,
          remedy: `Change the field to what the program expects, or remove it. Then run the command again.`
        })
      }
      const backup = `${found.path}${BACKUP}`
      const next = yield* rewritten(found, result.success)
      // only the hooks: other lines can contain a key of the user's
      const [before, after] = [settings, result.success].map(({ hooks = {} }) => JSON.stringify(hooks, null, 2))
      if (next !== text) yield* agrees(diffOf(before!, after!).filter((line) => /^[-+]/.test(line)))
      if (text !== undefined && HookSettings.find(settings).events.length === 0) {
        yield* fs.writeFileString(backup, text, { mode })
      }
      const closed = mode & 0o700
      const changed = next !== text || closed !== mode
      if (changed) yield* replace(found, next, closed)
      return { changed, backup: (yield* fs.exists(backup)) ? backup : null, settings: result.success }
    }).pipe(Effect.catchIf(isPlatform, (error) => Effect.fail(io(path)(error))))
  )
})

export const uninstall = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* change(path, read(path), (found) =>
    Effect.gen(function* () {
      const { settings } = found.document
      const backup = `${found.path}${BACKUP}`
      const before = yield* textOf(backup)
      const kept = before === undefined ? null : backup
      if (found.text === undefined || HookSettings.find(settings).events.length === 0) return { changed: false, kept }
      const left = HookSettings.remove(settings)
      const next = yield* rewritten(found, left)
      const isSame = found.document.isCommented
        ? next === before
        : before !== undefined && isDeepStrictEqual(HookSettings.read(before)?.settings, left)
      if (before !== undefined && isSame) {
        yield* replace(found, before, (yield* fs.stat(backup)).mode & 0o777)
        yield* fs.remove(backup)
        return { changed: true, kept: null }
      }
      // if there is no backup, the file did not exist before the installation, so remove it if it contains nothing else
      if (before === undefined && Object.keys(left).length === 0) yield* fs.remove(found.path)
      else yield* replace(found, next, found.mode)
      return { changed: true, kept }
    }).pipe(Effect.catchTag("PlatformError", (error) => Effect.fail(io(path)(error))))
  )
})
