/**
 * ReadyRun: the next run of an agent, made ready while the log has not got it yet: started as far as its gate.
 *
 * Guarantees: nothing of the run's own happens before its gate opens, and that opens only for a request in the very
 * words by which it was made ready; one that is not asked for any more is cleared away, and so is all with the scope.
 */
import { type Context, Deferred, Effect, Fiber, Latch, type Scope } from "effect"
import type { Backend, BackendError, Run, RunSpec } from "../backends/Backend.ts"

export interface RunRequest {
  readonly backend: Backend
  readonly spec: RunSpec
  /** Completes when its time is over; undefined for a run that takes turns. */
  readonly timeout: Effect.Effect<void> | undefined
}

export interface Ready {
  readonly runId: string
  /** The words by which it was made ready; undefined until then. */
  readonly spec: RunSpec | undefined
  readonly gate: Latch.Latch
  readonly started: Deferred.Deferred<Run, BackendError>
  /** Lives as long as the run; its interruption clears the run away. */
  readonly fiber: Fiber.Fiber<void>
}

const isFor = ({ gate, spec: by }: Ready, { spec }: RunRequest): boolean =>
  by?.runId === spec.runId && (gate.isOpen() || JSON.stringify(by) === JSON.stringify(spec))

export class ReadyRun {
  private readonly scope: Scope.Scope
  private readonly context: Context.Context<never>
  private ready: (Ready & { spec: RunSpec | undefined }) | undefined = undefined

  constructor(scope: Scope.Scope, context: Context.Context<never>) {
    this.scope = scope
    this.context = context
  }

  /** Makes it ready, not on the stack of whoever expects it. */
  expect(runId: string, request: Effect.Effect<RunRequest>): void {
    const [gate, started] = [Latch.makeUnsafe(false), Deferred.makeUnsafe<Run, BackendError>()]
    const life = Effect.gen({ self: this }, function* () {
      yield* Effect.yieldNow
      const { backend, spec } = yield* request
      if (backend.isGated !== true || this.ready?.gate !== gate) return
      this.ready.spec = spec
      const start = backend.start({ ...spec, gate: gate.await })
      return yield* Effect.scoped(Effect.andThen(Deferred.into(start, started), Effect.never))
    })
    const fiber = Fiber.runIn(Effect.runForkWith(this.context)(life), this.scope)
    this.ready = { runId, spec: undefined, gate, started, fiber }
  }

  /** Clears away what was made ready by this name. */
  drop(runId: string): void {
    if (this.ready?.runId !== runId) return
    this.ready.fiber.interruptUnsafe()
    this.ready = undefined
  }

  /** Lets the run begin that was made ready for the request; one that was so by other words never begins. */
  open(request: RunRequest): void {
    if (this.ready !== undefined && isFor(this.ready, request)) this.ready.gate.openUnsafe()
    else this.drop(request.spec.runId)
  }

  /** Opens it and hands it over. */
  take(request: RunRequest): Ready | undefined {
    this.open(request)
    const found = this.ready?.runId === request.spec.runId ? this.ready : undefined
    if (found !== undefined) this.ready = undefined
    return found
  }
}
