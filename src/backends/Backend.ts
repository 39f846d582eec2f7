/**
 * Backend: one way to run an agent. Every backend keeps this one contract and
 * speaks this one vocabulary; worker, turn, tool, plate and budget read only that.
 *
 * A run lives in its Scope: closing it ends the whole process tree (SIGTERM,
 * grace, SIGKILL) and returns only when nothing of it is left.
 */
import { type Effect, Schema, type Scope, type Stream } from "effect"
import type { Outcome } from "../domain/Outcome.ts"

export type RunEvent =
  /** The agent is truly up; a process that dies before it said so has failed to start. */
  | { readonly _tag: "Started"; readonly pid?: number | undefined; readonly sessionId?: string | undefined }
  | { readonly _tag: "TurnStarted"; readonly turnId: string }
  /** Text of the agent, or a line of a command's output (`stream` says which). */
  | { readonly _tag: "Delta"; readonly stream: "stdout" | "stderr" | "assistant"; readonly text: string }
  | { readonly _tag: "ToolCall"; readonly callId: string; readonly tool: string; readonly arguments: unknown }
  | { readonly _tag: "ApprovalRequested"; readonly callId: string; readonly reason: string }
  | { readonly _tag: "ToolProgress"; readonly callId: string; readonly chunk: string }
  | { readonly _tag: "ToolResult"; readonly callId: string; readonly status: string; readonly output: unknown }
  | { readonly _tag: "Usage"; readonly inputTokens: number; readonly outputTokens: number; readonly usd?: number }
  | { readonly _tag: "TurnCompleted"; readonly turnId: string }
  | { readonly _tag: "TurnError"; readonly turnId: string; readonly detail: string }
  /** Always the last event, and only when the process tree is gone. */
  | { readonly _tag: "Exited"; readonly outcome: Outcome }

/** What a run is started from. */
export interface RunSpec {
  /** Never used twice; durable before the spawn, and `AGENTD_RUN` in the child's environment. */
  readonly runId: string
  readonly agent: string
  readonly prompt: string
  /** Absolute. */
  readonly cwd: string
  readonly env: { readonly [name: string]: string }
}

/** The run could not be started. `fatal`: trying again will not help. */
export class BackendError extends Schema.TaggedError<BackendError>()("BackendError", {
  message: Schema.String,
  remedy: Schema.String,
  fatal: Schema.Boolean
}) {}

export interface Run {
  readonly runId: string
  /** Ends after `Exited`. Read it always: an unread pipe stops the child. */
  readonly events: Stream.Stream<RunEvent>
  /** Input for a run that takes some (turns); refused by those that do not. */
  readonly send: (text: string) => Effect.Effect<void, BackendError>
  /** Ends the turn, or the run where there are no turns. Returns at once; `Exited` says when it is over. */
  readonly interrupt: Effect.Effect<void>
  /** SIGKILL to the whole tree, now. */
  readonly kill: Effect.Effect<void>
}

export interface Backend {
  readonly name: string
  readonly start: (spec: RunSpec) => Effect.Effect<Run, BackendError, Scope.Scope>
}
