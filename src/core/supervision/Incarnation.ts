/**
 * Incarnation: the supervisor's record of a child, from one start of the child to its end.
 *
 * Each restart creates a new Incarnation. Therefore a message about an old incarnation is never mistaken for a message
 * about the new one.
 *
 * Guarantees: the supervisor is called once, when the child has ended and its Scope is closed. After a cancelled start,
 * only code that ignores its interruption can still be running, and that is reported. While the incarnation has not
 * ended, no other supervisor can run the same handle. An idle child costs this object, its handle and an empty Scope;
 * if its start is a function, it has no Scope.
 */
import { Cause, Context, Duration, Effect, Exit, type Fiber, Predicate, Scope } from "effect"
import { type ChildHandle, type ChildSpec, type ExitObserver, type Hold, ignore } from "./Child.ts"

export type Status =
  | "running"
  | "stopping"
  /** The child is not running, but its specification is kept. */
  | "down"
  /**
   * The child waits for its next start: the last start failed, its backoff is not over, or an abandoned incarnation has
   * not ended.
   */
  | "restarting"
  /** The child ignored its kill, and the supervisor no longer waits for it. */
  | "abandoned"

/** The part of a supervisor that an incarnation uses. */
export interface Owner<R> {
  readonly name: string
  readonly context: Context.Context<R>
  /** Called when the child has ended. The child's status tells whether the supervisor had stopped it. */
  ended(child: Incarnation<R>, exit: Exit.Exit<unknown, unknown>): void
}

/** A start in progress. Its one outcome never changes. After `interrupt`, the outcome can only be a failure. */
export interface Starting {
  readonly outcome: () => Outcome | undefined
  readonly interrupt: () => void
}

export type Outcome = ChildHandle | typeof ignore | Exit.Failure<unknown, unknown>

export const isHandle = (u: unknown): u is ChildHandle =>
  Predicate.hasProperty(u, "stop") && Predicate.hasProperty(u, "onExit")

export type DirectStart = (by: Hold) => ChildHandle | typeof ignore

export const initTimeoutOf = ({ initTimeout, type }: Pick<ChildSpec, "initTimeout" | "type">): Duration.Duration =>
  Duration.fromInputUnsafe(initTimeout ?? (type === "supervisor" ? Duration.infinity : "30 seconds"))

/** The handle of a child whose `start` returned an Effect: the fiber that runs this Effect. */
class FiberHandle implements ChildHandle {
  supervisedBy: Hold | undefined = undefined
  private readonly fiber: Fiber.Fiber<unknown, unknown>
  constructor(fiber: Fiber.Fiber<unknown, unknown>) {
    this.fiber = fiber
  }
  /** Requests the end of the fiber. A fiber cannot be killed, so both requests interrupt it. */
  stop(_how: "shutdown" | "kill"): void {
    this.fiber.interruptUnsafe()
  }
  onExit(observer: ExitObserver): void {
    this.fiber.addObserver((exit) => observer.childExited(exit))
  }
}

export class Incarnation<R> implements ExitObserver, Hold {
  readonly owner: Owner<R>
  readonly spec: ChildSpec<R>
  status: Status = "down"
  handle: ChildHandle | undefined = undefined
  exit: Exit.Exit<unknown, unknown> | undefined = undefined
  private scope: Scope.Closeable | undefined = undefined
  private waiting: Array<() => void> | undefined = undefined

  constructor(owner: Owner<R>, spec: ChildSpec<R>) {
    this.owner = owner
    this.spec = spec
  }

  get id(): string {
    return this.spec.id
  }

  get supervisor(): string {
    return this.owner.name
  }

  get context(): Context.Context<never> {
    return this.owner.context as Context.Context<never>
  }

  get isOver(): boolean {
    return this.exit !== undefined
  }

  get isAbandoned(): boolean {
    return this.status === "abandoned"
  }

  onOver(then: () => void): void {
    if (this.isOver) return then()
    this.waiting = [...(this.waiting ?? []), then]
  }

  beginDirect(start: DirectStart): Outcome {
    try {
      const started = start.call(this.spec, this)
      if (started === ignore || isHandle(started)) return started
      return Exit.die(new TypeError(`the start of ${this.spec.id} returned no child`)) as Exit.Failure<never, never>
    } catch (defect) {
      return Exit.die(defect) as Exit.Failure<never, never>
    }
  }

  /**
   * Runs the start in its own fiber. If the start returns an Effect (a loop), the same fiber then runs that Effect.
   * `settled` is called when the outcome is known.
   */
  begin(start: Exclude<ChildSpec<R>["start"], DirectStart>, settled: () => void): Starting {
    const scope = Scope.makeUnsafe()
    this.scope = scope
    let outcome: Outcome | "loop" | undefined
    const settle = (value: Outcome | "loop") => {
      outcome ??= value
      settled()
    }
    const program = Effect.flatMap(start, (started): Effect.Effect<unknown, unknown, R> => {
      if (Effect.isEffect(started)) {
        settle("loop")
        return started
      }
      if (started !== ignore && !isHandle(started)) {
        return Effect.die(new TypeError(`the start of ${this.spec.id} returned no child`))
      }
      settle(started)
      return Effect.void
    })
    const fiber = Effect.runForkWith(Context.add(this.owner.context, Scope.Scope, scope))(program)
    // if the start created no child, close its Scope when its fiber ends; if it returned a loop, the handle reports the
    // end
    fiber.addObserver((exit) => {
      if (outcome === undefined || outcome === ignore)
        this.close(exit, (closed) => Exit.isFailure(closed) && settle(closed))
    })
    return {
      outcome: () => (outcome === "loop" ? new FiberHandle(fiber) : outcome),
      interrupt: () => fiber.interruptUnsafe()
    }
  }

  /** Marks the child as running. From now on, the supervisor is called when the child ends. */
  run(handle: ChildHandle): void {
    this.status = "running"
    this.handle = handle
    handle.supervisedBy = this
    try {
      handle.onExit(this)
    } catch (defect) {
      this.childExited(Exit.die(defect))
    }
  }

  get grace(): Duration.Duration | "brutal" {
    const shutdown = this.spec.shutdown ?? (this.spec.type === "supervisor" ? "infinity" : "5 seconds")
    if (shutdown === "brutal") return shutdown
    return shutdown === "infinity" ? Duration.infinity : Duration.fromInputUnsafe(shutdown)
  }

  get initTimeout(): Duration.Duration {
    return initTimeoutOf(this.spec)
  }

  ask(how: "shutdown" | "kill"): void {
    try {
      this.handle?.stop(how)
    } catch (defect) {
      this.childExited(Exit.die(defect))
    }
  }

  childExited(exit: Exit.Exit<unknown, unknown>): void {
    this.close(exit, (closed) => {
      if (this.exit !== undefined) return
      this.exit = closed
      if (this.handle?.supervisedBy === this) this.handle.supervisedBy = undefined
      this.owner.ended(this, closed)
      const { waiting } = this
      this.waiting = undefined
      for (const then of waiting ?? []) then()
    })
  }

  /** Closes the Scope of a start whose handle was refused. The handle itself is not stopped. */
  discard(): void {
    this.close(Exit.interrupt(), () => undefined)
  }

  /** Closes the Scope, then calls `then` with the exit. If a finalizer dies, a successful exit becomes a failure. */
  private close(exit: Exit.Exit<unknown, unknown>, then: (exit: Exit.Exit<unknown, unknown>) => void): void {
    const closing = this.scope === undefined ? undefined : Scope.closeUnsafe(this.scope, exit)
    this.scope = undefined
    if (closing === undefined) return then(exit)
    Effect.runForkWith(this.owner.context)(closing).addObserver((closed) => then(both(exit, closed)))
  }
}

const both = (exit: Exit.Exit<unknown, unknown>, closed: Exit.Exit<void>): Exit.Exit<unknown, unknown> => {
  if (Exit.isSuccess(closed)) return exit
  return Exit.isSuccess(exit) ? closed : Exit.failCause(Cause.combine(exit.cause, closed.cause))
}
