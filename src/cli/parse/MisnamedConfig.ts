/**
 * MisnamedConfig: finds a file that was probably meant as a project's config but has the wrong name.
 *
 * Guarantees: such a file is reported only if there is no config. For JSON, with or without comments, the remedy is a
 * command that renames the file and overwrites nothing. For another format, renaming is not suggested, because agentd
 * would reject the file.
 */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"
import { configsFrom } from "../../config/Places.ts"
import { shellWord } from "../../config/ShellWord.ts"

const NEAR = /^\.?agentd(?:\.config)?\.(?:jsonc?|json5|ya?ml|toml)$/i

const isJson = (name: string): boolean => /\.jsonc?$/i.test(name)

/**
 * The name of the misnamed config in a list of names; undefined if there is none. JSON files come first, because they
 * can be renamed.
 */
export const nearIn = (names: ReadonlyArray<string>): string | undefined => {
  const near = names.filter((name) => NEAR.test(name)).toSorted()
  return near.find(isJson) ?? near[0]
}

/**
 * The error for a missing config. `near.path`: a misnamed file; `near.config`: the path from which agentd would read
 * it.
 */
export const absence = (near?: { readonly path: string; readonly config: string }) =>
  near === undefined
    ? { message: "There is no agentd.jsonc in this folder or above it.", remedy: "Write a sample: agentd init" }
    : isJson(near.path)
      ? {
          message: `There is no agentd.jsonc in this folder or above it, and agentd does not read ${near.path}.`,
          remedy: `Rename it: mv -n ${shellWord(near.path)} ${shellWord(near.config)}`
        }
      : {
          message: `There is no agentd.jsonc in this folder or above it, and agentd does not read ${near.path}: it is not JSON.`,
          remedy: "Create an agentd.jsonc with agentd init, then copy your settings into it."
        }

/** The error if neither the caller's folder nor one of its parents contains a config. */
export const noProject = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  for (const config of configsFrom(".")) {
    const folder = NodePath.dirname(config)
    const name = nearIn(yield* Effect.orElseSucceed(fs.readDirectory(folder), () => []))
    if (name !== undefined) return absence({ path: NodePath.join(folder, name), config })
  }
  return absence()
})

/** A note for a user who starts a daemon outside of all projects, which is not an error. */
export const unregistered = Effect.map(
  noProject,
  ({ message, remedy }) => `${message} No project was registered. ${remedy}`
)
