/** Verb: a procedure of the protocol as doors that are no socket call it: by name, with values as JSON has them. */
import type { Effect, Schema, Stream } from "effect"
import type { StorageError } from "../core/event-log/EventLog.ts"
import type { CommandRefused } from "./Messages.ts"

export type Problem = CommandRefused | StorageError

/** The caller, as the door knows it. */
export interface Asker {
  readonly by: string
}

/** The form of a verb: all that is known of it without a daemon. */
export interface VerbForm {
  readonly name: string
  /** True: nothing is changed by it. */
  readonly reads: boolean
  /** True: it answers with many values. */
  readonly streams: boolean
  /** Schemas of what a door takes and answers; of the payload undefined: it takes nothing. */
  readonly payload: Schema.Codec<unknown, unknown> | undefined
  readonly success: Schema.Codec<unknown, unknown>
}

export interface Verb extends VerbForm {
  /** Answers with one value. */
  readonly call: (payload: unknown, asker: Asker) => Effect.Effect<unknown, Problem>
  readonly stream: (payload: unknown, asker: Asker) => Stream.Stream<unknown, Problem>
}

export type Verbs = ReadonlyMap<string, Verb>
