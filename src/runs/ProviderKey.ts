/**
 * ProviderKey: the API key of a model's provider, from the daemon's environment or from a file.
 *
 * Guarantees: The file is read again each time. A value that cannot be a key is rejected with a remedy, and no error
 * message contains it.
 */
import { Effect } from "effect"
import * as path from "node:path"
import { readSecret } from "../config/OwnFile.ts"
import { BackendError } from "./Backend.ts"
import type { Environment } from "./process/ChildProcess.ts"

export interface KeyPlace {
  readonly keyFile?: string | undefined
  /** Environment variable that contains the key, if there is no file. */
  readonly variable: string
  /** Folder that `keyFile` is relative to. */
  readonly cwd: string
  readonly environment: Environment
}

/** Valid key characters: an HTTP header accepts no others. */
const KEY = /^[\x21-\x7e]+$/

const refused = (message: string, remedy: string) => new BackendError({ message, remedy, fatal: true })

export const read = Effect.fnUntraced(function* ({ cwd, environment, keyFile, variable }: KeyPlace) {
  const source = keyFile === undefined ? `the variable ${variable}` : `the file ${path.resolve(cwd, keyFile)}`
  const remedy =
    keyFile === undefined
      ? `set ${variable} where the daemon is started, or name another variable by keyEnv or a file by keyFile; if the server needs no key, set any value`
      : `write the key into the first line of that file, or correct keyFile of the agent's backend`
  const text =
    keyFile === undefined
      ? (environment[variable] ?? "")
      : yield* Effect.mapError(readSecret(path.resolve(cwd, keyFile)), (error) =>
          refused(
            `the key could not be read from ${source}: ${error.message}`,
            error.remedy === "" ? remedy : error.remedy
          )
        )
  const key = (text.split("\n")[0] ?? "").trim()
  if (key === "") return yield* refused(`there is no key for the API in ${source}`, remedy)
  if (!KEY.test(key)) return yield* refused(`the value in ${source} cannot be a key`, remedy)
  return { key, keySource: source }
})
