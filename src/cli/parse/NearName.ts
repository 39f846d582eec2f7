/**
 * NearName: a file that was meant to be a project's config, and has another name.
 *
 * Guarantees: told only where there is no config; JSON, with comments or without, is put right by a command that
 * renames it and overwrites nothing; what is written in another language is not, since its text would be refused.
 */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"
import { configsFrom } from "../../config/Places.ts"
import { quoted } from "./Hint.ts"

const NEAR = /^\.?agentd(?:\.config)?\.(?:jsonc?|json5|ya?ml|toml)$/i

const isJson = (name: string): boolean => /\.jsonc?$/i.test(name)

/** The file of a folder that was meant, if there is one; what can be renamed before what cannot. */
export const nearIn = (names: ReadonlyArray<string>): string | undefined => {
  const near = names.filter((name) => NEAR.test(name)).toSorted()
  return near.find(isJson) ?? near[0]
}

/** No config, here or above. `near`: the path of what was meant; `config`: the path that is read. */
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

/** The same of the folder that the caller stands in, where there is none. */
export const noProject = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  for (const config of configsFrom(".")) {
    const folder = NodePath.dirname(config)
    const name = nearIn(yield* Effect.orElseSucceed(fs.readDirectory(folder), () => []))
    if (name !== undefined) return absence({ path: NodePath.join(folder, name), config })
  }
  return absence()
})

/** Nothing is wrong with a daemon that begins without a project: a line for who starts it. */
export const unregistered = Effect.map(
  noProject,
  ({ message, remedy }) => `${message} No project was registered. ${remedy}`
)
