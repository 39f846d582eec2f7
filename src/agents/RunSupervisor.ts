/**
 * RunSupervisor: the place of an agent's one run.
 *
 * Guarantees: at most one run of an agent is alive; the next starts only when
 * every process of the one before is gone; the slot outlives the worker's
 * incarnations, so a crash of ours loses no run; closing its scope ends the run; one that
 * passes a limit is over, and says which.
 * It reports facts and decides nothing.
 */
import { Cause, Deferred, Effect, Fiber, type Scope, Stream } from "effect"
import type { Backend, BackendError, Run, RunEvent, RunSpec } from "../backends/Backend.ts"
import type { Outcome } from "../backends/Outcome.ts"
import * as RunLimits from "../backends/process/RunLimits.ts"

/** Where a run's facts go, in their order. */
export interface RunSink {
  /** Takes the run's events in the chunks in which they come, all but `Exited`. A chunk is heard out before more is read. */
  readonly events: (run: Run, request: RunRequest, events: ReadonlyArray<RunEvent>) => Effect.Effect<void>
  /** Called once per run, when nothing of it is left. */
  readonly exited: (request: RunRequest, outcome: Outcome) => Effect.Effect<void>
}

export interface RunRequest {
  readonly backend: Backend
  readonly spec: RunSpec
  /** Completes when its time is over; undefined for a run that takes turns. */
  readonly timeout: Effect.Effect<void> | undefined
}

interface Live {
  readonly runId: string
  readonly fiber: Fiber.Fiber<void>
  /** The backend's handle, once it has one. */
  readonly handle: Deferred.Deferred<Run>
  /** Completed when its time is over. */
  readonly enough: Deferred.Deferred<Outcome>
}

export interface RunSupervisor {
  /** The run that is alive, if any. */
  readonly current: () => string | undefined
  /** Starts the run unless it was started before; first waits until the one before is gone. */
  readonly ensure: (request: RunRequest) => Effect.Effect<void>
  /** Ends by this the rest of a run of an earlier daemon; the next run waits for it. */
  readonly bury: (runId: string, ending: Effect.Effect<void>) => Effect.Effect<void>
  /** Asks the run to end in order; `exited` says when it has. A run that is not alive is left alone. */
  readonly stop: (runId: string) => Effect.Effect<void>
  /** SIGKILL to all that the run started. */
  readonly kill: (runId: string) => Effect.Effect<void>
  /** Closes the scope of a run that no interrupt ends. Returns at once. */
  readonly end: (runId: string) => Effect.Effect<void>
  /** Waits until no run is alive. */
  readonly gone: Effect.Effect<void>
}

const TIMEOUT: Outcome = { _tag: "Timeout" }

const outcomeOf = (error: BackendError): Outcome =>
  error.fatal
    ? { _tag: "Fatal", detail: error.message, remedy: error.remedy }
    : { _tag: "Error", detail: error.message }

type Parts = Pick<Live, "enough" | "handle">

/** Starts it, and hands on what it tells, to its end. */
const watch = Effect.fnUntraced(function* (sink: RunSink, request: RunRequest, { enough, handle }: Parts) {
  const run = yield* request.backend.start(request.spec)
  yield* Deferred.succeed(handle, run)
  let outcome: Outcome = { _tag: "Error", detail: "the backend ended without saying how" }
  yield* Stream.runForEachArray(run.events, (events) => {
    const last = events.at(-1)
    if (last?._tag !== "Exited") return sink.events(run, request, events)
    outcome = last.outcome
    // it is over with that, even if its stream is not
    const over = Deferred.succeed(enough, outcome)
    return events.length === 1 ? over : Effect.andThen(sink.events(run, request, events.slice(0, -1)), over)
  })
  return outcome
})

export const make = Effect.fnUntraced(function* (sink: RunSink): Effect.fn.Return<RunSupervisor, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const limits = yield* RunLimits.RunLimits
  let live: Live | undefined
  let newest: string | undefined

  /** From the spawn to the moment when nothing of it is left, whatever happens on the way. */
  const whole = (request: RunRequest, { enough, handle }: Parts) =>
    watch(sink, request, { enough, handle }).pipe(
      Effect.scoped,
      Effect.raceFirst(Deferred.await(enough)),
      Effect.raceFirst(Effect.map(limits.passed(request.spec), RunLimits.outcomeOf)),
      Effect.raceFirst(Effect.as(request.timeout ?? Effect.never, TIMEOUT)),
      Effect.catchTag("BackendError", (error) => Effect.succeed(outcomeOf(error))),
      Effect.catchDefect((defect) =>
        Effect.succeed<Outcome>({ _tag: "Error", detail: `the backend failed: ${Cause.pretty(Cause.die(defect))}` })
      ),
      Effect.ensuring(Deferred.interrupt(handle)),
      Effect.flatMap((outcome) => sink.exited(request, outcome)),
      Effect.andThen(request.backend.forget?.(request.spec.runId) ?? Effect.void)
    )

  const gone: Effect.Effect<void> = Effect.suspend(() =>
    live === undefined ? Effect.void : Effect.andThen(Fiber.await(live.fiber), gone)
  )
  /** A run that is still being spawned is waited for; one that never came to be is no matter. */
  const withRun = (runId: string, act: (run: Run) => Effect.Effect<void>) =>
    Effect.suspend(() =>
      live?.runId === runId
        ? Effect.asVoid(Effect.forkIn(Effect.flatMap(Deferred.await(live.handle), act), scope))
        : Effect.void
    )

  /** Unless it was begun before; first waits until the one before is gone. */
  const occupy = Effect.fnUntraced(function* (runId: string, life: (parts: Parts) => Effect.Effect<void>) {
    // one that has ended already counts, too: its end is on its way to whoever asks again
    if (newest === runId) return
    yield* gone
    const parts = { handle: Deferred.makeUnsafe<Run>(), enough: Deferred.makeUnsafe<Outcome>() }
    // only then: whoever misses it before its end is told takes it for lost
    const over = Effect.sync(() => void (live = undefined))
    // whoever asked may be interrupted at any point: a run that began is always known
    yield* Effect.uninterruptible(
      Effect.map(Effect.forkIn(Effect.ensuring(Effect.interruptible(life(parts)), over), scope), (fiber) => {
        newest = runId
        // it may have ended in this very moment
        if (fiber.pollUnsafe() === undefined) live = { runId, fiber, ...parts }
      })
    )
  })

  return {
    current: () => live?.runId,
    ensure: (request) => occupy(request.spec.runId, (parts) => whole(request, parts)),
    bury: (runId, ending) => occupy(runId, ({ handle }) => Effect.ensuring(ending, Deferred.interrupt(handle))),
    stop: (runId) => withRun(runId, (run) => run.end),
    kill: (runId) => withRun(runId, (run) => run.kill),
    end: (runId) =>
      Effect.sync(() => {
        const outcome: Outcome = { _tag: "Error", detail: "it took no interrupt and was ended" }
        if (live?.runId === runId) Deferred.doneUnsafe(live.enough, Effect.succeed(outcome))
      }),
    gone
  }
})
