/**
 * Children: the ordered table of a supervisor's children, and how they are
 * started and stopped. It decides nothing.
 *
 * Guarantees: the table keeps start order; a start waits no longer than its
 * `initTimeout`, a stop no longer than the grace; whatever is left behind is
 * traced and logged, and remembered where the child is exclusive; a handle that
 * another incarnation holds is refused. Waits for one thing at a time, as a
 * supervisor does.
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

/** After a kill a child has this many turns of the scheduler to end, so that synchronous finalizers count. */
const killTurns = 8

/** The supervisor, as its table of children calls it. */
export interface Listener<R> {
  readonly name: string
  readonly context: Context.Context<R>
  /** A child has ended without a request of the supervisor. */
  exited(child: Incarnation<R>, exit: Exit.Exit<unknown, unknown>): void
  record(event: TraceEvent): void
}

export class Children<R> implements Owner<R> {
  /** In start order; a restarted child keeps its place. */
  readonly byId = new Map<string, Incarnation<R>>()
  /** Set when the supervisor was asked to stop: no start is waited for any more. */
  cancelled = false
  /** Set when the supervisor was killed: no grace is given any more. */
  killed = false
  /** Exclusive children that ignored their kill and have not ended since, by id. */
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

  /** Checks again whether the awaited event has happened. */
  wake(): void {
    this.waiting?.()
  }

  /** The specification stays, nothing runs. */
  setDown(spec: ChildSpec<R>): Incarnation<R> {
    const child = new Incarnation(this, spec)
    this.byId.set(spec.id, child)
    return child
  }

  /** The incarnation that has to end before this specification may start again. */
  leftBehind(spec: ChildSpec<R>): Hold | undefined {
    const own = this.left.get(spec.id)
    if (own !== undefined) return own
    if (!isHandle(spec) || spec.exclusive !== true) return undefined
    return spec.supervisedBy?.isAbandoned === true && !spec.supervisedBy.isOver ? spec.supervisedBy : undefined
  }

  /**
   * Waits for the end of what was left behind, no longer than a start may take; here
   * as all else is waited for, so that a stop of the supervisor ends it.
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

  /** A start that is a function: done on return. As `start` in all else. */
  startDirect(spec: ChildSpec<R>, begin: DirectStart): ChildHandle | undefined | StartFailed {
    const refused = this.heldElsewhere(spec, spec)
    if (refused !== undefined) return refused
    const child = new Incarnation(this, spec)
    return this.enter(child, child.beginDirect(begin))
  }

  /** Start a child and enter it under its id; nothing is entered if it fails or answers ignore. */
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

  /** Two supervisors, or two children of one, cannot run one handle. */
  private heldElsewhere(spec: ChildSpec<R>, handle: unknown): StartFailed | undefined {
    if (!isHandle(handle) || handle.supervisedBy === undefined || handle.supervisedBy.isOver) return undefined
    // What was left behind may be started again beside its old incarnation, unless it is exclusive.
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

  /** The start takes too long, or its supervisor is stopped: interrupt it, and leave it behind after the grace. */
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

  /** Stop one after another, in the order given. */
  stop(children: Iterable<Incarnation<R>>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      for (const child of children) {
        if (child.status !== "running") continue
        this.ask(child)
        if (child.exit === undefined) yield* this.awaitEnd(child, Duration.zero)
      }
    })
  }

  /** Ask all at once; each has its own grace from now on. */
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
      // It ended by itself before it was asked; its news in the mailbox is stale now.
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
      `${this.listener.name}: child ${child.id} ignored its stop and is left behind; make it interruptible, or give it a longer shutdown`
    )
  }

  /** Wait until `done` holds, for `limit` at most. */
  private until(done: () => boolean, limit: Duration.Duration): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (done()) return Effect.void
      const woken = Effect.callback<void>((resume) => {
        // The scheduler may have taken a turn since.
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
      // The code that woke this fiber goes on first: this may be inside its last step.
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
