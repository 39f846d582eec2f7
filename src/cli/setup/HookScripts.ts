/**
 * HookScripts: adds, finds and removes agentd's hooks in a folder in which each hook is an executable file of its own.
 *
 * Guarantees: a file that agentd has not written is not changed, nor one that another program writes meanwhile. A file of agentd's to which the user has added lines
 * keeps these lines when the hooks are removed.
 */
import { Effect, FileSystem, type PlatformError } from "effect"
import * as NodePath from "node:path"
import * as HookCommand from "../../api/http/HookCommand.ts"
import { remedyOf, troubleOf } from "../../config/FileTrouble.ts"
import type { SourcePlan } from "./HookSettings.ts"
import { SettingsRefused } from "./SettingsFile.ts"

const SHELL = "#!/bin/sh"
const PATIENCE_S = 1

const isOurs = (line: string): boolean => line.startsWith(`${HookCommand.MARK};`)

/** The lines of a script that agentd has not written. */
const othersIn = (text: string): ReadonlyArray<string> =>
  text.split("\n").filter((line) => line.trim() !== "" && line !== SHELL && !isOurs(line))

/** The text of each script, by its file name. */
const scriptsOf = ({ reporter, source }: SourcePlan): ReadonlyMap<string, string> => {
  const line = HookCommand.line(reporter, `/hooks/${source.id}`, PATIENCE_S)
  return new Map(Object.keys(source.hooks).map((event) => [`${event}${source.file.ending}`, `${SHELL}\n${line}\n`]))
}

const io = (folder: string) => (error: PlatformError.PlatformError) =>
  new SettingsRefused({
    message: `${folder} cannot be used: ${troubleOf(error)}`,
    remedy: remedyOf(error, "Check that you own the folder and its files.")
  })

/** The texts of the files in the folder, by file name. Only regular files. Empty if there is no such folder. */
const read = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const names = (yield* fs.exists(folder)) ? yield* fs.readDirectory(folder) : []
  const found = yield* Effect.forEach(names, (name) => {
    const path = NodePath.join(folder, name)
    const isFile = Effect.orElseSucceed(
      Effect.map(fs.stat(path), ({ type }) => type === "File"),
      () => false
    )
    return Effect.flatMap(isFile, (file) =>
      file ? Effect.map(fs.readFileString(path), (text) => [name, text] as const) : Effect.undefined
    )
  })
  return new Map(found.filter((one) => one !== undefined))
})

/** The texts of the files with agentd's hooks, by file name. */
export const ours = (folder: string) =>
  Effect.map(
    Effect.mapError(read(folder), io(folder)),
    (there) => new Map([...there].filter(([, text]) => text.split("\n").some(isOurs)))
  )

/** `isCurrent`: true if all hooks are there, as this agentd writes them. */
export const find = Effect.fnUntraced(function* (folder: string, plan: SourcePlan) {
  const there = yield* ours(folder)
  const isCurrent = [...scriptsOf(plan)].every(([name, text]) => there.get(name) === text)
  return { installed: there.size > 0, isCurrent }
})

/** Writes the scripts. `agrees` gets the lines that are added, and fails if they must not be. */
export const install = Effect.fnUntraced(function* <E, R>(
  folder: string,
  plan: SourcePlan,
  agrees: (diff: ReadonlyArray<string>) => Effect.Effect<void, E, R>
) {
  const fs = yield* FileSystem.FileSystem
  const there = yield* Effect.mapError(read(folder), io(folder))
  const wanted = [...scriptsOf(plan)].filter(([name, text]) => there.get(name) !== text)
  const foreign = wanted.find(([name]) => othersIn(there.get(name) ?? "").length > 0)
  if (foreign !== undefined) {
    return yield* new SettingsRefused({
      message: `${NodePath.join(folder, foreign[0])} has lines of yours, so agentd's hooks cannot be added. Nothing was changed.`,
      remedy: `Rename it to ${NodePath.parse(foreign[0]).name}, which ${plan.source.name} runs as well. Then run the command again.`
    })
  }
  if (wanted.length > 0) {
    yield* agrees(
      wanted.flatMap(([name, text]) => [
        `+ ${name}:`,
        ...text
          .trimEnd()
          .split("\n")
          .map((line) => `+   ${line}`)
      ])
    )
  }
  yield* Effect.gen(function* () {
    yield* fs.makeDirectory(folder, { recursive: true })
    const now = yield* read(folder)
    const changed = wanted.find(([name]) => now.get(name) !== there.get(name))
    if (changed !== undefined) {
      return yield* new SettingsRefused({
        message: `Another program has just written ${NodePath.join(folder, changed[0])}, so it was not changed.`,
        remedy: "Try again in a moment."
      })
    }
    for (const [name, text] of wanted) yield* HookCommand.writeScript(NodePath.join(folder, name), text)
  }).pipe(Effect.catchTag("PlatformError", (error) => Effect.fail(io(folder)(error))))
  return { changed: wanted.length > 0, backup: null }
})

/** Removes agentd's scripts. `kept`: says which files the user has changed; they keep the user's lines. */
export const uninstall = (folder: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const there = yield* ours(folder)
    const kept: Array<string> = []
    for (const [name, text] of there) {
      const path = NodePath.join(folder, name)
      if (othersIn(text).length === 0) yield* fs.remove(path)
      else {
        yield* HookCommand.writeScript(
          path,
          text
            .split("\n")
            .filter((line) => !isOurs(line))
            .join("\n")
        )
        kept.push(`${path} has lines of yours, so the file stays without agentd's line.`)
      }
    }
    return { changed: there.size > 0, kept }
  }).pipe(Effect.catchTag("PlatformError", (error) => Effect.fail(io(folder)(error))))
