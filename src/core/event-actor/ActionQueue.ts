/**
 * ActionQueue: the actions of a scope's committed macrosteps, performed in order.
 *
 * Guarantees: actions run one at a time. An action that is an Effect ends before the next action
 * begins; the scope handles mail during that time. No action is repeated. An action that crashes
 * ends the incarnation, and the next incarnation performs the actions behind it. While an
 * incarnation ends, actions that are plain function calls are still performed.
 */
import { Cause, Exit, type Effect, type Fiber } from "effect"
import type { Cause as RuneCause } from "../event-log/Rune.ts"
import type { Acting } from "./EventSourcedActor.ts"
import type { Ask } from "./Mail.ts"
import type { Member } from "./Member.ts"

/** Performs actions. It ends with its scope's incarnation. */
interface Performer {
  perform(effect: Effect.Effect<void, unknown>, ask: Ask | undefined): Fiber.Fiber<void, unknown>
}

export interface ActingScope {
  readonly isRunning: boolean
  readonly incarnation: Performer | undefined
  readonly system: { warn(message: string, cause: Cause.Cause<unknown>): void }
  /** Called when an action that was an Effect has ended. */
  acted(): void
  crashed(cause: Cause.Cause<unknown>): void
}

/** Number of queued actions from which on the scope's mailboxes take no more mail from outside. */
export const MAX_ACTIONS = 256

export class Act {
  readonly action: unknown
  readonly member: Member
  readonly state: unknown
  readonly cause: RuneCause | null
  /** The ask that this action will answer, if the ask was put off. */
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
  /** An Effect that was made while the incarnation was ending; the next incarnation starts it. */
  private held: { readonly effect: Effect.Effect<void, unknown>; readonly act: Act } | undefined = undefined
  /** True if an action is running, or this call stack is working through the queue. */
  private isBusy = false

  constructor(scope: ActingScope) {
    this.scope = scope
  }

  /** Number of actions, including the running one. */
  get size(): number {
    return this.waiting.length - this.next + (this.isBusy || this.held !== undefined ? 1 : 0)
  }

  add(acts: ReadonlyArray<Act>): void {
    for (const act of acts) this.waiting.push(act)
    this.go()
  }

  /** Performs the actions that can be performed now. */
  go(): void {
    if (this.isBusy) return
    this.isBusy = true
    while (this.doNext());
  }

  /** Returns false if an action is still running, or if none is left. */
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

  /** The next action's Effect; undefined if the action was a plain call, or if the queue is empty. */
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

  /** Returns true if the next action can begin. */
  private done({ member }: Act, exit: Exit.Exit<void, unknown>, incarnation: Performer): boolean {
    if (Exit.isSuccess(exit)) return true
    const { scope } = this
    const { cause } = exit
    if (!scope.isRunning || scope.incarnation !== incarnation) {
      if (Cause.hasDies(cause)) scope.system.warn(`${member.address}: an action broke as its incarnation ended`, cause)
      return true
    }
    this.isBusy = false
    const message = `${member.address}: an action was interrupted from within`
    scope.crashed(Cause.hasInterruptsOnly(cause) ? Cause.die(new Error(message)) : cause)
    return false
  }
}
