/**
 * Admission: limits the number of calls in progress, whatever they do. For runs, the number per run is limited, too.
 *
 * Guarantees: a call beyond the limit is refused at once and costs nothing. A call that has started is carried out even
 * if its caller disconnects, and it frees its slot when it ends. When the daemon ends, all calls end.
 */
import { Effect, Fiber } from "effect"
import { type CommandRefused, refuse } from "../../domain/Messages.ts"
import { Limits } from "../../board/Limits.ts"

const full = (count: number, remedy: string) => refuse("not_now", `${count} calls are already in progress.`, remedy)

/**
 * Makes the admission from an effect that takes a slot. `acquire`: takes a slot, and returns the effect that frees it.
 * Calls are interrupted when the scope closes.
 */
const admitting = (acquire: Effect.Effect<Effect.Effect<void>, CommandRefused>) =>
  Effect.map(Effect.scope, (scope) => ({
    call: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      // an interrupt must not leave a command with several steps half done
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const release = yield* acquire
          const work = Effect.ensuring(Effect.interruptible(effect), release)
          const fiber = yield* Effect.forkIn(work, scope, { startImmediately: true })
          return yield* restore(Fiber.join(fiber))
        })
      ),
    /** Admits a stream; its slot is occupied until the caller stops listening. */
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

/**
 * Limits the calls of runs. `run`: the run that makes the call. A run without another call in progress always gets a
 * slot, however many calls other runs make.
 */
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
