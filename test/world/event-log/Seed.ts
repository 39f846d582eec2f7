/**
 * Seed: chance that can be replayed. `SEED=7 npx vitest run test/runes/Crash.test.ts`
 * runs the same samples again; `ALL=1` takes many more of them.
 */
import { Effect, Random } from "effect"
import { isAll } from "../../support/Long.ts"

const seed = process.env["SEED"] ?? "1"

/** Fixes the samples of a test, and names their seed when it fails. */
export const seeded = <A, E, R>(test: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  test.pipe(
    Random.withSeed(seed),
    Effect.tapCause(() => Effect.logError(`replay with SEED=${seed}${isAll ? " ALL=1" : ""}`))
  )
