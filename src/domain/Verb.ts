/** Verb: a procedure of the control protocol in the form in which HTTP and MCP call it: by name, with JSON values. */
import type { Effect, Schema, Stream } from "effect"
import type { StorageError } from "../core/event-log/EventLog.ts"
import type { CommandRefused } from "./Messages.ts"

export type Problem = CommandRefused | StorageError

/** `by`: the caller's name, which the interface (HTTP or MCP) sets. */
export interface Asker {
  readonly by: string
}

/** Name and schemas of a verb. They are known even if no daemon is running. */
export interface VerbForm {
  readonly name: string
  /** True: the verb only reads, and changes nothing. */
  readonly reads: boolean
  /** True: the verb answers with a stream of values. False: the verb answers with one value. */
  readonly streams: boolean
  /** Schema of the payload; undefined: the verb takes no payload. */
  readonly payload: Schema.Codec<unknown, unknown> | undefined
  readonly success: Schema.Codec<unknown, unknown>
}

export interface Verb extends VerbForm {
  readonly call: (payload: unknown, asker: Asker) => Effect.Effect<unknown, Problem>
  readonly stream: (payload: unknown, asker: Asker) => Stream.Stream<unknown, Problem>
}

export type Verbs = ReadonlyMap<string, Verb>
