/**
 * NearName: detects a file that was intended as a project's config, but has another name.
 *
 * Guarantees: reported only if there is no config; for JSON, with or without comments, the remedy is a command that
 * renames the file and overwrites nothing; a file in another language is not renamed, since its text would be refused.
 */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"
import { configsFrom } from "../../config/Places.ts"
import { quoted } from "./Hint.ts"

const NEAR = /^\.?agentd(?:\.config)?\.(?:jsonc?|json5|ya?ml|toml)$/i

const isJson = (name: string): boolean => /\.jsonc?$/i.test(name)

/** The misnamed config among these names, if any; JSON files, which can be renamed, come first. */
export const nearIn = (names: ReadonlyArray<string>): string | undefined => {
  const near = names.filter((name) => NEAR.test(name)).toSorted()
  return near.find(isJson) ?? near[0]
}

/** The error if there is no config. `near`: path of the misnamed file; `config`: path that would be read. */
export const absence = (near?: { readonly path: string; readonly config: string }) =>
  near === undefined
    ? { message: "There is no agentd.jsonc here or above.", remedy: "Write a sample: agentd init" }
    : isJson(near.path)
      ? {
          message: `There is no agentd.jsonc here or above, and ${near.path} is not read.`,
          remedy: `Rename it: mv -n ${quoted(near.path)} ${quoted(near.config)}`
        }
      : {
          message: `There is no agentd.jsonc here or above, and ${near.path} is not read: it is no JSON.`,
          remedy: "Write one, and take over into it what the other says: agentd init"
        }

/** The error for the caller's folder and those above. */
export const noProject = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  for (const config of configsFrom(".")) {
    const folder = NodePath.dirname(config)
    const name = nearIn(yield* Effect.orElseSucceed(fs.readDirectory(folder), () => []))
    if (name !== undefined) return absence({ path: NodePath.join(folder, name), config })
  }
  return absence()
})

/** A note for a person who starts a daemon without a project, which is not an error. */
export const unregistered = Effect.map(
  noProject,
  ({ message, remedy }) => `${message} No project was registered. ${remedy}`
)
