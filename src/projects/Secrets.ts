/**
 * Secrets: registers the secrets of a project's config, which must never be logged: values of environment variables,
 * and the keys in the files that the config names.
 */
import { Effect } from "effect"
import type { BackendConfig } from "../config/BackendConfig.ts"
import type { Project } from "../config/ConfigFile.ts"
import { readSecret } from "../config/OwnFile.ts"
import { Redact } from "../core/event-log/Redact.ts"
import { secretsIn } from "../core/event-log/SecretValues.ts"

/** Path of the key file of a model backend, or of the file with the gateway's key for the provider. */
const keyFileOf = (backend: BackendConfig): string | undefined =>
  backend.type === "model" ? backend.keyFile : backend.provider?.keyFile

/** Environment variables of the programs that the backend starts. */
const environmentsOf = (backend: BackendConfig) => [
  backend.env,
  ...(backend.type === "model" ? Object.values(backend.mcp).map(({ env }) => env) : [])
]

const keyIn = Effect.fnUntraced(function* (backend: BackendConfig) {
  const keyFile = keyFileOf(backend)
  if (keyFile === undefined) return []
  return yield* readSecret(keyFile).pipe(
    Effect.map((text) => [text.split("\n")[0]!.trim()].filter((key) => key !== "")),
    // an error is ignored here: the code that needs the key reports that it is missing
    Effect.catch(() => Effect.succeed([]))
  )
})

/** Registers secrets. From then on, the log redacts them. */
export const register = Effect.fnUntraced(function* ({ agents }: Project) {
  const redact = yield* Redact
  for (const backend of Object.values(agents).flatMap(({ backend, fallback }) => [backend, ...fallback])) {
    yield* redact.register([...(yield* keyIn(backend)), ...environmentsOf(backend).flatMap(secretsIn)])
  }
})
