/**
 * RunSupervisor: the slot for an agent's one run.
 *
 * Guarantees: at most one run of an agent is alive. The next run starts only when every process of the previous one is
 * gone. The slot outlives the worker's incarnations, so a crash of an actor loses no run. Closing its scope ends the
 * run. A run that exceeds a limit ends, and its outcome names the limit. A run that emits too much at once is read more
 * slowly, and a notice says so. The supervisor reports facts and decides nothing.
 */
import { Cause, Deferred, Effect, Fiber, identity, Latch, type Scope, Stream } from "effect"
import { type Backend, type BackendError, Left, type Run, type RunEvent, type RunSpec } from "../../runs/Backend.ts"
import type { Outcome } from "../../runs/Outcome.ts"
import * as RunLimits from "../../runs/process/RunLimits.ts"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import * as OutputRate from "./OutputRate.ts"

/** Receives a run's facts, in order. */
export interface RunSink {
  /** Takes the run's events in chunks, all but `Exited`. A chunk is processed before more is read. */
  readonly events: (run: Run, request: RunRequest, events: ReadonlyArray<RunEvent>) => Effect.Effect<void>
  /** Called once per run, when no process of it is left. */
  readonly exited: (request: RunRequest, outcome: Outcome) => Effect.Effect<void>
  /** Receives a note about what the run left behind. */
  readonly note: (runId: string, text: string) => Effect.Effect<void>
}

export interface RunRequest {
  readonly backend: Backend
  readonly spec: RunSpec
  /** Completes when the run's time limit has passed; undefined for a run that takes turns. */
  readonly timeout: Effect.Effect<void> | undefined
}

interface Live {
  readonly runId: string
  /** The backend's handle, once it exists. */
  readonly handle: Deferred.Deferred<Run>
  /** Completes when the run must end, with the outcome. */
  readonly enough: Deferred.Deferred<Outcome>
  /** Open once the run is asked to end: its remaining output is then read without delay. */
  readonly hurries: Latch.Latch
  /** Waits until no process of the run is left and its end is reported. */
  readonly gone: Effect.Effect<void>
}

export interface RunSupervisor {
  /** The run that is alive; undefined if there is none. */
  readonly current: () => string | undefined
  /** Starts the run unless it was started before. Waits first until the previous run is gone. */
  readonly ensure: (request: RunRequest) => Effect.Effect<void>
  /** Announces that a run with this id is likely to begin, or (`comes` false) is not. Starts nothing. */
  readonly expect: (runId: string, comes: boolean) => void
  /** Runs `ending`, which ends the remains of an earlier daemon's run. The next run waits for it. */
  readonly bury: (runId: string, ending: Effect.Effect<void>) => Effect.Effect<void>
  /** Asks the run to end in order; `exited` reports the end. Ignores a run that is not alive. */
  readonly stop: (runId: string) => Effect.Effect<void>
  /** Sends SIGKILL to everything that the run started. */
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

type Parts = Pick<Live, "enough" | "handle" | "hurries"> & {
  /** Marks the slot free for the next run. */
  readonly over: Effect.Effect<void>
}

/** Processes a run's events, and pauses if the run emits too much at once. */
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

/** Starts the run, and passes on its events until its end. `ended`: called when no process of it is left. */
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
  let outcome: Outcome = { _tag: "Error", detail: "the backend ended without saying how" }
  const hear = paced(sink, request, hurries)
  yield* Stream.runForEachArray(run.events, (events) => {
    const last = events.at(-1)
    if (last?._tag !== "Exited") return hear(run, events)
    outcome = last.outcome
    // the run is over now, even if its stream is not
    const over = ended(outcome)
    return events.length === 1 ? over : Effect.andThen(sink.events(run, request, events.slice(0, -1)), over)
  })
  return outcome
})

/**
 * The whole life of a run, from the spawn until nothing of it is left. When no process is left, the end is reported
 * while agentd cleans up after the run. The next run waits for both.
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
      const tell = Effect.andThen(sink.exited(request, outcome), done)
      telling ??= yield* Effect.forkIn(tell, scope, { startImmediately: true })
      // lets the log write in the meantime: on this stack it would wait for the cleanup
      yield* Effect.yieldNow
      yield* Deferred.succeed(enough, outcome)
    })
  const outcome = yield* watch(sink, request, { ended, handle, hurries }).pipe(
    Effect.scoped,
    Effect.raceFirst(Deferred.await(enough)),
    Effect.raceFirst(Effect.map(limits.passed(request.spec), RunLimits.outcomeOf)),
    request.timeout === undefined ? identity : Effect.raceFirst(Effect.as(request.timeout, TIMEOUT)),
    Effect.catchTag("BackendError", (error) => Effect.succeed(outcomeOf(error))),
    Effect.catchDefect((defect) =>
      Effect.succeed<Outcome>({ _tag: "Error", detail: `the backend failed: ${Cause.pretty(Cause.die(defect))}` })
    ),
    Effect.ensuring(Deferred.interrupt(handle))
  )
  yield* done
  yield* telling === undefined ? Effect.andThen(sink.exited(request, outcome), done) : Fiber.join(telling)
  // the next run need not wait for this cleanup
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
      const outcome: Outcome = { _tag: "Error", detail: "it took no interrupt and was ended" }
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

  /** Waits for a run that is still being spawned. Ignores a run that never started. */
  private withRun(runId: string, act: (run: Run) => Effect.Effect<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { live } = this
      if (live?.runId === runId) live.hurries.openUnsafe()
      return live?.runId === runId
        ? Effect.asVoid(Effect.forkIn(Effect.flatMap(Deferred.await(live.handle), act), this.scope))
        : Effect.void
    })
  }

  /** Occupies the slot unless this run was begun before. Waits first until the previous run is gone. */
  private occupy(runId: string, life: (parts: Parts) => Effect.Effect<void>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      // a run that has already ended counts too: its end is about to be reported
      if (this.newest === runId) return
      yield* this.gone
      const latch = Latch.makeUnsafe(false)
      // the slot is freed only here: a caller that misses the run before its end is reported takes it for lost
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
      // the caller may be interrupted at any point: a run that began is always recorded
      yield* Effect.uninterruptible(
        Effect.map(Effect.forkIn(Effect.ensuring(Effect.interruptible(life(parts)), over), this.scope), () => {
          this.newest = runId
          // the run may have ended already
          if (!latch.isOpen()) this.live = { runId, gone: latch.await, ...parts }
        })
      )
    })
  }
}

/** `hearer`: makes the sink for one run, from its start to its end. */
export const make = Effect.fnUntraced(function* (
  hearer: () => RunSink
): Effect.fn.Return<RunSupervisor, never, Scope.Scope> {
  return new Place(hearer, yield* RunLimits.RunLimits, yield* Effect.scope)
})
