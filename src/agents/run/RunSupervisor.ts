/**
 * RunSupervisor: starts, watches and ends the runs of one agent, in a slot that holds one run at a time.
 *
 * Guarantees: At most one run of an agent is alive. The next run starts only after all processes of the previous run
 * have ended. The slot outlives the worker's incarnations, so a crash of an actor loses no run. When the slot's scope
 * closes, the run ends. A run that exceeds a limit is ended, and its outcome names the limit. A run with too much
 * output at once is read more slowly, and a notice reports this. The supervisor reports facts and makes no decisions.
 */
import { Cause, Deferred, Effect, Fiber, Latch, type Scope, Stream } from "effect"
import { type Backend, type BackendError, Left, type Run, type RunEvent, type RunSpec } from "../../runs/Backend.ts"
import type { Outcome } from "../../runs/Outcome.ts"
import * as RunLimits from "../../runs/process/RunLimits.ts"
import type { RunFacts } from "../actors/Approval.ts"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import * as OutputRate from "./OutputRate.ts"

/** Receives the events of a run, and its end, in order. */
export interface RunSink {
  /** Receives the run's events in chunks, except `Exited`. A chunk is processed before the next is read. */
  readonly events: (run: Run, request: RunRequest, events: ReadonlyArray<RunEvent>) => Effect.Effect<void>
  /**
   * Called once per run, when all processes of the run have ended. `isLimit`: true if agentd ended the run because it
   * exceeded a limit.
   */
  readonly exited: (request: RunRequest, outcome: Outcome, isLimit: boolean) => Effect.Effect<void>
  /** Receives a note about something that the run left behind, for example processes. */
  readonly note: (runId: string, text: string) => Effect.Effect<void>
}

export interface RunRequest {
  readonly backend: Backend
  readonly spec: RunSpec
  /** Absent for an adopted run, whose checkpoint has them. */
  readonly facts?: RunFacts
  /** Completes when the run exceeds its time limit; undefined if it has none. */
  readonly timeout: Effect.Effect<void> | undefined
}

interface Live {
  readonly runId: string
  readonly handle: Deferred.Deferred<Run>
  /** Completed with the outcome when the run must be ended. */
  readonly enough: Deferred.Deferred<Outcome>
  /** Open when the run has been asked to end: its remaining output is then read without pauses. */
  readonly hurries: Latch.Latch
  /** Waits until all processes of the run have ended and the end is reported. */
  readonly gone: Effect.Effect<void>
}

export interface RunSupervisor {
  /** Id of the live run; undefined if there is none. */
  readonly current: () => string | undefined
  /** Starts a run, unless it was already started. First waits until the previous run is gone. */
  readonly ensure: (request: RunRequest) => Effect.Effect<void>
  /** Announces that a run with this id will probably start, or, if `comes` is false, will not. Starts nothing. */
  readonly expect: (runId: string, comes: boolean) => void
  /** Runs `ending`, which ends what remains of an earlier daemon's run. The next run waits until `ending` completes. */
  readonly bury: (runId: string, ending: Effect.Effect<void>) => Effect.Effect<void>
  /** Asks the run to end in an orderly way; `exited` reports the end. Does nothing if the run is not alive. */
  readonly stop: (runId: string) => Effect.Effect<void>
  /** Sends SIGKILL to all processes that the run started. */
  readonly kill: (runId: string) => Effect.Effect<void>
  /** Closes the scope of a run that does not react to interrupts. Returns at once. */
  readonly end: (runId: string) => Effect.Effect<void>
  /** Waits until no run is alive. */
  readonly gone: Effect.Effect<void>
}

const TIMEOUT: Outcome = { _tag: "Timeout" }

const outcomeOf = (error: BackendError): Outcome =>
  error.fatal
    ? { _tag: "Fatal", detail: error.message, remedy: error.remedy }
    : { _tag: "Error", detail: error.message }

type Parts = Pick<Live, "enough" | "handle" | "hurries"> & {
  /** Frees the slot for the next run. */
  readonly over: Effect.Effect<void>
}

/** Processes a run's events, and pauses when the run sends too much at once. */
const paced = (sink: RunSink, request: RunRequest, hurries: Latch.Latch) => {
  let rate: OutputRate.Rate | undefined
  return Effect.fnUntraced(function* (run: Run, events: ReadonlyArray<RunEvent>) {
    yield* sink.events(run, request, events)
    if (hurries.isOpen()) return
    const now = yield* Monotonic.now
    const before = rate ?? OutputRate.fresh(now)
    const [next, wait] = OutputRate.after(before, events, now)
    rate = next
    if (next.isSlow !== before.isSlow) yield* sink.events(run, request, [OutputRate.notice(next.isSlow)])
    if (wait > 0) yield* Effect.raceFirst(Effect.sleep(wait), hurries.await)
  })
}

/** Starts the run and forwards its events until it ends. `ended`: called when all processes of the run have ended. */
const watch = Effect.fnUntraced(function* (
  sink: RunSink,
  request: RunRequest,
  {
    ended,
    handle,
    hurries
  }: Pick<Parts, "handle" | "hurries"> & { readonly ended: (outcome: Outcome) => Effect.Effect<unknown> }
) {
  const left = (text: string) => sink.note(request.spec.runId, text)
  const run = yield* Effect.provideService(request.backend.start(request.spec), Left, left)
  yield* Deferred.succeed(handle, run)
  let outcome: Outcome = { _tag: "Error", detail: "the backend ended without reporting an outcome" }
  const hear = paced(sink, request, hurries)
  yield* Stream.runForEachArray(run.events, (events) => {
    const last = events.at(-1)
    if (last?._tag !== "Exited") return hear(run, events)
    outcome = last.outcome
    // the run is over now, even if its event stream continues
    const over = ended(outcome)
    return events.length === 1 ? over : Effect.andThen(sink.events(run, request, events.slice(0, -1)), over)
  })
  return outcome
})

/**
 * The life of a run, from the spawn to the end of the cleanup. When the run's last process has ended, the end is
 * reported, and agentd cleans up at the same time. The next run waits for both.
 */
const whole = Effect.fnUntraced(function* (
  sink: RunSink,
  request: RunRequest,
  { enough, handle, hurries, over }: Parts,
  limits: RunLimits.RunLimits,
  scope: Scope.Scope
) {
  let [left, telling] = [2, undefined as Fiber.Fiber<void> | undefined]
  const done = Effect.suspend(() => (--left === 0 ? over : Effect.void))
  const ended = (outcome: Outcome) =>
    Effect.gen(function* () {
      const tell = Effect.andThen(sink.exited(request, outcome, false), done)
      telling ??= yield* Effect.forkIn(tell, scope, { startImmediately: true })
      // give the log time to write: otherwise the report would have to wait for the cleanup
      yield* Effect.yieldNow
      yield* Deferred.succeed(enough, outcome)
    })
  let isLimit = false
  const { timeout = Effect.never } = request
  const limit = Effect.raceFirst(
    Effect.map(limits.passed(request.spec), RunLimits.outcomeOf),
    Effect.as(timeout, TIMEOUT)
  ).pipe(Effect.tap(() => Effect.sync(() => void (isLimit = true))))
  const outcome = yield* watch(sink, request, { ended, handle, hurries }).pipe(
    Effect.scoped,
    Effect.raceFirst(Deferred.await(enough)),
    Effect.raceFirst(limit),
    Effect.catchTag("BackendError", (error) => Effect.succeed(outcomeOf(error))),
    Effect.catchDefect((defect) =>
      Effect.succeed<Outcome>({ _tag: "Error", detail: `the backend failed: ${Cause.pretty(Cause.die(defect))}` })
    ),
    Effect.ensuring(Deferred.interrupt(handle))
  )
  yield* done
  yield* telling === undefined ? Effect.andThen(sink.exited(request, outcome, isLimit), done) : Fiber.join(telling)
  // the next run does not wait for this cleanup
  yield* Effect.yieldNow
  yield* request.backend.forget?.(request.spec.runId) ?? Effect.void
})

class Place implements RunSupervisor {
  private readonly hearer: () => RunSink
  private readonly limits: RunLimits.RunLimits
  private readonly scope: Scope.Scope
  private live: Live | undefined = undefined
  private newest: string | undefined = undefined
  private backend: Backend | undefined = undefined

  constructor(hearer: () => RunSink, limits: RunLimits.RunLimits, scope: Scope.Scope) {
    this.hearer = hearer
    this.limits = limits
    this.scope = scope
  }

  current(): string | undefined {
    return this.live?.runId
  }

  ensure(request: RunRequest): Effect.Effect<void> {
    this.backend = request.backend
    return this.occupy(request.spec.runId, (parts) => whole(this.hearer(), request, parts, this.limits, this.scope))
  }

  expect(runId: string, comes: boolean): void {
    this.backend?.expect?.(runId, comes)
  }

  bury(runId: string, ending: Effect.Effect<void>): Effect.Effect<void> {
    return this.occupy(runId, ({ handle }) => Effect.ensuring(ending, Deferred.interrupt(handle)))
  }

  stop(runId: string): Effect.Effect<void> {
    return this.withRun(runId, (run) => run.end)
  }

  kill(runId: string): Effect.Effect<void> {
    return this.withRun(runId, (run) => run.kill)
  }

  end(runId: string): Effect.Effect<void> {
    return Effect.sync(() => {
      const { live } = this
      const outcome: Outcome = { _tag: "Error", detail: "it did not react to an interrupt and was ended" }
      if (live?.runId === runId) Deferred.doneUnsafe(live.enough, Effect.succeed(outcome))
    })
  }

  get gone(): Effect.Effect<void> {
    return this.untilGone()
  }

  private untilGone(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { live } = this
      return live === undefined ? Effect.void : Effect.andThen(live.gone, this.untilGone())
    })
  }

  /** Applies `act` to a run, even if the run is still being spawned. Does nothing if the run never started. */
  private withRun(runId: string, act: (run: Run) => Effect.Effect<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { live } = this
      if (live?.runId === runId) live.hurries.openUnsafe()
      return live?.runId === runId
        ? Effect.asVoid(Effect.forkIn(Effect.flatMap(Deferred.await(live.handle), act), this.scope))
        : Effect.void
    })
  }

  /** Puts this run into the slot, unless it was started before. First waits until the previous run is gone. */
  private occupy(runId: string, life: (parts: Parts) => Effect.Effect<void>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      // this also applies to a run that has already ended, because its end will be reported
      if (this.newest === runId) return
      yield* this.gone
      const latch = Latch.makeUnsafe(false)
      // the slot becomes free only here: if it became free earlier, a caller would treat a run as lost whose end is
      // still to be reported
      const over = Effect.sync(() => {
        if (this.live?.runId === runId) this.live = undefined
        latch.openUnsafe()
      })
      const parts = {
        handle: Deferred.makeUnsafe<Run>(),
        enough: Deferred.makeUnsafe<Outcome>(),
        hurries: Latch.makeUnsafe(false),
        over
      }
      // uninterruptible, so that a started run is always recorded, even if the caller is interrupted
      yield* Effect.uninterruptible(
        Effect.map(Effect.forkIn(Effect.ensuring(Effect.interruptible(life(parts)), over), this.scope), () => {
          this.newest = runId
          // the run may already have ended
          if (!latch.isOpen()) this.live = { runId, gone: latch.await, ...parts }
        })
      )
    })
  }
}

/** `hearer`: returns the receiver of one run's events, for the whole life of that run. */
export const make = Effect.fnUntraced(function* (
  hearer: () => RunSink
): Effect.fn.Return<RunSupervisor, never, Scope.Scope> {
  return new Place(hearer, yield* RunLimits.RunLimits, yield* Effect.scope)
})
