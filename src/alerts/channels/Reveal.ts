/**
 * Reveal: the secrets of channels, read as they are used and made known to the redactor before: of an address the parts,
 * too, that are secrets by themselves.
 */
import { Effect } from "effect"
import * as Secret from "../Secret.ts"
import type { SendError } from "../SendError.ts"
import { setup } from "../SendError.ts"
import type { SecretConfig } from "../../config/NotifyConfig.ts"
import { Redact } from "../../core/event-log/Redact.ts"
import { secretsOfAddress } from "../../core/event-log/SecretValues.ts"

export interface Reveal {
  readonly reveal: (secret: SecretConfig) => Effect.Effect<string, SendError>
  /** An address that is said, or that is a secret itself. */
  readonly urlOf: (url: string | SecretConfig) => Effect.Effect<string, SendError>
  /** Makes a word known that is a secret, whatever it looks like. */
  readonly hide: (word: string) => Effect.Effect<void>
}

export const make: Effect.Effect<Reveal, never, Redact> = Effect.map(Redact, (redact): Reveal => {
  const reveal = Effect.fnUntraced(function* (place: SecretConfig) {
    const secret = yield* Secret.read(place)
    if (secret === undefined) return yield* setup("no secret is named", "Name its file, env or credential.")
    yield* redact.register([secret, ...secretsOfAddress(secret.trim())])
    return secret
  })
  return {
    reveal,
    hide: (word) => redact.register([word]),
    urlOf: (url) => (typeof url === "string" ? Effect.succeed(url) : Effect.map(reveal(url), (text) => text.trim()))
  }
})
