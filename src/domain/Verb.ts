/**
 * Verb: a procedure of the protocol for entry points other than the socket (HTTP, MCP): called by name, with JSON
 * values.
 */
import type { Effect, Schema, Stream } from "effect"
import type { StorageError } from "../core/event-log/EventLog.ts"
import type { CommandRefused } from "./Messages.ts"

export type Problem = CommandRefused | StorageError

/** The caller, as the entry point knows it. */
export interface Asker {
  readonly by: string
}

/** The shape of a verb: everything that is known about it without a daemon. */
export interface VerbForm {
  readonly name: string
  /** True: it changes nothing. */
  readonly reads: boolean
  /** True: it answers with a stream of values. */
  readonly streams: boolean
  /** Schemas of the payload and the answer; undefined payload: it takes none. */
  readonly payload: Schema.Codec<unknown, unknown> | undefined
  readonly success: Schema.Codec<unknown, unknown>
}

export interface Verb extends VerbForm {
  /** Returns one value. */
  readonly call: (payload: unknown, asker: Asker) => Effect.Effect<unknown, Problem>
  readonly stream: (payload: unknown, asker: Asker) => Stream.Stream<unknown, Problem>
}

export type Verbs = ReadonlyMap<string, Verb>
