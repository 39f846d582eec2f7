/**
 * Backend: one way to run an agent. Every backend keeps this one contract and
 * speaks this one vocabulary; worker, turn, tool, plate and budget read only that.
 *
 * A run lives in its Scope: closing it ends the whole process tree (SIGTERM,
 * grace, SIGKILL) and returns only when nothing of it is left.
 *
 * A backend with `turns` takes one input after the other: the spec's prompt is its
 * first turn, `send` gives it the next one once the last has ended. Without them
 * the whole run is one turn, and the events of turns and tools do not come.
 */
import { Context, Effect, Schema, type Scope, type Stream } from "effect"
import type { ModelTokens } from "./gateway/Gateway.ts"
import type { ToldWindows } from "./gateway/LimitHeaders.ts"
import type { LimitsConfig } from "../config/LimitsConfig.ts"
import type { RunFile } from "./GivenFile.ts"
import type { Offers } from "./Offers.ts"
import type { Outcome } from "./Outcome.ts"
import type { Question } from "./Question.ts"

/** How a tool call ended, as its result says; `unknown`: nobody can tell what it did. */
export type ToolStatus = "success" | "error" | "unknown" | "sandbox_violation" | "timeout" | "cancelled" | "denied"

/** Something that a run has at work, or scheduled, beside its turns. */
export interface Work {
  /** Unique within the run. */
  readonly id: string
  readonly kind: "shell" | "sub-agent" | "wake-up" | "task"
  readonly text: string
  /** When it is due, ms since the epoch, where it says so. */
  readonly at?: number
}

/**
 * The place in what a run's programs have written that an event is from: the number of the program, the bytes up to
 * the end of the line, and of its output the number of the event in that line. Places of one of the two rise.
 */
export interface Place {
  readonly out?: readonly [program: number, end: number, event: number]
  readonly err?: readonly [program: number, end: number]
}

/** A place from which the next daemon can take a run up. What its programs wrote before is kept no longer. */
export interface Point {
  /** Bytes of the program's output before it, and the number of the last input. */
  readonly out: number
  readonly err: number
  readonly seq: number
  /** Knowledge of the backend's by then. */
  readonly state: unknown
}

/** An event of a run that outlives daemons has a place, where its program's output led to it: by that it is known again. */
export type RunEvent = Happening & { readonly place?: Place }

export type Happening =
  /** The agent is truly up; a process that dies before it said so has failed to start. */
  | { readonly _tag: "Started"; readonly pid?: number | undefined; readonly sessionId?: string | undefined }
  /** Of a run that was taken up, where all that it had said by then is told: the turn whose input it has and has not ended. */
  | { readonly _tag: "Resumed"; readonly given?: string | undefined }
  /** In the course of that: it had been given the input of this turn. */
  | { readonly _tag: "Given"; readonly input: string }
  /** The run works on the input with this id: the spec's, or that of a `send`. Only then may the input be taken for delivered. */
  | { readonly _tag: "TurnStarted"; readonly turnId: string }
  /** The run has begun a turn that nobody asked for, under a name of its own, unique within the run; a turn that it is given meanwhile takes it in. One that begins while a given turn waits is taken in untold. */
  | { readonly _tag: "TurnOpened"; readonly turnId: string; readonly why: string }
  /** The whole of what it has at work or scheduled beside its turns: it may begin a turn of its own for that. */
  | { readonly _tag: "Background"; readonly works: ReadonlyArray<Work> }
  /** Of a run that was taken up at a point: what its hearer knew by then. After `Started`. */
  | { readonly _tag: "Recalled"; readonly heard: unknown }
  /** A point of a run that outlives daemons: its hearer says `keep` once all up to there is durable. */
  | { readonly _tag: "Reached"; readonly point: Point }
  /** The models, modes and commands that the agent says it has; those that are left out are as before. */
  | ({ readonly _tag: "Offers" } & Offers)
  /** Text of the agent (a piece of it), or a line of a command's output (`stream` says which). */
  | { readonly _tag: "Delta"; readonly stream: "stdout" | "stderr" | "assistant" | "thinking"; readonly text: string }
  | {
      readonly _tag: "ToolCall"
      /** Unique within the run. */
      readonly callId: string
      readonly tool: string
      readonly arguments: unknown
      /** Known to have no side effects: by the backend itself, never by what an agent or a server says of it. */
      readonly readOnly: boolean
      /** A tool of the server that agentd gave the run, as the backend itself knows. */
      readonly voice?: boolean
    }
  /** The call waits for `answer`; each call asks at most once. `always`: whatever the agent's mode, a person decides. */
  | {
      readonly _tag: "ApprovalRequested"
      readonly callId: string
      readonly reason: string
      readonly always?: boolean
      /** Questions of a call that asks a person to choose, and not for leave: the choice comes with the answer. */
      readonly questions?: ReadonlyArray<Question>
    }
  /** The run waits for no answer to the call's question any more: it was decided elsewhere, and the call may go on. */
  | { readonly _tag: "ApprovalWithdrawn"; readonly callId: string }
  /** The call runs, where that is known before its result. */
  | { readonly _tag: "ToolStarted"; readonly callId: string }
  | {
      readonly _tag: "ToolProgress"
      readonly callId: string
      readonly stream: "stdout" | "stderr"
      readonly chunk: string
    }
  /** At most one for each call. Calls without one when their turn ends are unknown, or cancelled where it was interrupted. */
  | { readonly _tag: "ToolResult"; readonly callId: string; readonly status: ToolStatus; readonly output: unknown }
  /** Spending since the last such event: a difference, never a sum. At best one for each request to the model. */
  | {
      readonly _tag: "Usage"
      /** With what a cache gave and took. */
      readonly inputTokens: number
      readonly outputTokens: number
      /** The part of the input that came from a cache. */
      readonly cacheRead?: number
      /** The part of the input that was put into a cache. */
      readonly cacheWrite?: number
      readonly model?: string
      /** Said, not estimated; 0: the cost is told by another event. Left out: nobody said it. */
      readonly usd?: number | undefined
      /** The tokens that its newest request was given, and the most that its model takes; left out: not told. */
      readonly context?: { readonly used: number; readonly window?: number }
    }
  /** Sums of all that the run has spent, as the gateway on its way to its model counts them: since it opened the route of this name. */
  | { readonly _tag: "Passed"; readonly route: string; readonly tokens: ReadonlyArray<ModelTokens> }
  /** The limits on its account's use, as its provider tells them. */
  | ({ readonly _tag: "Windows" } & ToldWindows)
  /** The conversation had grown too long for its model, and was made shorter. Sizes in tokens, estimated. */
  | {
      readonly _tag: "Compacted"
      readonly from: number
      readonly to: number
      readonly cutResults: number
      /** Entries that a summary stands for now; 0: there is none. */
      readonly summarised: number
    }
  /** The run could not go on with the session that it was given: it has begun a new one and remembers nothing of before. */
  | { readonly _tag: "MemoryLost"; readonly text: string }
  /** A message that a person would want to know while nothing else is heard: "the API is overloaded; try 3 of 10". */
  | {
      readonly _tag: "Notice"
      readonly text: string
      /** A trouble that goes on, by its name, until a notice says that it is over. */
      readonly lasting?: { readonly about: string; readonly isOver: boolean }
      /** Set where the run asks its model again by itself; `since`: ms since the epoch, left out: since now. */
      readonly retries?: { readonly since?: number }
    }
  /** Each turn that was started or opened ends with exactly one of these three, but an opened one that was taken in. `output`: its last answer, in full. */
  | { readonly _tag: "TurnCompleted"; readonly turnId: string; readonly output: string }
  /** After `interruptTurn`, whoever asked for it; the run goes on. `output`: what there was of the answer. */
  | { readonly _tag: "TurnInterrupted"; readonly turnId: string; readonly output: string }
  | {
      readonly _tag: "TurnError"
      readonly turnId: string
      /** "rate_limit", "overloaded", "auth", "overflow", "refusal", "max_tokens", "stream", "server", "invalid_request" … */
      readonly errorType: string
      readonly message: string
      /** True where the turn's input may succeed when it is asked again. */
      readonly retry: boolean
      /** True: the run takes the next turn all the same. Else it is about to end. */
      readonly goesOn?: boolean
    }
  /** Always the last event, and only when the process tree is gone. After a turn's error its outcome has that error's class. */
  | { readonly _tag: "Exited"; readonly outcome: Outcome }

/** A server of the Model Context Protocol that agentd gives a run. */
export interface GivenServer {
  readonly argv: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
  /** Files and folders that it is made of: a confined run sees them, too. */
  readonly files?: ReadonlyArray<string>
}

/** A run's own way to the daemon: what comes by it is from that run. */
export interface RunSocket {
  /** Holds the socket and nothing else: a confined run sees this folder. */
  readonly folder: string
  readonly path: string
}

export interface RunSpec {
  /** Never used twice; durable before the spawn, and `AGENTD_RUN` in the child's environment. */
  readonly runId: string
  readonly agent: string
  /** The first turn's id, never used twice. */
  readonly turnId: string
  /** The first turn's input. */
  readonly prompt: string
  /** Files that come with it, in the order in which it names them. */
  readonly files?: ReadonlyArray<RunFile>
  /** Absolute. The agent's workspace: what its tools may touch. */
  readonly cwd: string
  readonly env: { readonly [name: string]: string }
  /** Go on with this session of the backend's own; `fork`: as a copy, since it is open elsewhere. */
  readonly resume: { readonly sessionId: string; readonly fork: boolean } | undefined
  /** How its calls are decided (`approvals.mode`), for an agent that must be told to ask; left out, as it starts. */
  readonly approvals?: "read_only" | "auto" | "full_access"
  /** The part of the machine that it may take; left out, nothing holds it. */
  readonly limits?: LimitsConfig | undefined
  /** Servers that the agent is given besides its own, by name: agentd's voice among them. */
  readonly mcp: { readonly [name: string]: GivenServer }
  /** Not there: the daemon is reached as anybody reaches it. */
  readonly socket?: RunSocket
  /** The run is there, begun by a daemon before, and is taken up; `isUp`: it had said that it had started. */
  readonly adopt?: { readonly isUp: boolean }
}

/** The run could not be started, or does not take this now. `fatal`: trying again will not help. */
export class BackendError extends Schema.TaggedError<BackendError>()("BackendError", {
  message: Schema.String,
  remedy: Schema.String,
  fatal: Schema.Boolean
}) {}

/** Receives a notice of what a run has left behind, after the last event of the run. */
export const Left = Context.Reference<(text: string) => Effect.Effect<void>>("agentd/backends/Left", {
  defaultValue: () => (text) => Effect.logWarning(text)
})

export interface TurnInput {
  readonly turnId: string
  readonly text: string
  /** Files that come with it, in the order in which it names them. */
  readonly files?: ReadonlyArray<RunFile>
}

export type Decision =
  /** `answers`: to the call's questions, one each, or a single one to all of them. */
  | { readonly behavior: "allow"; readonly answers?: ReadonlyArray<string> }
  /** `words`: the message is a person's, and the agent is to hear it. */
  | { readonly behavior: "deny"; readonly message: string; readonly interrupt?: boolean; readonly words?: boolean }

export interface Choosing {
  readonly model: string | null
  readonly mode: string | null
}

export interface Run {
  readonly runId: string
  /** Ends after `Exited`. Read it always: an unread pipe stops the child. */
  readonly events: Stream.Stream<RunEvent>
  /** Starts the next turn; refused while one is active, and by a run without turns. */
  readonly send: (input: TurnInput) => Effect.Effect<void, BackendError>
  /** Answers a call that asked. One that waits no more is left alone. */
  readonly answer: (callId: string, decision: Decision) => Effect.Effect<void>
  /** Ends one call, where the backend can; else nothing. Its result still comes. */
  readonly cancelCall: (callId: string) => Effect.Effect<void>
  /**
   * Takes another model or mode from now on, and answers when the agent says that it has; left out, a new run takes it.
   * Null: as it is.
   */
  readonly choose?: (choice: Choosing) => Effect.Effect<void, BackendError>
  /** The next daemon takes the run up at this point; `heard`: what its hearer knew by then. */
  readonly keep?: (point: Point, heard: unknown) => Effect.Effect<void>
  /** Whether it is kept for another daemon; left out, it ends with this one. */
  readonly outlives?: () => boolean
  /** Ends the turn at the next safe boundary, and not the run. Without turns, the run. Returns at once. */
  readonly interruptTurn: Effect.Effect<void>
  /**
   * Ends what the run's programs have begun in so many ms up to now, where they do not do it themselves soon; the commands
   * of what was ended so. Left out: an interrupt leaves nothing.
   */
  readonly endBegun?: (ms: number) => Effect.Effect<ReadonlyArray<string>, { readonly message: string }>
  /** Ends the run in order, as a success where no turn was active. Returns at once; `Exited` says when it is over. */
  readonly end: Effect.Effect<void>
  /** SIGKILL to the whole tree, now. */
  readonly kill: Effect.Effect<void>
}

export interface Backend {
  readonly name: string
  /** Whether a run takes one turn after the other. */
  readonly turns: boolean
  /** `cancelCall` works: the calls are its own to run, and a limit on their time holds. */
  readonly runsTools?: boolean
  /** Whether the run, begun by a daemon before, is there to be taken up; left out, none ever is. */
  readonly holds?: (runId: string) => Effect.Effect<boolean>
  /** Ends a run that an earlier daemon left and nobody takes up; answers when nothing of it is left. */
  readonly drop?: (runId: string) => Effect.Effect<void>
  /** The run's end is known for good: nothing of it is needed any more. */
  readonly forget?: (runId: string) => Effect.Effect<void>
  /** A run of that id is about to begin, or is not after all: what it can do before is done. Nothing of the run is there yet. */
  readonly expect?: (runId: string, comes: boolean) => void
  readonly start: (spec: RunSpec) => Effect.Effect<Run, BackendError, Scope.Scope>
}
