/**
 * UserFile: the user's `config.jsonc` that is in force. If the file cannot be used, the last usable version stays in
 * force, even after a restart. For this purpose, the text of the last usable version is stored in the state directory,
 * next to the projects' texts.
 *
 * Guarantees: if no version was ever in force, an unusable file is refused.
 */
import { dirname, join } from "node:path"
import { Effect, FileSystem } from "effect"
import type { UserConfig } from "./Config.ts"
import { ConfigError, parseUser, readUser } from "./ConfigFile.ts"

export interface Place {
  readonly state: string
  readonly userConfig: string
}

export interface Look {
  /** The user's config that is in force. */
  readonly config: UserConfig
  /** The text of this config. */
  readonly inForce: string
  /** The text of the file; undefined if the file cannot be used. */
  readonly text: string | undefined
  readonly trouble: ConfigError | undefined
}

/** Path at which the text is stored, in the same folder as the projects' texts. */
const placeOf = ({ state }: Place): string => join(state, "configs", "user.jsonc")

const look = Effect.fnUntraced(function* (place: Place) {
  const files = yield* FileSystem.FileSystem
  const read = yield* Effect.result(readUser(place.userConfig))
  if (read._tag === "Success") return { ...read.success, inForce: read.success.text, trouble: undefined } satisfies Look
  const before = files
    .readFileString(placeOf(place))
    .pipe(
      Effect.flatMap((inForce) => Effect.map(parseUser(inForce, place.userConfig), (config) => ({ config, inForce })))
    )
  const remedy = `Fix ${place.userConfig}, then start it again: agentd start`
  const { message, path, problems, reason } = read.failure
  const found = yield* Effect.mapError(before, () => new ConfigError({ path, reason, problems, message, remedy }))
  return { ...found, text: undefined, trouble: read.failure } satisfies Look
})

export const inForce = (place: Place) => Effect.map(look(place), ({ config }) => config)

/** Stores the text. The file is written completely or not at all. */
const keep = Effect.fnUntraced(
  function* (place: Place, text: string) {
    const files = yield* FileSystem.FileSystem
    const kept = placeOf(place)
    if ((yield* Effect.orElseSucceed(files.readFileString(kept), () => undefined)) === text) return
    yield* files.makeDirectory(dirname(kept), { recursive: true, mode: 0o700 })
    yield* files.writeFileString(`${kept}.part`, text, { mode: 0o600 })
    yield* files.rename(`${kept}.part`, kept)
  },
  Effect.catch((error) => Effect.logWarning(`the user's config could not be stored: ${error.message}`))
)

/** Reads the user's config file, and stores its text if the file can be used. */
export const take = (place: Place) =>
  Effect.tap(look(place), ({ text }) => (text === undefined ? Effect.void : keep(place, text)))
