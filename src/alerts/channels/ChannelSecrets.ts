/**
 * ChannelSecrets: reads the secrets of channels when they are used, and registers them with the redactor first. If a
 * secret is an address, those of its parts that are secrets by themselves are registered, too.
 */
import { Effect } from "effect"
import * as ConfiguredSecret from "../ConfiguredSecret.ts"
import type { SendError } from "../SendError.ts"
import { setup } from "../SendError.ts"
import type { SecretConfig } from "../../config/NotifyConfig.ts"
import { Redact } from "../../core/event-log/Redact.ts"
import { secretsOfAddress } from "../../core/event-log/SecretValues.ts"

export interface ChannelSecrets {
  readonly reveal: (secret: SecretConfig) => Effect.Effect<string, SendError>
  /** Returns an address that the config contains, or reads it as a secret. */
  readonly urlOf: (url: string | SecretConfig) => Effect.Effect<string, SendError>
  /** Registers a word with the redactor as a secret. */
  readonly hide: (word: string) => Effect.Effect<void>
}

export const make: Effect.Effect<ChannelSecrets, never, Redact> = Effect.map(Redact, (redact): ChannelSecrets => {
  const reveal = Effect.fnUntraced(function* (place: SecretConfig) {
    const secret = yield* ConfiguredSecret.read(place)
    if (secret === undefined) return yield* setup("no secret is configured", "Set its file, env or credential.")
    yield* redact.register([secret, ...secretsOfAddress(secret.trim())])
    return secret
  })
  return {
    reveal,
    hide: (word) => redact.register([word]),
    urlOf: (url) => (typeof url === "string" ? Effect.succeed(url) : Effect.map(reveal(url), (text) => text.trim()))
  }
})
