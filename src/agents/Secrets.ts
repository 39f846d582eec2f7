/**
 * Secrets: what a project's config holds or names that must never reach the log:
 * values of its environments, and the keys in the files that it names.
 */
import { Effect, type FileSystem } from "effect"
import type { BackendConfig } from "../config/BackendConfig.ts"
import type { Project } from "../config/ConfigFile.ts"
import { type Redact, secretsIn } from "../event-log/Redact.ts"

/** A key's file holds little. */
const MAX_KEY = 64 * 1024

const keyIn = (backend: BackendConfig, files: FileSystem.FileSystem): Effect.Effect<ReadonlyArray<string>> =>
  backend.type !== "model" || backend.keyFile === undefined
    ? Effect.succeed([])
    : files.readFileString(backend.keyFile).pipe(
        Effect.map((text) => (text.length > MAX_KEY ? [] : [text.split("\n")[0]!.trim()].filter((key) => key !== ""))),
        // whoever needs the key says that it is not there
        Effect.catch(() => Effect.succeed([]))
      )

/** From now on none of them is written. */
export const register = (
  { agents }: Project,
  { fileSystem, redact }: { readonly fileSystem: FileSystem.FileSystem; readonly redact: Redact["Service"] }
): Effect.Effect<void> =>
  Effect.forEach(
    Object.values(agents),
    ({ backend }) =>
      Effect.flatMap(keyIn(backend, fileSystem), (keys) => redact.register([...keys, ...secretsIn(backend.env)])),
    { discard: true }
  )
