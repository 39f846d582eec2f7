/**
 * LearnedSecrets: registers secrets that a backend learns while it runs, such as a renewed token. From then on they are
 * redacted from the log. A `Context.Reference`, because a caller without a log has nowhere to register them.
 */
import { Context, Effect } from "effect"

export const LearnedSecrets = Context.Reference<(values: ReadonlyArray<string>) => Effect.Effect<void>>(
  "agentd/backends/LearnedSecrets",
  { defaultValue: () => () => Effect.void }
)
