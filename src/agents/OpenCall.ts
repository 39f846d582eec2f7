/**
 * OpenCall: a tool call that has no result yet, as the calls of an agent hold it.
 */
import type { Deferred } from "effect"
import type { Run } from "../backends/Backend.ts"
import type { Question } from "../backends/Question.ts"
import type * as ToolMachine from "./ToolMachine.ts"
import type * as ToolActor from "./ToolActor.ts"

export interface OpenCall {
  readonly callId: string
  readonly actor: ToolActor.ToolActor
  readonly turnId: string
  readonly tool: string
  readonly arguments: string
  readonly readOnly: boolean
  readonly key: string
  /** The run that makes it, and its name there; undefined for a call of an earlier daemon. */
  readonly origin: { readonly run: Run; readonly id: string } | undefined
  /** It has asked, or is known to run. */
  asks: boolean
  /** Why a person is asked; null while nobody is. */
  reason: string | null
  /** What they are asked to choose; none: they are asked for leave. */
  questions: ReadonlyArray<Question>
  /** Its run has the answer. */
  answered: boolean
  /** What was answered when its run was over. */
  grant: Grant | undefined
  readonly ended: Deferred.Deferred<void>
}

/** An answer that holds for the same call when it is made again. */
export interface Grant {
  /** Who gave it. */
  readonly by: string
  readonly answers: ReadonlyArray<string> | null
}

/** What a person says to a call. */
export interface Answer {
  readonly behavior: "allow" | "deny"
  readonly reason: string
  /** To its questions, as they were typed. */
  readonly answers?: ReadonlyArray<string> | undefined
}

/** One call's result, as `turn.tools_finished` tells it. */
export interface Summary {
  readonly call_id: string
  readonly tool: string
  readonly status: ToolMachine.Status
}

/** A call of an earlier daemon, as the log tells it. */
export interface Recovered {
  readonly callId: string
  readonly snapshot: ToolActor.Snapshot
  readonly arguments: unknown
  readonly key: string
  readonly reason: string | null
  readonly questions: ReadonlyArray<Question>
}

/** A person is asked, and its run waits for the answer. */
export const waits = ({ answered, reason }: OpenCall): boolean => reason !== null && !answered
