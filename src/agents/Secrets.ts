/**
 * Secrets: what a project's config holds or names that must never reach the log:
 * values of its environments, and the keys in the files that it names.
 */
import { Effect } from "effect"
import type { BackendConfig } from "../config/BackendConfig.ts"
import type { Project } from "../config/ConfigFile.ts"
import { readSecret } from "../config/OwnFile.ts"
import { Redact } from "../event-log/Redact.ts"
import { secretsIn } from "../event-log/SecretValues.ts"

const keyIn = Effect.fnUntraced(function* (backend: BackendConfig) {
  if (backend.type !== "model" || backend.keyFile === undefined) return []
  return yield* readSecret(backend.keyFile).pipe(
    Effect.map((text) => [text.split("\n")[0]!.trim()].filter((key) => key !== "")),
    // whoever needs the key says that it is not there
    Effect.catch(() => Effect.succeed([]))
  )
})

/** From now on none of them is written. */
export const register = Effect.fnUntraced(function* ({ agents }: Project) {
  const redact = yield* Redact
  for (const { backend } of Object.values(agents)) {
    yield* redact.register([...(yield* keyIn(backend)), ...secretsIn(backend.env)])
  }
})
