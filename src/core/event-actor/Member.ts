/**
 * Member: an actor in a commit scope. It has the actor's state, and is the handle through which other code sends
 * messages to the actor. An actor without mail, timers and activities consists only of this object and its state.
 */
import { Cause, Effect, type Fiber } from "effect"
import type { Cause as RuneCause } from "../event-log/Rune.ts"
import { Activities, type Active } from "./Activities.ts"
import type { Committed, ActorHandle, AskError } from "./ActorHandle.ts"
import { type ActorStopped, actorStopped, type MailboxFull, mailboxFull } from "./ActorError.ts"
import type { EventSourcedActor } from "./EventSourcedActor.ts"
import type { Reason } from "./DeadLetters.ts"
import { Ask, Asking, type Due, Mail, Performing } from "./Mail.ts"
import { tagOf } from "./Refused.ts"
import { type Time, Timers } from "./Timers.ts"
import type { Part, Taken } from "../supervision/Observation.ts"

/** Number of handled messages that an actor keeps for inspection: the newest ones. */
const NEWEST = 8

const nameIn = (state: unknown): string | undefined =>
  typeof state === "object" && state !== null && "state" in state && typeof state.state === "string"
    ? state.state
    : undefined

/** Returns the name of the machine state, from the actor's state or its field `now`; null: neither has one. */
const stateOf = (state: unknown): string | null =>
  nameIn(state) ??
  (typeof state === "object" && state !== null && "now" in state ? nameIn(state.now) : undefined) ??
  null

// oxlint-disable-next-line no-explicit-any
export type AnyActor = EventSourcedActor<any, any, any, any, any>

/** The parts of a scope that an actor uses. */
export interface Home {
  readonly stream: string
  readonly isRunning: boolean
  readonly isOpen: boolean
  readonly incarnation: Active["scope"]["incarnation"]
  readonly system: Time & Active["scope"]["system"] & { readonly capacity: number }
  offer(member: Member, item: unknown, isFollowing: boolean): "taken" | "full" | "gone"
  push(member: Member, item: unknown): void
  waitForRoom(member: Member, item: unknown, resume: () => void): () => void
  ask(ask: Ask<Member>, isFollowing: boolean): void
  giveUp(ask: Ask<Member>): void
  bury(member: Member, item: unknown, reason: Reason): void
  crashed(cause: Cause.Cause<unknown>): void
}

/** Fields that few actors need, allocated on first use. */
interface Beside {
  readonly timers: Timers
  activities: Activities
}

// oxlint-disable-next-line no-explicit-any
export class Member<S = any, M = any, E = any> implements ActorHandle<S, M, E> {
  readonly scope: Home
  readonly name: string
  readonly definition: AnyActor
  /** The state after the last macrostep, which may not be durable yet. */
  ahead: S
  /** The committed state: all its runes are durable. */
  state: S
  /** Number of the actor's messages that are queued, postponed, or handled but not durable yet. */
  waiting = 0
  postponed: Array<unknown> | undefined = undefined
  isRemoved = false
  private beside: Beside | undefined = undefined

  constructor(scope: Home, name: string, definition: AnyActor, state: S) {
    this.scope = scope
    this.name = name
    this.definition = definition
    this.ahead = state
    this.state = state
  }

  get address(): string {
    return `${this.scope.stream}/${this.name}`
  }

  /** Ring buffer of the newest messages; undefined until the first message. `taken`: number of all messages so far. */
  private newest: Array<Taken> | undefined = undefined
  private taken = 0

  /** Records a message before `decide` handles it. `at`: ms since the epoch. */
  took(message: unknown, at: number): void {
    const one = { at, message: tagOf(message) }
    // start with a one-element literal, because pushing to an empty array allocates capacity for 17 entries
    if (this.newest === undefined) this.newest = [one]
    else this.newest[this.taken % NEWEST] = one
    this.taken += 1
  }

  get part(): Part {
    const { newest = [], state, taken } = this
    const at = taken % NEWEST
    return {
      address: this.address,
      state: stateOf(state),
      mailbox: this.waiting,
      newest: taken <= NEWEST ? newest : [...newest.slice(at), ...newest.slice(0, at)]
    }
  }

  get isRunning(): boolean {
    return this.scope.isRunning && !this.isRemoved
  }

  tell(message: M, cause: RuneCause | null = null): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      const item = itemOf(message, cause)
      if (this.scope.offer(this as Member, item, fiber.getRef(Performing)) !== "full") return Effect.void
      return Effect.callback<void>((resume) => {
        const leave = this.scope.waitForRoom(this as Member, item, () => resume(Effect.void))
        return Effect.sync(leave)
      })
    })
  }

  offer(message: M, cause: RuneCause | null = null): Effect.Effect<void, MailboxFull | ActorStopped> {
    return Effect.withFiber((fiber): Effect.Effect<void, MailboxFull | ActorStopped> => {
      if (!this.scope.isOpen || this.isRemoved) return Effect.fail(actorStopped(this.address, "stopped"))
      const taken = this.scope.offer(this as Member, itemOf(message, cause), fiber.getRef(Performing))
      return taken === "full" ? Effect.fail(mailboxFull(this.address, this.scope.system.capacity)) : Effect.void
    })
  }

  ask<Reply = Committed<S>>(message: M, cause: RuneCause | null = null): Effect.Effect<Reply, AskError | E> {
    return Effect.withFiber((fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<Reply, AskError | E> => {
      const asked = new Ask(this as Member, message, cause, fiber.getRef(Asking))
      this.scope.ask(asked, fiber.getRef(Performing))
      type Answer = Effect.Effect<Reply, AskError | E>
      if (asked.exit !== undefined) return asked.exit as Answer
      return Effect.callback<Reply, AskError | E>((resume) => {
        if (asked.exit !== undefined) return resume(asked.exit as Answer)
        asked.resume = (exit) => resume(exit as Answer)
        return Effect.sync(() => this.scope.giveUp(asked))
      })
    })
  }

  tellNow(message: M, cause: RuneCause | null = null): boolean {
    const item = itemOf(message, cause)
    const taken = this.scope.offer(this as Member, item, false)
    if (taken === "full") this.scope.bury(this as Member, item, "full")
    return taken === "taken"
  }

  get stream(): string {
    return this.scope.stream
  }

  push(due: Due): void {
    this.scope.push(this as Member, due)
  }

  /** When the actor was first started, in ms since the epoch; 0 if its definition has no timers. */
  get began(): number {
    return this.beside?.timers.began ?? 0
  }

  /** Sets the actor's timers and activities as its committed state requires. */
  settleIn(): void {
    const { definition } = this
    if (definition.timers === undefined && definition.activities === undefined) return
    if (!this.isRunning) return
    const { system } = this.scope
    this.beside ??= { timers: new Timers(this, system), activities: new Activities(this) }
    try {
      const { activities, timers } = this.beside
      if (definition.timers !== undefined) timers.set(definition.timers(this.state, timers.began))
      if (definition.activities !== undefined) activities.set(definition.activities(this.state))
    } catch (defect) {
      this.scope.crashed(Cause.die(defect))
    }
  }

  /** Stops the actor's timers and activities, because the incarnation ends or the actor is removed. */
  leave(): void {
    this.beside?.timers.leave()
    this.beside?.activities.leave()
  }

  /** The actor's activities; undefined if all of them have ended. */
  get leftover(): Activities | undefined {
    const activities = this.beside?.activities
    return activities === undefined || activities.isOver ? undefined : activities
  }

  /** Takes over those activities of a removed actor with the same name that have not ended yet. */
  takeOver(activities: Activities): void {
    activities.handTo(this)
    this.beside = { timers: new Timers(this, this.scope.system), activities }
  }
}

const itemOf = (message: unknown, cause: RuneCause | null): unknown =>
  cause === null ? message : new Mail(message, cause)
