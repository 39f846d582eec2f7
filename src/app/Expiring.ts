/**
 * Expiring: the daemon's child that has prompts erased whose time is over.
 *
 * Guarantees: a batch at a time, with a pause after each, so that it holds up nothing; where nothing
 * is left it looks again after a while, an hour at most; what goes wrong is told, and tried again.
 */
import { Duration, Effect } from "effect"
import { Agents } from "../projects/service/Agents.ts"

const PAUSE = Duration.millis(250)
const LOOK = Duration.hours(1)

/** `usual`: how long prompts are kept where a project says nothing; undefined: for ever. */
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
