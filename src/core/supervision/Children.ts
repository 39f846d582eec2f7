/**
 * Children: the ordered table of a supervisor's children, and the code that starts and stops them. All decisions are
 * made by the supervisor.
 *
 * Guarantees: the table is in start order. A start takes at most `initTimeout`, and a stop takes at most the grace
 * period. If a child ignores its kill, it is abandoned: this is traced and logged, and an exclusive child is recorded.
 * A handle that is running under another supervisor is refused. The table waits for one thing at a time, because its
 * supervisor handles one message at a time.
 */
import { Cause, Clock, type Context, Duration, Effect, Exit } from "effect"
import { type ChildHandle, type ChildSpec, type Hold, ignore } from "./Child.ts"
import {
  type DirectStart,
  Incarnation,
  initTimeoutOf,
  isHandle,
  type Outcome,
  type Owner,
  type Starting
} from "./Incarnation.ts"
import { AlreadySupervised, StartFailed, StartTimeout } from "./SupervisorError.ts"
import type { TraceEvent } from "./SupervisorTrace.ts"

/** Number of scheduler turns to wait for the end of a killed child, so that its synchronous finalizers can finish. */
const killTurns = 8

/** The supervisor that owns the children. */
export interface Listener<R> {
  readonly name: string
  readonly context: Context.Context<R>
  /** Called when a child has ended although the supervisor did not stop it. */
  exited(child: Incarnation<R>, exit: Exit.Exit<unknown, unknown>): void
  record(event: TraceEvent): void
}

export class Children<R> implements Owner<R> {
  /** The children by id, in start order. A restarted child keeps its position. */
  readonly byId = new Map<string, Incarnation<R>>()
  /** True: the supervisor was asked to stop, and no longer waits for starts. */
  cancelled = false
  /** True: the supervisor was killed, and its children get no grace period. */
  killed = false
  /** Exclusive children that ignored their kill and are still running, by id. */
  private readonly left = new Map<string, Incarnation<R>>()
  private readonly listener: Listener<R>
  private waiting: (() => void) | undefined = undefined

  constructor(listener: Listener<R>) {
    this.listener = listener
  }

  get name(): string {
    return this.listener.name
  }

  get context(): Context.Context<R> {
    return this.listener.context
  }

  ended(child: Incarnation<R>, exit: Exit.Exit<unknown, unknown>): void {
    if (child.status === "running") this.listener.exited(child, exit)
    else if (child.status === "stopping") this.listener.record({ _tag: "Stopped", child: child.id, exit })
    else this.listener.record({ _tag: "EndedLate", child: child.id })
    if (this.left.get(child.id) === child) this.left.delete(child.id)
    this.wake()
  }

  /** Makes `until` check its condition again. */
  wake(): void {
    this.waiting?.()
  }

  /** Adds a child's specification to the table without starting the child. */
  setDown(spec: ChildSpec<R>): Incarnation<R> {
    const child = new Incarnation(this, spec)
    this.byId.set(spec.id, child)
    return child
  }

  /** Returns the abandoned incarnation that must end before this exclusive child can start; undefined: none. */
  leftBehind(spec: ChildSpec<R>): Hold | undefined {
    const own = this.left.get(spec.id)
    if (own !== undefined) return own
    if (!isHandle(spec) || spec.exclusive !== true) return undefined
    return spec.supervisedBy?.isAbandoned === true && !spec.supervisedBy.isOver ? spec.supervisedBy : undefined
  }

  /**
   * Waits until the abandoned incarnation of a child has ended, for at most `initTimeout`. By default, it waits by
   * calling `until`, so that a stop of the supervisor ends the wait.
   */
  awaitLeft(
    spec: ChildSpec<R>,
    wait: (left: Hold, limit: Duration.Duration) => Effect.Effect<void> = (left, limit) => {
      left.onOver(() => this.wake())
      return this.until(() => this.cancelled || left.isOver, limit)
    }
  ): Effect.Effect<void, StartFailed> {
    return Effect.suspend(() => {
      const left = this.leftBehind(spec)
      if (left === undefined) return Effect.void
      this.listener.record({ _tag: "AwaitsEnd", child: spec.id })
      const limit = initTimeoutOf(spec)
      return Effect.flatMap(wait(left, limit), () => {
        if (left.isOver) return Effect.void
        const cause = new StartTimeout({ child: spec.id, millis: Duration.toMillis(limit) })
        return Effect.fail(new StartFailed({ supervisor: this.name, child: spec.id, cause }))
      })
    })
  }

  /** Starts a child whose `start` is a function. The start is complete when the function returns. */
  startDirect(spec: ChildSpec<R>, begin: DirectStart): ChildHandle | undefined | StartFailed {
    const refused = this.heldElsewhere(spec, spec)
    if (refused !== undefined) return refused
    const child = new Incarnation(this, spec)
    return this.enter(child, child.beginDirect(begin))
  }

  /** Starts a child and adds it to the table. If the start fails or returns `ignore`, nothing is added. */
  start(spec: ChildSpec<R>): Effect.Effect<ChildHandle | undefined, StartFailed> {
    return Effect.suspend(() => {
      const { start } = spec
      if (typeof start === "function") return asEffect(this.startDirect(spec, start))
      const refused = this.heldElsewhere(spec, spec)
      if (refused !== undefined) return Effect.fail(refused)
      const child = new Incarnation(this, spec)
      let settled = () => this.wake()
      const starting = child.begin(start, () => settled())
      const known = starting.outcome()
      if (known !== undefined) return asEffect(this.enter(child, known))
      return this.until(() => this.cancelled || starting.outcome() !== undefined, child.initTimeout).pipe(
        Effect.flatMap(() => {
          const outcome = starting.outcome()
          if (outcome !== undefined) return Effect.succeed(outcome)
          return this.giveUp(child, starting, () => {
            settled = () => this.listener.record({ _tag: "EndedLate", child: child.id })
          })
        }),
        Effect.flatMap((outcome) => asEffect(this.enter(child, outcome)))
      )
    })
  }

  /** Returns an error if the handle is already running under another supervisor, or as another child of this one. */
  private heldElsewhere(spec: ChildSpec<R>, handle: unknown): StartFailed | undefined {
    if (!isHandle(handle) || handle.supervisedBy === undefined || handle.supervisedBy.isOver) return undefined
    // if a handle is not exclusive, it can be started again while its abandoned incarnation is still running
    if (handle.supervisedBy.isAbandoned && handle.exclusive !== true) return undefined
    const refusal = { supervisor: this.name, child: spec.id }
    const cause = new AlreadySupervised({ ...refusal, by: handle.supervisedBy.supervisor })
    this.listener.record({ _tag: "StartFailed", child: spec.id, cause: Cause.fail(cause) })
    return new StartFailed({ ...refusal, cause })
  }

  private enter(child: Incarnation<R>, outcome: Outcome): ChildHandle | undefined | StartFailed {
    if (outcome === ignore) {
      this.listener.record({ _tag: "Ignored", child: child.id })
      return undefined
    }
    if ("stop" in outcome) {
      const refused = this.heldElsewhere(child.spec, outcome)
      if (refused !== undefined) {
        child.discard()
        return refused
      }
      this.byId.set(child.id, child)
      this.listener.record({ _tag: "Started", child: child.id })
      child.run(outcome)
      return outcome
    }
    this.listener.record({ _tag: "StartFailed", child: child.id, cause: outcome.cause })
    const supervisor = this.listener.name
    return new StartFailed({ supervisor, child: child.id, cause: Cause.squash(outcome.cause) })
  }

  /**
   * Interrupts a start that takes too long or whose supervisor is stopped. If the start has not ended after the grace
   * period, it is abandoned.
   */
  private giveUp(child: Incarnation<R>, starting: Starting, leave: () => void): Effect.Effect<Outcome> {
    return Effect.gen({ self: this }, function* () {
      const millis = Duration.toMillis(child.initTimeout)
      const timeout = this.cancelled ? Exit.interrupt() : Exit.fail(new StartTimeout({ child: child.id, millis }))
      starting.interrupt()
      yield* this.until(() => starting.outcome() !== undefined || this.killed, graceOf(child))
      if (starting.outcome() === undefined) {
        leave()
        yield* this.abandon(child)
      }
      return timeout as Exit.Failure<never, StartTimeout>
    })
  }

  /** Stops the given children one after another, in the given order. */
  stop(children: Iterable<Incarnation<R>>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      for (const child of children) {
        if (child.status !== "running") continue
        this.ask(child)
        if (child.exit === undefined) yield* this.awaitEnd(child, Duration.zero)
      }
    })
  }

  /** Stops the given children in parallel. All grace periods begin now. */
  stopTogether(children: Iterable<Incarnation<R>>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const asked = [...children].filter((child) => child.status === "running")
      for (const child of asked) this.ask(child)
      const alive = asked.filter((child) => child.exit === undefined)
      alive.sort((a, b) => Duration.Order(graceOf(a), graceOf(b)))
      const began = yield* Clock.monotonicTimeNanos
      for (const child of alive) {
        if (child.exit !== undefined) continue
        const now = yield* Clock.monotonicTimeNanos
        yield* this.awaitEnd(child, Duration.nanos(now - began))
      }
    })
  }

  private ask(child: Incarnation<R>): void {
    child.status = "stopping"
    if (child.exit !== undefined) {
      // the child ended before the supervisor stopped it, so its `Exited` message in the mailbox is now stale
      return this.listener.record({ _tag: "Stopped", child: child.id, exit: child.exit })
    }
    const how = this.killed || child.grace === "brutal" ? "kill" : "shutdown"
    this.listener.record({ _tag: "Stopping", child: child.id, how })
    child.ask(how)
  }

  private awaitEnd(child: Incarnation<R>, waited: Duration.Duration): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const grace = child.grace
      if (grace !== "brutal") {
        yield* this.until(() => child.exit !== undefined || this.killed, Duration.subtract(grace, waited))
        if (child.exit !== undefined) return
        this.listener.record({ _tag: "Stopping", child: child.id, how: "kill" })
        child.ask("kill")
      }
      for (let turn = 0; turn < killTurns && child.exit === undefined; turn++) yield* Effect.yieldNow
      if (child.exit !== undefined) return
      child.status = "abandoned"
      if (child.handle?.exclusive === true) this.left.set(child.id, child)
      yield* this.abandon(child)
    })
  }

  private abandon(child: Incarnation<R>): Effect.Effect<void> {
    this.listener.record({ _tag: "Abandoned", child: child.id })
    return Effect.logWarning(
      `${this.listener.name}: child ${child.id} ignored its stop and was abandoned; make it interruptible, or increase its shutdown time`
    )
  }

  private until(done: () => boolean, limit: Duration.Duration): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (done()) return Effect.void
      const woken = Effect.callback<void>((resume) => {
        // check again: the scheduler may have run other fibers since the first check
        if (done()) return resume(Effect.void)
        this.waiting = () => {
          if (!done()) return
          this.waiting = undefined
          resume(Effect.void)
        }
        return Effect.sync(() => {
          this.waiting = undefined
        })
      })
      const bounded = Duration.isFinite(limit) ? Effect.timeoutOption(woken, limit) : Effect.asSome(woken)
      // yield first, so that the code that woke this fiber can finish its current step
      return Effect.andThen(bounded, Effect.yieldNow)
    })
  }
}

const asEffect = (
  started: ChildHandle | undefined | StartFailed
): Effect.Effect<ChildHandle | undefined, StartFailed> =>
  started instanceof StartFailed ? Effect.fail(started) : Effect.succeed(started)

const graceOf = (child: { readonly grace: Duration.Duration | "brutal" }) =>
  child.grace === "brutal" ? Duration.zero : child.grace
