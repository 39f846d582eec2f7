/**
 * PluginFile: installs, removes and checks a plugin file of agentd in the settings folder of a coding CLI.
 *
 * Guarantees: those of SettingsFile, for a file that is agentd's alone. A file of this name that is not agentd's is not
 * changed.
 */
import { Effect, FileSystem } from "effect"
import * as SessionPlugin from "../../api/http/SessionPlugin.ts"
import { diffOf } from "../../config/ConfigChange.ts"
import * as SettingsFile from "./SettingsFile.ts"

/** Whether a file of a CLI is a plugin, and not settings. */
export const isName = (path: string): boolean => path.endsWith(".js")

/** The file's text and the path after links have been resolved; the text is undefined if there is no file. */
export const read = Effect.fnUntraced(function* (path: string) {
  const found = yield* SettingsFile.readText(path)
  if (found.text === undefined || SessionPlugin.isOurs(found.text)) return found
  return yield* new SettingsFile.SettingsRefused({
    message: `${path} is not a plugin of agentd, so it was not changed.`,
    remedy: "Give the file another name, then run the command again."
  })
})

/** Writes the file. `agrees` gets the changed lines before that, and fails if it must not be written. */
export const install = <E, R>(
  path: string,
  plugin: string,
  agrees: (diff: ReadonlyArray<string>) => Effect.Effect<void, E, R>
) =>
  SettingsFile.change(path, read(path), (found) =>
    Effect.gen(function* () {
      if (found.text === plugin) return { changed: false, backup: null }
      yield* agrees(diffOf(found.text ?? "", plugin).filter((line) => /^[-+]/.test(line)))
      yield* Effect.catchTag(SettingsFile.replace(found, plugin, found.mode), "PlatformError", (error) =>
        Effect.fail(SettingsFile.io(path)(error))
      )
      return { changed: true, backup: null }
    })
  )

/** Removes the file. */
export const uninstall = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const changed = (yield* read(path)).text !== undefined
  if (changed) yield* Effect.mapError(fs.remove(path), SettingsFile.io(path))
  return { changed, kept: null }
})
