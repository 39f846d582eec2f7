/**
 * KnownSecrets: makes values known as secrets that a backend meets while it works, as a token that was renewed: from
 * then on they are not written down. A reference: who keeps no log has nowhere to tell it.
 */
import { Context, Effect } from "effect"

export const KnownSecrets = Context.Reference<(values: ReadonlyArray<string>) => Effect.Effect<void>>(
  "agentd/backends/KnownSecrets",
  { defaultValue: () => () => Effect.void }
)
