/**
 * TrustedFiles: the files of a project, besides its config, that decide what agentd copies to work trees and which
 * scripts it runs there. They are trusted together with the config.
 *
 * Guarantees: Only regular files of the user's checkout are read, none through a symbolic link, and none that an agent
 * changed on its own branch.
 */
import { Effect, FileSystem, Option } from "effect"
import { join } from "node:path"
import { worktreeConfigOf } from "../config/AgentConfig.ts"
import type { Project } from "../config/ConfigFile.ts"
import * as TreeFiles from "../agents/workplace/TreeFiles.ts"
import * as TreeSetup from "../agents/workplace/TreeSetup.ts"

/** Maximum size of such a file, bytes. A larger one counts as missing. */
const MAX_FILE = 256 * 1024

/** Paths of the files that the config refers to, relative to the project's root. They need not exist. */
export const namesOf = ({ agents }: Project): ReadonlyArray<string> => {
  const trees = Object.values(agents).flatMap((agent) => worktreeConfigOf(agent) ?? [])
  if (trees.length === 0) return []
  const scripts = trees
    .flatMap(({ setup, teardown }) => [setup, teardown])
    .map((line) => TreeSetup.scriptIn(line ?? ""))
  return [
    ...new Set([TreeFiles.INCLUDE, ...scripts.filter((one) => one !== undefined && !one.startsWith(".."))])
  ] as ReadonlyArray<string>
}

const textOf = Effect.fnUntraced(function* (root: string, name: string) {
  const files = yield* FileSystem.FileSystem
  if ((yield* TreeFiles.linkOn(root, name.split("/"))) !== undefined) return undefined
  const info = yield* Effect.option(files.stat(join(root, name)))
  if (Option.isNone(info) || info.value.type !== "File" || Number(info.value.size) > MAX_FILE) return undefined
  return Option.getOrUndefined(yield* Effect.option(files.readFileString(join(root, name))))
})

/** Texts of the files, by path. */
export const read = Effect.fnUntraced(function* (project: Project) {
  const found: { [name: string]: string } = {}
  for (const name of namesOf(project)) {
    const text = yield* textOf(project.root, name)
    if (text !== undefined) found[name] = text
  }
  return found
})
