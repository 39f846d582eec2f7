/**
 * Admission: the calls under way, counted and bounded, whatever they are about; of the runs' calls each run's, too.
 *
 * Guarantees: a call beyond the limit is refused at once and costs nothing; one
 * that was begun is carried out, though its asker goes away, and makes room again
 * at its end; the daemon's end is the end of all of them.
 */
import { Effect, Fiber } from "effect"
import { type CommandRefused, refuse } from "../../domain/Messages.ts"
import { Limits } from "../../board/Limits.ts"

const full = (count: number, remedy: string) => refuse("not_now", `${count} calls are under way already.`, remedy)

/** `acquire`: takes a place, and answers how it is given back. Ends with its scope. */
const admitting = (acquire: Effect.Effect<Effect.Effect<void>, CommandRefused>) =>
  Effect.map(Effect.scope, (scope) => ({
    call: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      // a command of several steps is never left half done
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const release = yield* acquire
          const work = Effect.ensuring(Effect.interruptible(effect), release)
          const fiber = yield* Effect.forkIn(work, scope, { startImmediately: true })
          return yield* restore(Fiber.join(fiber))
        })
      ),
    /** Admits a stream, for as long as its caller listens. */
    held: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        acquire,
        () => effect,
        (release) => release
      )
  }))
export type Admission = Effect.Success<ReturnType<typeof admitting>>

export const make = Effect.suspend(() => {
  let open = 0
  const release = Effect.sync(() => {
    open--
  })
  return admitting(
    Effect.suspend(() => {
      if (open >= Limits.calls) {
        return Effect.fail(full(Limits.calls, "Try again in a moment; end some `agentd log -f`."))
      }
      open++
      return Effect.succeed(release)
    })
  )
})

/** `run`: whose call it is. However many calls the others make, a run that has none under way has a place. */
export const ofRuns = (run: Effect.Effect<string>) =>
  Effect.suspend(() => {
    const { all, each } = Limits.runs.calls
    const counts = new Map<string, number>()
    let open = 0
    return admitting(
      Effect.flatMap(run, (runId) => {
        const count = counts.get(runId) ?? 0
        if (count >= each || (count > 0 && open >= all)) {
          return Effect.fail(full(count >= each ? each : all, "Wait for their answers, then try again."))
        }
        counts.set(runId, count + 1)
        open++
        return Effect.succeed(
          Effect.sync(() => {
            const left = (counts.get(runId) ?? 0) - 1
            if (left > 0) counts.set(runId, left)
            else counts.delete(runId)
            open--
          })
        )
      })
    )
  })
