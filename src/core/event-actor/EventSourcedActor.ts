/**
 * EventSourcedActor: the definition of an actor, as data and pure functions.
 *
 *     { initial, decide, apply, join, timers, activities, ends, perform, run }
 *
 * `decide` returns the consequences of a message as data: runes, tells, actions, a reply. It reads
 * no clock and does no I/O. `apply` is the only way to change the state. A CommitScope interprets
 * the result: it appends the runes of all actors of one macrostep together, then answers, then
 * performs the actions. States are immutable plain data.
 */
import type { Effect, Scope } from "effect"
import type { Cause, Payload, Rune, Visibility } from "../event-log/Rune.ts"
import type { ActorHandle, Ref } from "./ActorHandle.ts"
import type { Refused } from "./Refused.ts"

/** A message to send to another actor. It is data, so that `decide` stays pure. */
export interface Tell {
  readonly to: Ref<never>
  readonly message: unknown
  /**
   * True: a separate macrostep, after the waiting mail. False: to an actor of the same scope, part
   * of this macrostep.
   */
  readonly later: boolean
}

export const tell = <M>(to: Ref<M>, message: M): Tell => ({ to, message, later: false })

/** For messages that go around in a cycle, and for work in pieces: other mail gets its turn in between. */
export const later = <M>(to: Ref<M>, message: M): Tell => ({ to, message, later: true })

/** Why a message did not change the actor. */
export type Refusal =
  /** Too early: kept until the state changes. */
  | "postpone"
  /** The message lost a race: dropped, counted, and logged at debug level. */
  | "stale"
  /** A bug of the sender. If an actor of the same scope sent it, the whole macrostep is refused. */
  | "illegal"

/** A refusal with the actor's own error: the asker fails with `error`. The whole macrostep is refused. */
export class Refuse<out E = unknown> {
  readonly error: E
  constructor(error: E) {
    this.error = error
  }
}

/** Takes the place of a reply: a later message settles the ask, by its token. */
export const LATER: unique symbol = Symbol.for("agentd/event-actor/LATER")

/** A rune as an actor decides it. The core adds id, seq, stream, time and cause. */
export interface Draft {
  readonly kind: string
  /** A part of the actor that has its own name (a seat, a tool call). `parts` must return true for it. */
  readonly actor?: string
  readonly from?: string | null
  readonly to?: string | null
  readonly trigger?: string | null
  readonly visibility?: Visibility
  readonly payload: Payload
  /** Siblings that this rune also concerns. Each joins the rune, or says that the rune does not concern it. */
  readonly moves?: ReadonlyArray<string>
}

/** The consequences of a step besides its runes. */
export interface Following<A> {
  /** If omitted, the asker gets the committed state, as `Committed`. The first reply of a macrostep counts. */
  readonly reply?: unknown
  /** Replies to asks that were put off earlier, by token. */
  readonly settles?: ReadonlyArray<{ readonly ask: number; readonly reply: unknown }>
  readonly tells?: ReadonlyArray<Tell>
  readonly acts?: ReadonlyArray<A>
}

export interface Decision<S, A> extends Following<A> {
  readonly runes: ReadonlyArray<Draft>
  /**
   * The state that `apply` of the runes would give, if `decide` knows it anyway. It is used only if
   * the runes are stored exactly as they were decided. A test compares the two.
   */
  readonly state?: S
}

/** The effect of a sibling's rune on this actor. */
export interface Joined<S, A> extends Following<A> {
  /** The state that `apply(state, rune)` would give, if `join` knows it anyway. */
  readonly state?: S
  /** Further siblings that the same rune concerns. */
  readonly moves?: ReadonlyArray<string>
}

/** The facts that `decide` can read. Valid only during the call. */
export interface Context {
  /** Time of this macrostep, ms since the epoch; the `at` of all its runes. For a timer, not before its deadline. */
  readonly now: number
  /** The eventId that the first rune of this decision will get. In `join`: the eventId of the rune. */
  readonly nextId: number
  /** The seq that the first rune of this decision will get in its stream. In `join`: the seq of the rune. */
  readonly nextSeq: number
  /** The rune that caused this message: one of this macrostep, or the one that the sender named. */
  readonly cause: Cause | null
  /** Token of the ask that is being handled, for `LATER`; 0 for a tell. */
  readonly ask: number
  readonly self: Ref<never>
  /** A sibling, as the target of a tell. Throws if no sibling has this name. */
  readonly ref: <M>(actor: string) => Ref<M>
  /** The current state of a sibling within this macrostep: a plain read, consistent by construction. */
  readonly read: <T>(actor: string) => T
  /** True if the scope has an actor with this name now. */
  readonly has: (actor: string) => boolean
}

export interface Timer<M> {
  readonly key: string
  /** Start of the timer, ms since the epoch. Must not change while the key is the same. */
  readonly since: number
  /** ms after `since`; Infinity for no limit. */
  readonly after: number
  readonly message: M
  /** seq of the rune that set the timer: the cause of its message. */
  readonly seq?: number
}

/** Work that runs in parallel with the mail while the state lists it. When it leaves the list, it is interrupted. */
export interface Activity {
  readonly name: string
  /** The same name with another key is another activity: it begins when the one before has ended. */
  readonly key: string | number
  /** seq of the rune that started the activity. */
  readonly seq?: number
}

export interface Acting<S, M, E = unknown> {
  readonly self: ActorHandle<S, M, E>
  /** The state after the rune that this action or activity follows from. */
  readonly state: S
  readonly cause: Cause | null
}

export interface EventSourcedActor<S, M, A = never, E = never, R = never> {
  readonly initial: S
  readonly decide: (state: S, message: M, context: Context) => Decision<S, A> | Refusal | Refuse<E>
  /** Pure, and depends only on the rune. `isJoined`: a sibling's rune, which names this actor in `moves`. */
  readonly apply: (state: S, rune: Rune, isJoined: boolean) => S
  /** Handles a sibling's rune that names this actor in `moves`; undefined if it does not concern this actor. */
  readonly join?: (state: S, rune: Rune, context: Context) => Joined<S, A> | Refusal | Refuse<E> | undefined
  /** True for the name of a part whose runes belong to this actor (`draft.actor`). */
  readonly parts?: (actor: string) => boolean
  /** Returns true if postponed mail is to be retried. Default: whenever the state is another object. */
  readonly comesBack?: (before: S, after: S) => boolean
  /**
   * For an index over states that are ahead of the log, such as unique claims. Called when a
   * macrostep is accepted, and with the two states exchanged when it is undone.
   */
  readonly stepped?: (before: S, after: S) => void
  /** `began`: when the actor was first started, ms since the epoch. For a state that no rune has entered. */
  readonly timers?: (state: S, began: number) => ReadonlyArray<Timer<M>>
  readonly activities?: (state: S) => ReadonlyArray<Activity>
  /** True for a committed state in which the scope ends by itself, normally, after its actions. */
  readonly ends?: (state: S) => boolean
  /** Makes the error for a refusal. Default: an error with the message's tag and the reason. */
  readonly refused?: (actor: string, state: S, message: M, why: Refused["why"]) => Refused
  /**
   * Called after the commit, in order, never repeated. An Effect must end before the next action
   * begins, but not before the next mail.
   */
  readonly perform?: (action: A, acting: Acting<S, M, E>) => Effect.Effect<void, unknown, R> | void
  /** Runs an activity. A failure crashes the scope. */
  readonly run?: (activity: Activity, acting: Acting<S, M, E>) => Effect.Effect<void, unknown, R | Scope.Scope>
}

/** Returns its argument; it only infers the types. */
export const actor = <S, M, A = never, E = never, R = never>(
  definition: EventSourcedActor<S, M, A, E, R>
): EventSourcedActor<S, M, A, E, R> => definition
