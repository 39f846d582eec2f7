/**
 * ActionQueue: performs the actions of a scope's committed macrosteps, in order.
 *
 * Guarantees: actions run one at a time and are never repeated. If an action is an Effect, the next action waits until
 * it has ended; meanwhile the scope handles mail. If an action fails, the incarnation ends, and the next incarnation
 * performs the remaining actions. While an incarnation ends, actions that are plain function calls are still performed.
 */
import { Cause, Exit, type Effect, type Fiber } from "effect"
import type { Cause as RuneCause } from "../event-log/Rune.ts"
import type { Acting } from "./EventSourcedActor.ts"
import type { Ask } from "./Mail.ts"
import type { Member } from "./Member.ts"

/** Runs actions that are Effects. Implemented by the scope's current incarnation, whose end interrupts them. */
interface Performer {
  perform(effect: Effect.Effect<void, unknown>, ask: Ask | undefined): Fiber.Fiber<void, unknown>
}

export interface ActingScope {
  readonly isRunning: boolean
  readonly incarnation: Performer | undefined
  readonly system: { warn(message: string, cause: Cause.Cause<unknown>): void }
  /** Called when an action that is an Effect has ended. */
  acted(): void
  crashed(cause: Cause.Cause<unknown>): void
}

/** Maximum number of queued actions. At this limit, the scope's mailboxes accept no more mail from outside. */
export const MAX_ACTIONS = 256

export class Act {
  readonly action: unknown
  readonly member: Member
  readonly state: unknown
  readonly cause: RuneCause | null
  /** The deferred ask that this action will answer; undefined: the action answers none. */
  ask: Ask | undefined = undefined

  constructor(action: unknown, member: Member, state: unknown, cause: RuneCause | null) {
    this.action = action
    this.member = member
    this.state = state
    this.cause = cause
  }
}

export class ActionQueue {
  private readonly scope: ActingScope
  private waiting: Array<Act> = []
  private next = 0
  /** The Effect of an action that was created while the incarnation was ending. The next incarnation starts it. */
  private held: { readonly effect: Effect.Effect<void, unknown>; readonly act: Act } | undefined = undefined
  /** True while an action is running, or while a call of `go` is performing actions. */
  private isBusy = false

  constructor(scope: ActingScope) {
    this.scope = scope
  }

  /** Number of actions that have not ended, including the running one. */
  get size(): number {
    return this.waiting.length - this.next + (this.isBusy || this.held !== undefined ? 1 : 0)
  }

  add(acts: ReadonlyArray<Act>): void {
    for (const act of acts) this.waiting.push(act)
    this.go()
  }

  /** Performs queued actions until an action is still running or the queue is empty. */
  go(): void {
    if (this.isBusy) return
    this.isBusy = true
    while (this.doNext());
  }

  /** Performs or starts the next action. Returns true if the action after it can begin now. */
  private doNext(): boolean {
    const { scope } = this
    const made = this.held ?? this.make()
    this.held = undefined
    if (made === undefined) return this.isBusy
    if (!scope.isRunning) {
      this.held = made
      this.isBusy = false
      return false
    }
    const incarnation = scope.incarnation!
    const fiber = incarnation.perform(made.effect, made.act.ask)
    const over = fiber.pollUnsafe()
    if (over !== undefined) return this.done(made.act, over, incarnation)
    fiber.addObserver((exit) => {
      if (this.done(made.act, exit, incarnation)) while (this.doNext());
      scope.acted()
    })
    return false
  }

  /** Returns the Effect of the next action. Undefined: the action was a plain function call, or the queue is empty. */
  private make(): { readonly effect: Effect.Effect<void, unknown>; readonly act: Act } | undefined {
    if (this.next === this.waiting.length) {
      this.waiting = []
      this.next = 0
      this.isBusy = false
      return undefined
    }
    const act = this.waiting[this.next]!
    this.next += 1
    const { member, state, cause } = act
    const acting: Acting<unknown, unknown> = { self: member, state, cause }
    try {
      const effect = member.definition.perform?.(act.action, acting)
      return effect === undefined ? undefined : { effect: effect as Effect.Effect<void, unknown>, act }
    } catch (defect) {
      this.isBusy = false
      this.scope.crashed(Cause.die(defect))
      return undefined
    }
  }

  /** Handles the end of an action. Returns true if the next action can begin. */
  private done({ member }: Act, exit: Exit.Exit<void, unknown>, incarnation: Performer): boolean {
    if (Exit.isSuccess(exit)) return true
    const { scope } = this
    const { cause } = exit
    if (!scope.isRunning || scope.incarnation !== incarnation) {
      if (Cause.hasDies(cause))
        scope.system.warn(`${member.address}: an action failed while its incarnation was ending`, cause)
      return true
    }
    this.isBusy = false
    const message = `${member.address}: an action was interrupted by its own code`
    scope.crashed(Cause.hasInterruptsOnly(cause) ? Cause.die(new Error(message)) : cause)
    return false
  }
}
