/**
 * MachineActor: one machine, animated.
 *
 *     mailbox → step (pure) → append runes → commit state → answer → act
 *
 * Guarantees: a batch is appended in one call and nothing acts on a rune that is
 * not durable; an ask is answered after its rune is; the committed snapshot is
 * the fold of the actor's own runes at all times; at most one enter activity runs
 * at a time, that of the current state.
 */
import { Cause, type Context as EffectContext, Effect, Exit, Fiber, type Scope } from "effect"
import { refOf, type Rune, type RuneRef } from "../event-log/Rune.ts"
import type { Machine, Snapshot, Tagged } from "./StateMachine.ts"
import type { EventLog, RuneRefused, StorageError } from "../event-log/EventLog.ts"
import { Actor, type ActorOptions, Kind as ActorKind, makeKind } from "./Actor.ts"
import type { ActorRef } from "./ActorRef.ts"
import type { ChildHandle, ChildSpec } from "../supervision/Child.ts"
import { Ask, Envelope } from "./Mailbox.ts"
import { type Plan, plan, type Why } from "./Plan.ts"
import { type Refused, refused } from "./Refused.ts"

/** What an ask is answered with: durable by then. */
export interface Committed<S, D> {
  /** The rune that the event led to. */
  readonly eventId: number
  readonly cause: RuneRef
  readonly snapshot: Snapshot<S, D>
}

export type AskError = Refused | RuneRefused | StorageError

/** What an action or an enter activity is given. */
export interface Context<S extends string, E extends Tagged, D> {
  /** As the rune left it that this follows from. */
  readonly snapshot: Snapshot<S, D>
  /** That rune; give it as `cause` with what you tell others. For an activity: the rune that entered the state. */
  readonly cause: RuneRef
  readonly self: MachineRef<S, E, D>
}

/** What all actors of one kind share. */
export interface Options<
  S extends string,
  E extends Tagged,
  D,
  A extends Tagged,
  V extends string,
  R
> extends ActorOptions {
  readonly machine: Machine<S, E, D, A, string, string, string, string, V>
  readonly log: EventLog["Service"]
  /** In order, after the commit. Mail waits meanwhile: what takes long belongs in an activity. A failure is a crash; it is not repeated. */
  readonly perform: (action: A, context: Context<S, E, D>) => Effect.Effect<void, unknown, R>
  /**
   * Started on entering a state or on `reenter`, interrupted on leaving it; the
   * next one waits for the finalizers of the one before. Answers by `context.self.tell`.
   * A failure is a crash of the actor.
   */
  readonly activities: {
    readonly [v in V]: (context: Context<S, E, D>) => Effect.Effect<void, unknown, R | Scope.Scope>
  }
  /** The actor ends (normally) once a final state is committed and acted on; default: it stays and refuses. */
  readonly endsWhenFinal?: boolean
}

/** Where one actor lives. */
export interface Place<S, D> {
  /** `<stream>/<actor>` */
  readonly address: string
  /** The rune's `actor`: `worker/builder`. */
  readonly actor: string
  readonly stream: string
  /** Where it stands: `start(machine, data)` for a new one, else the fold of its runes. */
  readonly snapshot: Snapshot<S, D>
}

export interface Kind<S extends string, E extends Tagged, D> {
  /** A new actor; give it to a supervisor as child: it is its own `ChildSpec`. */
  readonly make: (place: Place<S, D>) => Effect.Effect<MachineActor<S, E, D>>
}

/** What others hold of it. */
export interface MachineRef<S extends string, E extends Tagged, D> extends ActorRef<E, Committed<S, D>, AskError> {
  /** The committed state: a plain read. */
  readonly snapshot: Snapshot<S, D>
}

/** What its owner holds: `supervisor.startChild(actor)`. */
export interface MachineActor<S extends string, E extends Tagged, D>
  extends MachineRef<S, E, D>, ChildSpec, ChildHandle {
  /** For good: its mail is dead-lettered. Else that happens when its kind's scope ends. */
  close(): void
}

/** Where a machine stands before its first rune. */
export const start = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  data: D
): Snapshot<S, D> => ({ state: machine.initial, data, entered: 0, seq: 0, at: 0 })

class MachineKind<S extends string, E extends Tagged, D, A extends Tagged, V extends string> extends ActorKind {
  readonly options: Options<S, E, D, A, V, never>

  constructor(options: Options<S, E, D, A, V, never>, context: EffectContext.Context<never>) {
    super(options, context)
    this.options = options
  }

  /** Milliseconds that no change of the wall clock touches. */
  get monotonic(): number {
    return Number(this.clock.monotonicTimeNanosUnsafe()) / 1e6
  }
}

/** An action of a committed move that has not begun. */
interface Pending<S extends string, E extends Tagged, D, A> extends Context<S, E, D> {
  readonly action: A
}

class Animated<S extends string, E extends Tagged, D, A extends Tagged, V extends string>
  extends Actor<E, Committed<S, D>, AskError>
  implements MachineActor<S, E, D>
{
  declare protected readonly kind: MachineKind<S, E, D, A, V>
  readonly actor: string
  readonly stream: string
  snapshot: Snapshot<S, D>
  /** Outlives an incarnation: what it left is done first by the next. */
  private pending: Array<Pending<S, E, D, A>> | undefined = undefined
  /** Messages to be appended one by one, since one of them is refused. */
  private careful = 0
  /** When the state was entered, on the monotonic clock; undefined if only the log knows. */
  private since: number | undefined = undefined
  /** Which timeout is in force: its number (one that was queued by another is void), its length, and if it has fired. */
  timeout = 1
  private after: number | undefined = undefined
  private fired = false
  private timer: Fiber.Fiber<unknown, unknown> | undefined = undefined
  /** The rune that entered the state whose activity is in force. */
  private entered = -1
  private activity: Fiber.Fiber<unknown, unknown> | undefined = undefined

  constructor(kind: MachineKind<S, E, D, A, V>, place: Place<S, D>) {
    super(place.address, kind)
    this.actor = place.actor
    this.stream = place.stream
    this.snapshot = place.snapshot
  }

  protected override begin(): Effect.Effect<void, unknown> | undefined {
    this.careful = 0
    if (!this.fired) this.after = undefined
    this.timer = undefined
    this.entered = -1
    this.activity = undefined
    if (this.pending !== undefined) return this.act()
    this.settleIn()
    return undefined
  }

  protected batch(limit: number): Effect.Effect<void, unknown> | undefined {
    let planned: Plan<S, E, D, A>
    try {
      planned = plan(this.kind.options.machine, this, this.mailbox, this.careful > 0 ? 1 : limit)
    } catch (defect) {
      this.poisoned(defect)
      return undefined
    }
    if (planned.drafts.length === 0) {
      this.commit(planned, [])
      return undefined
    }
    // Not interruptible: what may be durable must be committed.
    const written = Effect.matchCauseEffect(this.kind.options.log.append(planned.drafts), {
      onSuccess: (runes) => Effect.sync(() => this.commit(planned, runes)),
      onFailure: (cause) => this.unwritten(planned, cause)
    })
    return Effect.andThen(Effect.uninterruptible(written), this.acting)
  }

  /** The runes are durable: the new state counts, askers hear of it, and actions are due. */
  private commit(planned: Plan<S, E, D, A>, runes: ReadonlyArray<Rune>): void {
    const before = this.snapshot
    const answers: Array<() => void> = []
    let snapshot = before
    let changed = false
    let next = 0
    for (const { envelope, outcome } of planned.steps) {
      if (outcome._tag === "Refused") {
        const { state } = snapshot
        answers.push(() => this.refuse(envelope, state, outcome.why))
      } else if (outcome._tag === "Moved") {
        const rune = runes[next++]!
        const leaves = outcome.state !== snapshot.state
        changed ||= leaves
        snapshot = {
          state: outcome.state,
          data: outcome.data,
          entered: leaves || outcome.reenter ? rune.eventId : snapshot.entered,
          seq: leaves || outcome.reenter ? rune.seq : snapshot.seq,
          at: leaves ? rune.at : snapshot.at
        }
        for (const action of outcome.actions) {
          ;(this.pending ??= []).push({ action, snapshot, cause: refOf(rune), self: this })
        }
        if (envelope instanceof Ask) {
          const answer: Committed<S, D> = { eventId: rune.eventId, cause: refOf(rune), snapshot }
          answers.push(() => envelope.settle(Exit.succeed(answer)))
        }
      }
    }
    this.snapshot = snapshot
    this.careful = Math.max(0, this.careful - planned.steps.length)
    this.mailbox.settle(planned.steps.length, planned.postponed)
    if (changed) {
      this.timeout += 1
      this.after = undefined
      this.since = this.kind.monotonic
    }
    if (planned.retry) this.mailbox.retry()
    for (const answer of answers) answer()
  }

  /** Nothing was written. A refused rune fails its own message only; anything else ends the actor. */
  private unwritten(
    planned: Plan<S, E, D, A>,
    cause: Cause.Cause<StorageError | RuneRefused>
  ): Effect.Effect<void, unknown> {
    const error = Cause.squash(cause)
    if (!Cause.hasFails(cause) || (error as { _tag?: string })._tag !== "RuneRefused") {
      for (const { envelope } of planned.steps) if (envelope instanceof Ask) envelope.settle(Exit.failCause(cause))
      return Effect.failCause(cause)
    }
    if (planned.steps.length > 1) {
      this.careful = planned.steps.length
      return Effect.void
    }
    const { envelope } = planned.steps[0]!
    this.careful = Math.max(0, this.careful - 1)
    this.mailbox.settle(1)
    if (envelope instanceof Ask) envelope.settle(Exit.failCause(cause))
    else this.bury(envelope, "refused", error)
    return Effect.void
  }

  private refuse(envelope: Envelope<E>, state: S, why: Why): void {
    const { machine } = this.kind.options
    const error = refused(machine, this.actor, state, envelope.message._tag, why)
    if (envelope instanceof Ask) envelope.settle(Exit.fail(error))
    else if (why === "stale") this.kind.fork(Effect.logDebug(error.message))
    else this.bury(envelope, why, error)
  }

  private get acting(): Effect.Effect<void, unknown> {
    return Effect.suspend(() => this.act() ?? Effect.void)
  }

  /** What is pending, in order, then the state's activity and timeout. An action is taken off before it is begun: it is not repeated. */
  private act(): Effect.Effect<void, unknown> | undefined {
    if (this.pending === undefined) {
      this.settleIn()
      return undefined
    }
    const loop = Effect.whileLoop({
      while: () => this.pending !== undefined,
      body: () => {
        const { action, ...context } = this.pending!.shift()!
        if (this.pending!.length === 0) this.pending = undefined
        return this.kind.options.perform(action, context)
      },
      step: () => {}
    })
    return Effect.andThen(
      loop,
      Effect.sync(() => this.settleIn())
    )
  }

  /** The activity and the timeout of the state that it is in; those of a state that was left end. */
  private settleIn(): void {
    const { options } = this.kind
    const { state, entered } = this.snapshot
    const spec = options.machine.states[state]
    if (this.entered !== entered) this.enter(spec.enter, entered)
    this.setTimer(spec.timeout)
    if (options.endsWhenFinal === true && options.machine.final.includes(state)) this.finish(Exit.void)
  }

  private enter(name: V | undefined, entered: number): void {
    const before = this.activity
    this.entered = entered
    this.activity = undefined
    before?.interruptUnsafe()
    if (name === undefined) return
    const cause = { stream: this.stream, seq: this.snapshot.seq, eventId: entered }
    const context = { snapshot: this.snapshot, cause, self: this }
    const activity = Effect.scoped(Effect.suspend(() => this.kind.options.activities[name](context)))
    const fiber = this.fork(before === undefined ? activity : Effect.andThen(Fiber.await(before), activity), (exit) =>
      this.left(name, entered, exit)
    )
    if (fiber.pollUnsafe() === undefined) this.activity = fiber
  }

  private left(name: V, entered: number, exit: Exit.Exit<unknown, unknown>): void {
    const current = this.entered === entered
    if (current) this.activity = undefined
    if (Exit.isSuccess(exit)) return
    if (Cause.hasDies(exit.cause)) this.finish(exit)
    else if (!current) return
    else if (Cause.hasFails(exit.cause)) this.finish(exit)
    else this.finish(Exit.die(new Error(`${this.actor}: the activity ${name} was interrupted from within`)))
  }

  /** Sets the state's timeout, unless the one in force is the same: where a move took the deadline with it, it moves. */
  private setTimer(name: string | undefined): void {
    const after = name === undefined ? undefined : this.duration(name)
    if (this.after === after && after !== undefined) return
    this.timeout += 1
    this.after = after
    this.fired = false
    this.timer?.interruptUnsafe()
    this.timer = undefined
    if (name === undefined || after === undefined || after === Number.POSITIVE_INFINITY) return
    const { timeout } = this
    const wait = this.remaining(after)
    if (wait <= 0) return this.fire(name, timeout)
    const fiber = this.fork(
      Effect.andThen(
        Effect.sleep(wait),
        Effect.sync(() => this.fire(name, timeout))
      ),
      (exit) => {
        if (this.timeout === timeout) this.timer = undefined
        if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) this.finish(exit)
      }
    )
    if (fiber.pollUnsafe() === undefined) this.timer = fiber
  }

  private duration(name: string): number {
    const { at, data, entered } = this.snapshot
    const { after } = this.kind.options.machine.timers[name]!
    if (entered > 0) return after(data, at)
    // A machine without a rune entered its state when its first incarnation began.
    const now = this.kind.monotonic
    this.since ??= now
    return after(data, this.kind.clock.currentTimeMillisUnsafe() - (now - this.since))
  }

  /** From when the state was entered: on the monotonic clock if that was in this process, else as far as the wall clock can be believed. */
  private remaining(after: number): number {
    if (this.since !== undefined) return this.since + after - this.kind.monotonic
    const left = this.snapshot.at + after - this.kind.clock.currentTimeMillisUnsafe()
    return Math.min(Math.max(left, 0), after)
  }

  private fire(name: string, timeout: number): void {
    if (this.timeout !== timeout || !this.running) return
    this.fired = true
    const { data, entered, seq } = this.snapshot
    const cause = entered === 0 ? undefined : { stream: this.stream, seq }
    const event = this.kind.options.machine.timers[name]!.fires(data)
    this.mailbox.force(new Envelope(event, cause, timeout))
    this.wake()
  }
}

/** Captures the context that actions and activities of this kind run in. Its actors are closed with the scope. */
export const kind = <S extends string, E extends Tagged, D, A extends Tagged, V extends string, R = never>(
  options: Options<S, E, D, A, V, R>
): Effect.Effect<Kind<S, E, D>, never, R | Scope.Scope> =>
  Effect.map(
    makeKind<MachineKind<S, E, D, A, V>, R>(
      (context) => new MachineKind(options as Options<S, E, D, A, V, never>, context)
    ),
    (shared) => ({ make: (place) => Effect.sync(() => new Animated(shared, place)) })
  )
