/**
 * EventSourcedActor: the type with which an actor is defined, as data and pure functions.
 *
 *     { initial, decide, apply, join, timers, activities, ends, perform, run }
 *
 * `decide` returns the consequences of a message as data: runes, tells, actions, and a reply. It reads no clock and
 * does no I/O. Only `apply` changes the state. A CommitScope interprets the result. It appends the runes of all actors
 * of a macrostep together, then sends the replies, then performs the actions. States are immutable plain data.
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
   * True: the message is handled in a separate macrostep, after the mail that is already queued. False: a message to an
   * actor of the same scope is handled in this macrostep.
   */
  readonly later: boolean
}

export const tell = <M>(to: Ref<M>, message: M): Tell => ({ to, message, later: false })

/**
 * Creates a tell that is handled later, after the mail that is already queued. Use it for actors that send messages in
 * a cycle, and for work in several steps.
 */
export const later = <M>(to: Ref<M>, message: M): Tell => ({ to, message, later: true })

export type Refusal =
  /** The message came too early: it is postponed until the state changes. */
  | "postpone"
  /** The message came too late: it is discarded, counted, and logged at debug level. */
  | "stale"
  /** The sender has a bug. If the sender is an actor of the same scope, the whole macrostep is refused. */
  | "illegal"

/** A refusal with an error of the actor. The ask fails with `error`, and the whole macrostep is refused. */
export class Refuse<out E = unknown> {
  readonly error: E
  constructor(error: E) {
    this.error = error
  }
}

/** A reply that defers the ask. A later message answers the ask, using its token. */
export const LATER: unique symbol = Symbol.for("agentd/event-actor/LATER")

/** A rune as `decide` returns it. The macrostep adds id, seq, stream, time and cause. */
export interface Draft {
  readonly kind: string
  /** Name of a part of the actor, such as a seat or a tool call; `parts` must return true for it. */
  readonly actor?: string
  readonly from?: string | null
  readonly to?: string | null
  readonly trigger?: string | null
  readonly visibility?: Visibility
  readonly payload: Payload
  /**
   * Names of siblings (other actors of the scope) whose state this rune can also change. Each sibling handles the rune
   * with its function `join`.
   */
  readonly moves?: ReadonlyArray<string>
}

/** The consequences of a message, other than its runes. */
export interface Following<A> {
  /**
   * Reply to the ask. If omitted, the asker receives a `Committed` with the committed state. If a macrostep has several
   * replies, the first one is used.
   */
  readonly reply?: unknown
  /** Replies to asks that were deferred earlier with `LATER`. `ask` is the token of the ask. */
  readonly settles?: ReadonlyArray<{ readonly ask: number; readonly reply: unknown }>
  readonly tells?: ReadonlyArray<Tell>
  readonly acts?: ReadonlyArray<A>
}

export interface Decision<S, A> extends Following<A> {
  readonly runes: ReadonlyArray<Draft>
  /**
   * Optional: the state after the runes, if `decide` has already computed it. It must equal the state that `apply`
   * computes. The system uses it only if the log stores the runes unchanged. Tests compare the two states.
   */
  readonly state?: S
}

/** The effect on an actor of a rune that one of its siblings has written. */
export interface Joined<S, A> extends Following<A> {
  /** Optional: the state after the rune, if `join` has computed it. Must equal the state that `apply` computes. */
  readonly state?: S
  /** Names of further siblings whose state the same rune can change. */
  readonly moves?: ReadonlyArray<string>
}

/** The data that `decide` and `join` can read. The object is valid only during the call. */
export interface Context {
  /**
   * Time of this macrostep, in ms since the epoch; all its runes have this time. If a timer sent the message, the time
   * is not before the timer's deadline.
   */
  readonly now: number
  /** In `decide`: the eventId that the decision's first rune will get. In `join`: the eventId of the sibling's rune. */
  readonly nextId: number
  /** In `decide`: the seq in the stream that its first rune will get. In `join`: the seq of the sibling's rune. */
  readonly nextSeq: number
  /** Cause of this message: a rune of this macrostep, or the cause that the sender passed. Null: no cause. */
  readonly cause: Cause | null
  /** Token of the current ask, with which a later message can answer it (`LATER`); 0: the message is a tell. */
  readonly ask: number
  readonly self: Ref<never>
  /** Returns a reference to a sibling. Throws if no sibling has this name. */
  readonly ref: <M>(actor: string) => Ref<M>
  /** Returns the current state of a sibling, including the changes of this macrostep. */
  readonly read: <T>(actor: string) => T
  readonly has: (actor: string) => boolean
}

export interface Timer<M> {
  readonly key: string
  /** Start of the timer, in ms since the epoch. It must not change while the key stays the same. */
  readonly since: number
  /** Duration of the timer in ms after `since`; Infinity: the timer never ends. */
  readonly after: number
  readonly message: M
  /** Sequence number of the rune that set the timer. This rune becomes the cause of the timer's message. */
  readonly seq?: number
}

/**
 * Work that runs while the actor handles mail. It runs as long as `activities` returns it for the current state; then
 * it is interrupted.
 */
export interface Activity {
  readonly name: string
  /**
   * Distinguishes activities with the same name. If the key changes, the old activity is interrupted, and the new one
   * starts when the old one has ended.
   */
  readonly key: string | number
  /** Sequence number of the rune that started the activity. */
  readonly seq?: number
}

export interface Acting<S, M, E = unknown> {
  readonly self: ActorHandle<S, M, E>
  /** The actor's state after the rune that caused this action or activity. */
  readonly state: S
  readonly cause: Cause | null
}

export interface EventSourcedActor<S, M, A = never, E = never, R = never> {
  readonly initial: S
  readonly decide: (state: S, message: M, context: Context) => Decision<S, A> | Refusal | Refuse<E>
  /** Returns the state after a rune. Pure. `isJoined`: a sibling wrote the rune, and its `moves` names this actor. */
  readonly apply: (state: S, rune: Rune, isJoined: boolean) => S
  /** Handles a sibling's rune whose `moves` names this actor. Undefined: the rune does not concern this actor. */
  readonly join?: (state: S, rune: Rune, context: Context) => Joined<S, A> | Refusal | Refuse<E> | undefined
  /** Returns true if `actor` names a part of this actor. The part's runes belong to this actor. See `Draft.actor`. */
  readonly parts?: (actor: string) => boolean
  /** Returns true if postponed mail is retried after this change of state. Default: if the state is another object. */
  readonly comesBack?: (before: S, after: S) => boolean
  /**
   * Called when a macrostep is accepted, before its runes are durable; used to maintain an index, for example of unique
   * names. If the macrostep is undone, the function is called again with the two states exchanged.
   */
  readonly stepped?: (before: S, after: S) => void
  /**
   * Returns the timers of a state. `began`: when the actor was first started, in ms since the epoch. Timers of the
   * initial state, which no rune has entered, start at this time.
   */
  readonly timers?: (state: S, began: number) => ReadonlyArray<Timer<M>>
  readonly activities?: (state: S) => ReadonlyArray<Activity>
  /** Returns true if the scope ends normally when this state is committed and all actions are done. */
  readonly ends?: (state: S) => boolean
  /** Creates the error for a refused message. Default: an error with the message's tag and the reason. */
  readonly refused?: (actor: string, state: S, message: M, why: Refused["why"]) => Refused
  /**
   * Performs an action after its macrostep is committed. Actions run in order and are never repeated. If an action is
   * an Effect, the next action waits for its end; mail is handled meanwhile.
   */
  readonly perform?: (action: A, acting: Acting<S, M, E>) => Effect.Effect<void, unknown, R> | void
  /** Runs an activity. If it fails, the scope crashes. */
  readonly run?: (activity: Activity, acting: Acting<S, M, E>) => Effect.Effect<void, unknown, R | Scope.Scope>
}

/** Returns the definition unchanged. The function exists only so that TypeScript infers the types. */
export const actor = <S, M, A = never, E = never, R = never>(
  definition: EventSourcedActor<S, M, A, E, R>
): EventSourcedActor<S, M, A, E, R> => definition
