/**
 * Backend: the contract that every way to run an agent implements. The rest of agentd sees runs only through these
 * types and events.
 *
 * A run lives in its Scope. Closing the scope ends the whole process tree (SIGTERM, grace period, SIGKILL) and returns
 * when all processes have ended.
 *
 * A backend with `turns` takes one input after the other. The spec's prompt is the first turn; `send` starts the next
 * one after a turn has ended. Without `turns` the whole run is one turn, and no events about turns and tools are sent.
 */
import { Context, type Duration, Effect, Schema, type Scope, type Stream } from "effect"
import type { ModelTokens } from "./gateway/Gateway.ts"
import type { ToldWindows } from "./gateway/LimitHeaders.ts"
import type { LimitsConfig } from "../config/LimitsConfig.ts"
import type { RunFile } from "./AttachedFile.ts"
import type { AgentOptions } from "./AgentOptions.ts"
import type { Outcome } from "./Outcome.ts"
import type { Question } from "./Question.ts"

/** How a tool call ended, according to its result. `unknown`: the effects of the call are not known. */
export type ToolStatus = "success" | "error" | "unknown" | "sandbox_violation" | "timeout" | "cancelled" | "denied"

/** Background work of a run: work that continues, or is scheduled, outside the run's turns. */
export interface Work {
  /** Id of the work, unique within the run. */
  readonly id: string
  readonly kind: "shell" | "sub-agent" | "wake-up" | "task"
  readonly text: string
  /** When the work is due, ms since the epoch; omitted if unknown. */
  readonly at?: number
}

/**
 * Position of an event in the output of the run's programs. `out` contains the program's number, the byte offset of the
 * line's end and the event's number within that line. `err` contains the first two. Positions of one stream only
 * increase.
 */
export interface Place {
  readonly out?: readonly [program: number, end: number, event: number]
  readonly err?: readonly [program: number, end: number]
}

/** A checkpoint from which the next daemon can resume the run. Output before it is no longer stored. */
export interface Point {
  /**
   * Number of bytes of the program's stdout and stderr before the checkpoint, and the sequence number of the last
   * input.
   */
  readonly out: number
  readonly err: number
  readonly seq: number
  /** The backend's own state at the checkpoint. */
  readonly state: unknown
}

/**
 * An event of a run. If the run can survive a daemon restart, an event from the program's output has a `place`. By its
 * `place`, an event that is sent twice is recognized.
 */
export type RunEvent = Happening & { readonly place?: Place }

export type Happening =
  /** The agent has started. A process that exits before this event has failed to start. */
  | { readonly _tag: "Started"; readonly pid?: number | undefined; readonly sessionId?: string | undefined }
  /**
   * All earlier output of a resumed run has been reported. `given`: id of the unfinished turn whose input the run has
   * already received.
   */
  | { readonly _tag: "Resumed"; readonly given?: string | undefined }
  /** Sent while a run is being resumed: the run had already received the input of this turn before. */
  | { readonly _tag: "Given"; readonly input: string }
  /**
   * The run has begun this turn. `turnId` comes from the run's spec or from `send`. From now on, the turn's input
   * counts as delivered.
   */
  | { readonly _tag: "TurnStarted"; readonly turnId: string }
  /**
   * The run has begun a turn by itself. The backend chooses the turn id, unique within the run. If agentd sends a turn
   * meanwhile, that turn absorbs this one. If a turn from agentd is already waiting, it absorbs the new turn and this
   * event is not sent.
   */
  | { readonly _tag: "TurnOpened"; readonly turnId: string; readonly why: string }
  /**
   * The run's background work: everything that is running or scheduled outside its turns. The run can begin a turn by
   * itself because of such work.
   */
  | { readonly _tag: "Background"; readonly works: ReadonlyArray<Work> }
  /**
   * Sent after `Started` if the run was resumed at a checkpoint. `heard`: the subscriber's state that was stored with
   * the checkpoint.
   */
  | { readonly _tag: "Recalled"; readonly heard: unknown }
  /**
   * A checkpoint of a run that survives daemon restarts. The subscriber calls `keep` once everything before it is
   * durable.
   */
  | { readonly _tag: "Reached"; readonly point: Point }
  /** The models, modes and commands that the agent offers. Omitted fields are unchanged. */
  | ({ readonly _tag: "Offers" } & AgentOptions)
  /** A piece of the agent's text, or a line of a command's output; `stream` says which. */
  | { readonly _tag: "Delta"; readonly stream: "stdout" | "stderr" | "assistant" | "thinking"; readonly text: string }
  | {
      readonly _tag: "ToolCall"
      /** Id of the call, unique within the run. */
      readonly callId: string
      readonly tool: string
      readonly arguments: unknown
      /**
       * True if the backend itself knows that the call has no side effects. A claim by the agent or by an MCP server is
       * never enough.
       */
      readonly readOnly: boolean
      /** True if the tool belongs to agentd's own MCP server, as far as the backend can tell. */
      readonly voice?: boolean
    }
  /**
   * The call waits for `answer`. Each call asks at most once. `always`: true if the user must decide, whatever the
   * approval mode is.
   */
  | {
      readonly _tag: "ApprovalRequested"
      readonly callId: string
      readonly reason: string
      readonly always?: boolean
      /**
       * Questions with options; set if the call asks the user to choose, not to approve. `answer` returns the choice.
       */
      readonly questions?: ReadonlyArray<Question>
    }
  /**
   * The run no longer waits for an answer about this call, because the call was decided elsewhere. The call may
   * continue.
   */
  | { readonly _tag: "ApprovalWithdrawn"; readonly callId: string }
  /** The call is running. Sent only if the backend knows this before the call's result. */
  | { readonly _tag: "ToolStarted"; readonly callId: string }
  | {
      readonly _tag: "ToolProgress"
      readonly callId: string
      readonly stream: "stdout" | "stderr"
      readonly chunk: string
    }
  /**
   * The result of a call. Each call has at most one. When a turn ends, calls without a result count as `unknown`, or as
   * `cancelled` if the turn was interrupted.
   */
  | { readonly _tag: "ToolResult"; readonly callId: string; readonly status: ToolStatus; readonly output: unknown }
  /** Usage since the last such event: a difference, never a sum. Ideally one event for each request to the model. */
  | {
      readonly _tag: "Usage"
      /** Input tokens, including `cacheRead` and `cacheWrite`. */
      readonly inputTokens: number
      readonly outputTokens: number
      readonly cacheRead?: number
      readonly cacheWrite?: number
      readonly model?: string
      /**
       * Cost in US dollars as reported, never estimated. 0 if another event reports the cost; omitted if no cost was
       * reported.
       */
      readonly usd?: number | undefined
      /**
       * Tokens in the context of the newest request, and the size of the model's context window. Omitted if they are
       * not reported.
       */
      readonly context?: { readonly used: number; readonly window?: number }
    }
  /**
   * The run is about to make the next request to its model in the same turn. `go` lets it, once the usage until here is
   * counted. It is not run if the turn has ended.
   */
  | { readonly _tag: "GoesOn"; readonly go: Effect.Effect<void> }
  /**
   * Total tokens that the run has used, as counted by the gateway in front of its model. The count starts when the
   * gateway opens the route with this name.
   */
  | { readonly _tag: "Passed"; readonly route: string; readonly tokens: ReadonlyArray<ModelTokens> }
  /** The usage limits of the run's account, as its provider reports them. */
  | ({ readonly _tag: "Windows" } & ToldWindows)
  /** The conversation was too long for its model and was shortened. Sizes are estimated tokens. */
  | {
      readonly _tag: "Compacted"
      readonly from: number
      readonly to: number
      readonly cutResults: number
      /** Number of entries that a summary now replaces; 0 if there is no summary. */
      readonly summarised: number
    }
  /** The run could not resume its session. It has begun a new session, which contains nothing of the earlier one. */
  | { readonly _tag: "MemoryLost"; readonly text: string }
  /** A message for the user that describes a wait, for example "the API is overloaded; try 3 of 10". */
  | {
      readonly _tag: "Notice"
      readonly text: string
      /** Name of a lasting problem. The problem lasts until a notice with `isOver` true. */
      readonly lasting?: { readonly about: string; readonly isOver: boolean }
      /**
       * Set if the run retries its model request by itself. `since`: when the retries began, ms since the epoch;
       * omitted if they begin now.
       */
      readonly retries?: { readonly since?: number }
    }
  /**
   * Each started or opened turn ends with exactly one TurnCompleted, TurnInterrupted or TurnError, unless the turn was
   * absorbed or the process ended: then `Exited` ends the turn, too. `output`: the turn's last answer, complete.
   */
  | { readonly _tag: "TurnCompleted"; readonly turnId: string; readonly output: string }
  /**
   * Sent after `interruptTurn`, or if the turn was interrupted elsewhere. The run continues. `output`: the answer up to
   * then.
   */
  | { readonly _tag: "TurnInterrupted"; readonly turnId: string; readonly output: string }
  | {
      readonly _tag: "TurnError"
      readonly turnId: string
      /**
       * Type of the error: "rate_limit", "overloaded", "auth", "overflow", "refusal", "max_tokens", "stream", "server"
       * or another.
       */
      readonly errorType: string
      readonly message: string
      /** True if the same input can succeed when it is sent again. */
      readonly retry: boolean
      /** True if the run can still take the next turn. False if it is about to end. */
      readonly goesOn?: boolean
    }
  /**
   * Always the last event, sent when all processes of the run have ended. After a `TurnError`, the outcome has the
   * class of that error.
   */
  | { readonly _tag: "Exited"; readonly outcome: Outcome }

/** A server of the Model Context Protocol that agentd gives a run. */
export interface GivenServer {
  readonly argv: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
  /** Files and folders that the server needs. A confined run can see them. */
  readonly files?: ReadonlyArray<string>
}

/** A socket to the daemon for one run. The daemon knows that every request on it comes from that run. */
export interface RunSocket {
  /** Folder that contains only the socket. A confined run can see this folder. */
  readonly folder: string
  readonly path: string
}

/** A file or folder that a confined run sees at another place: `target` in its work tree, which need not exist yet. */
export interface TreeMount {
  readonly source: string
  readonly target: string
  readonly writable: boolean
}

export interface RunSpec {
  /**
   * Id of the run, never reused. Stored durably before the program starts, and passed to the program as `AGENTD_RUN`.
   */
  readonly runId: string
  readonly agent: string
  /** Id of the first turn, never reused. */
  readonly turnId: string
  readonly prompt: string
  /** Files that belong to the first turn, in the order in which the prompt names them. */
  readonly files?: ReadonlyArray<RunFile>
  /** Absolute path of the agent's workspace, to which its tools are limited. */
  readonly cwd: string
  readonly mounts?: ReadonlyArray<TreeMount>
  readonly env: { readonly [name: string]: string }
  /** The session that the backend resumes. `fork`: resume a copy, because the session is open elsewhere. */
  readonly resume: { readonly sessionId: string; readonly fork: boolean } | undefined
  /**
   * Approval mode (`approvals.mode`). For agents that ask only if they are configured to ask. If omitted, the agent's
   * default applies.
   */
  readonly approvals?: "read_only" | "auto" | "full_access"
  /**
   * True if a rule denies or asks, so that the agent must ask about every call, if it has such a mode and its config
   * names no other.
   */
  readonly asksAll?: boolean
  /** Resource limits of the run. If omitted, the run is unlimited. */
  readonly limits?: LimitsConfig | undefined
  /** How long a tool call may run, for agents whose calls agentd itself performs. */
  readonly toolTimeout?: Duration.Duration
  /**
   * MCP servers for the agent, by name, in addition to those that the agent configures itself. Includes agentd's own
   * server.
   */
  readonly mcp: { readonly [name: string]: GivenServer }
  /** Socket for the run's requests to the daemon. If omitted, the run uses the daemon's public socket. */
  readonly socket?: RunSocket
  /** Set if an earlier daemon started the run and it is now resumed. `isUp`: the run had sent `Started`. */
  readonly adopt?: { readonly isUp: boolean }
}

/** The run could not be started, or cannot accept this input now. `fatal`: true if a retry will not help. */
export class BackendError extends Schema.TaggedError<BackendError>()("BackendError", {
  message: Schema.String,
  remedy: Schema.String,
  fatal: Schema.Boolean
}) {}

/**
 * Receives a notice about something that a run has left behind, for example a set-gid file. Called after the run's last
 * event.
 */
export const Left = Context.Reference<(text: string) => Effect.Effect<void>>("agentd/backends/Left", {
  defaultValue: () => (text) => Effect.logWarning(text)
})

export interface TurnInput {
  readonly turnId: string
  readonly text: string
  /** Files that belong to the turn, in the order in which the text names them. */
  readonly files?: ReadonlyArray<RunFile>
}

export type Decision =
  /** Allows the call. `answers`: one answer for each question of the call, or one answer for all of them. */
  | { readonly behavior: "allow"; readonly answers?: ReadonlyArray<string> }
  /** Denies the call. `words`: true if the user wrote the message, so that the agent must see it. */
  | { readonly behavior: "deny"; readonly message: string; readonly interrupt?: boolean; readonly words?: boolean }

/** The text that an agent gets after a denial, on every backend. */
export const denialOf = (message: string): string => `Your call was denied${message === "" ? "." : `: ${message}`}`

export interface Choosing {
  readonly model: string | null
  readonly mode: string | null
}

export interface Run {
  readonly runId: string
  /** Events of the run. The stream ends after `Exited`. Always read it: an unread pipe blocks the child. */
  readonly events: Stream.Stream<RunEvent>
  /** Starts the next turn. Fails while a turn is active, and for a run without turns. */
  readonly send: (input: TurnInput) => Effect.Effect<void, BackendError>
  /** Answers a call that waits for a decision. Does nothing if the call no longer waits. */
  readonly answer: (callId: string, decision: Decision) => Effect.Effect<void>
  /** Ends one call if the backend can do that; otherwise does nothing. The call's result is still sent. */
  readonly cancelCall: (callId: string) => Effect.Effect<void>
  /**
   * Changes the model or mode from now on; null leaves it unchanged. Returns when the agent has confirmed the change.
   * If the method is omitted, the change needs a new run.
   */
  readonly choose?: (choice: Choosing) => Effect.Effect<void, BackendError>
  /**
   * Stores `point` as the checkpoint from which the next daemon resumes the run. `heard`: the subscriber's state at
   * that point.
   */
  readonly keep?: (point: Point, heard: unknown) => Effect.Effect<void>
  /** Whether the run survives this daemon. If omitted, the run ends with this daemon. */
  readonly outlives?: () => boolean
  /**
   * Ends the turn at the next safe boundary, but not the run. If the backend has no turns, this ends the run. Returns
   * at once.
   */
  readonly interruptTurn: Effect.Effect<void>
  /**
   * Ends the processes that the run's programs started in the last `ms` milliseconds, unless they end by themselves
   * shortly. Returns the commands of the processes that it ended. Omitted if an interrupt leaves no processes behind.
   */
  readonly endBegun?: (ms: number) => Effect.Effect<ReadonlyArray<string>, { readonly message: string }>
  /** Ends the run in an orderly way: a success if no turn was active. Returns at once; `Exited` reports the end. */
  readonly end: Effect.Effect<void>
  /** Sends SIGKILL to the whole process tree, now. */
  readonly kill: Effect.Effect<void>
}

export interface Backend {
  readonly name: string
  /** Whether a run can have several turns, one after another. */
  readonly turns: boolean
  /** True if `cancelCall` works: the backend runs the calls itself, so a time limit on calls takes effect. */
  readonly runsTools?: boolean
  /** Whether a run that an earlier daemon started still exists and can be resumed. If omitted, no run can. */
  readonly holds?: (runId: string) => Effect.Effect<boolean>
  /** Ends a run of an earlier daemon that will not be resumed. Returns when all processes of the run have ended. */
  readonly drop?: (runId: string) => Effect.Effect<void>
  /** Deletes everything that was stored for the run. Called when the run's end is recorded durably. */
  readonly forget?: (runId: string) => Effect.Effect<void>
  /**
   * Announces that a run with this id is about to start, or that it will not start after all (`comes` false). The
   * backend can then prepare. The run does not exist yet.
   */
  readonly expect?: (runId: string, comes: boolean) => void
  readonly start: (spec: RunSpec) => Effect.Effect<Run, BackendError, Scope.Scope>
}
