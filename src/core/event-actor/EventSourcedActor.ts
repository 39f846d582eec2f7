/**
 * EventSourcedActor: what an actor is, as data and pure functions.
 *
 *     { initial, decide, apply, join, timers, activities, ends, perform, run }
 *
 * `decide` answers what a message leads to, as data: runes, tells, actions, a reply. It
 * reads no clock and does no I/O. `apply` is the only way to a state. A CommitScope
 * interprets the answer: it appends the runes of all actors of one macrostep together,
 * then answers, then acts. States are immutable plain data.
 */
import type { Effect, Scope } from "effect"
import type { Cause, Payload, Rune, Visibility } from "../event-log/Rune.ts"
import type { ActorHandle, Ref } from "./ActorHandle.ts"
import type { Refused } from "./Refused.ts"

/** A message on its way to another actor: data, so that `decide` stays pure. */
export interface Tell {
  readonly to: Ref<never>
  readonly message: unknown
  /** True: a macrostep of its own, behind the mail that waits. Else, to an actor of the same scope: this very macrostep. */
  readonly later: boolean
}

export const tell = <M>(to: Ref<M>, message: M): Tell => ({ to, message, later: false })

/** For what goes round in a circle, and for work in pieces: other mail gets its turn in between. */
export const later = <M>(to: Ref<M>, message: M): Tell => ({ to, message, later: true })

/** Why a message did not move the actor. */
export type Refusal =
  /** Too early: kept until the state changes. */
  | "postpone"
  /** Lost a race: dropped with a trace. */
  | "stale"
  /** The sender's bug. From an actor of the same scope it refuses the whole macrostep. */
  | "illegal"

/** A refusal in the actor's own words: the asker fails with `error`. It refuses the whole macrostep. */
export class Refuse<out E = unknown> {
  readonly error: E
  constructor(error: E) {
    this.error = error
  }
}

/** In place of a reply: a later message settles the ask, by its token. */
export const LATER: unique symbol = Symbol.for("agentd/event-actor/LATER")

/** A rune as an actor decides it. The core adds id, seq, stream, time and cause. */
export interface Draft {
  readonly kind: string
  /** A part of the actor that has a name of its own (a seat, a tool call); `parts` must know it. */
  readonly actor?: string
  readonly from?: string | null
  readonly to?: string | null
  readonly trigger?: string | null
  readonly visibility?: Visibility
  readonly payload: Payload
  /** Siblings that this fact moves, too: each joins the rune, or says that the rune does not concern it. */
  readonly moves?: ReadonlyArray<string>
}

/** The consequences of a step besides its runes. */
export interface Following<A> {
  /** Left out: the asker gets the committed state, as `Committed`. The first reply of a macrostep counts. */
  readonly reply?: unknown
  /** Asks that were put off before, by their token. */
  readonly settles?: ReadonlyArray<{ readonly ask: number; readonly reply: unknown }>
  readonly tells?: ReadonlyArray<Tell>
  readonly acts?: ReadonlyArray<A>
}

export interface Decision<S, A> extends Following<A> {
  readonly runes: ReadonlyArray<Draft>
  /**
   * The state that `apply` of the runes gives, where `decide` knows it anyway. Taken only where
   * the runes are stored exactly as they were decided; a test compares the two.
   */
  readonly state?: S
}

/** The effect of a sibling's fact on this actor. */
export interface Joined<S, A> extends Following<A> {
  /** The state that `apply(state, rune)` gives, where `join` knows it anyway. */
  readonly state?: S
  /** Further siblings that the same fact moves. */
  readonly moves?: ReadonlyArray<string>
}

/** The facts that `decide` may read. Valid during the call only. */
export interface Context {
  /** The time of this macrostep, ms since the epoch: the `at` of all its runes. For a timer, not before its deadline. */
  readonly now: number
  /** The eventId that the first rune of this decision gets. In `join`: that of the rune. */
  readonly nextId: number
  /** The seq that the first rune of this decision gets in its stream. In `join`: that of the rune. */
  readonly nextSeq: number
  /** The rune that led here: of this macrostep, or the one that the sender gave. */
  readonly cause: Cause | null
  /** The ask that is being answered, for `LATER`; 0 for a tell. */
  readonly ask: number
  readonly self: Ref<never>
  /** A sibling, to be told. Throws where there is none of that name. */
  readonly ref: <M>(actor: string) => Ref<M>
  /** The state of a sibling as this macrostep has left it so far: a plain read, consistent by construction. */
  readonly read: <T>(actor: string) => T
  /** Whether the scope has such an actor now. */
  readonly has: (actor: string) => boolean
}

export interface Timer<M> {
  readonly key: string
  /** From when the time counts, ms since the epoch; the same moment for as long as the key is the same. */
  readonly since: number
  /** ms after `since`; infinite for no limit. */
  readonly after: number
  readonly message: M
  /** The rune that set it, by its seq: the cause of the message. */
  readonly seq?: number
}

/** Work that runs beside the mail while the state asks for it; an activity that leaves the list is interrupted. */
export interface Activity {
  readonly name: string
  /** The same name under another key is another activity: it begins when the one before has ended. */
  readonly key: string | number
  /** The rune that it follows from, by its seq. */
  readonly seq?: number
}

export interface Acting<S, M, E = unknown> {
  readonly self: ActorHandle<S, M, E>
  /** As the rune left it that this follows from. */
  readonly state: S
  readonly cause: Cause | null
}

export interface EventSourcedActor<S, M, A = never, E = never, R = never> {
  readonly initial: S
  readonly decide: (state: S, message: M, context: Context) => Decision<S, A> | Refusal | Refuse<E>
  /** Pure, and of the rune alone. `isJoined`: a sibling's rune, which names this actor in `moves`. */
  readonly apply: (state: S, rune: Rune, isJoined: boolean) => S
  /** Decides the effect of a sibling's rune that names this actor in `moves`; undefined where it does not concern it. */
  readonly join?: (state: S, rune: Rune, context: Context) => Joined<S, A> | Refusal | Refuse<E> | undefined
  /** Names of parts whose runes are this actor's (`draft.actor`). */
  readonly parts?: (actor: string) => boolean
  /** Postponed mail comes back when this says so; default: whenever the state is another object. */
  readonly comesBack?: (before: S, after: S) => boolean
  /**
   * For an index over states as stepped, ahead of the log: who is about to have what only one
   * may have. Called when a macrostep stands, and with the two exchanged when it is undone.
   */
  readonly stepped?: (before: S, after: S) => void
  /** `began`: when the actor was started first, ms since the epoch: for a state that no rune has entered. */
  readonly timers?: (state: S, began: number) => ReadonlyArray<Timer<M>>
  readonly activities?: (state: S) => ReadonlyArray<Activity>
  /** True for a committed state in which the scope ends by itself, normally, once it has acted. */
  readonly ends?: (state: S) => boolean
  /** How a refusal reads; default: the message's tag and why. */
  readonly refused?: (actor: string, state: S, message: M, why: Refused["why"]) => Refused
  /** After the commit, in order. An Effect is waited for before the next action begins; the mail goes on meanwhile. Not repeated. */
  readonly perform?: (action: A, acting: Acting<S, M, E>) => Effect.Effect<void, unknown, R> | void
  /** A failure is a crash of the scope. */
  readonly run?: (activity: Activity, acting: Acting<S, M, E>) => Effect.Effect<void, unknown, R | Scope.Scope>
}

/** Only names the types. */
export const actor = <S, M, A = never, E = never, R = never>(
  definition: EventSourcedActor<S, M, A, E, R>
): EventSourcedActor<S, M, A, E, R> => definition
