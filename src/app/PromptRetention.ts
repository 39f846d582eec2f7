/**
 * PromptRetention: a child of the daemon that erases prompts whose retention time is over.
 *
 * Guarantees: prompts are erased in batches, with a pause after each batch, so other work is not delayed. If no prompt
 * is due, the next check follows after at most an hour. An error is logged and retried.
 */
import { Duration, Effect } from "effect"
import { Agents } from "../projects/service/Agents.ts"

const PAUSE = Duration.millis(250)
const LOOK = Duration.hours(1)

/**
 * Erases prompts while the daemon runs. `usual`: how long prompts are kept in projects without this setting; undefined:
 * no limit.
 */
export const run = (usual: Duration.Duration | undefined) =>
  Effect.gen(function* () {
    const agents = yield* Agents
    yield* agents.recovered
    const rest = usual === undefined ? LOOK : Duration.min(LOOK, Duration.max(usual, Duration.seconds(1)))
    return yield* Effect.forever(
      agents.expire(usual).pipe(
        Effect.catchCause((cause) => Effect.as(Effect.logWarning("prompts were not erased in time", cause), 0)),
        Effect.flatMap((erased) => Effect.sleep(erased > 0 ? PAUSE : rest))
      )
    )
  })
