/** Messages: shapes about agents that cross a boundary (control socket, other features), with their errors. */
import { Option, Schema, SchemaGetter } from "effect"
import { Command, Offer } from "../runs/Offers.ts"
import { Question } from "../runs/Question.ts"
import { Consequence } from "../config/ConfigChange.ts"
import { Reason, Word } from "./BoardMessages.ts"
import { codeOf, isRefusalCode, type RefusalCode, refusalCodes } from "./RefusalCode.ts"

/** A project of the daemon: one `agentd.jsonc`, one conversation. */
export const ProjectInfo = Schema.Struct({
  /** The conversation's id, and the stream of its runes. */
  conversation: Schema.String,
  name: Schema.String,
  /** Absolute path of its `agentd.jsonc`. */
  config: Schema.String,
  agents: Schema.Array(Schema.String),
  /** Problems of the current file; the last valid one is in force. */
  problems: Schema.Array(Schema.String),
  /** Since when the file has these problems according to the log, ms since the epoch. */
  since: Schema.optionalKey(Schema.Finite),
  /** Set if a person has stopped the whole project. */
  stopped: Schema.optionalKey(Schema.Struct({ by: Schema.String, since: Schema.Finite })),
  /** Set if the project's log is damaged, in words: the project is not loaded, and nothing of it runs. */
  damage: Schema.optionalKey(Schema.String),
  /** Agents whose spending limits take effect only after the request that exceeds them, or not at all, and why. */
  unmetered: Schema.optionalKey(Schema.Array(Schema.String)),
  /**
   * Set if nobody has agreed to the file's current text: its hash, and since when (ms since the epoch). The last
   * approved text is in force.
   */
  waits: Schema.optionalKey(
    Schema.Struct({
      hash: Schema.String,
      since: Schema.Finite,
      /** How often the file has changed since the last text that was in force. */
      changes: Schema.optionalKey(Schema.Int)
    })
  ),
  /**
   * Set if a person has dismissed the file's change at that time (ms since the epoch): nobody is asked until it changes
   * again.
   */
  kept: Schema.optionalKey(Schema.Struct({ hash: Schema.String, by: Schema.String, at: Schema.Finite }))
})
export type ProjectInfo = typeof ProjectInfo.Type

/** How a project's file differs from the config in force. */
export const ConfigChangeInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  config: Schema.String,
  /** Hash of the file's current text, to which a person agrees. Null: the file is invalid, see `problems`. */
  hash: Schema.NullOr(Schema.String),
  problems: Schema.Array(Schema.String),
  /** False: the text is in force already, or differs from it only in form. */
  waits: Schema.Boolean,
  /** A person has dismissed the change: it is still pending, but nobody is asked until the file changes again. */
  kept: Schema.optionalKey(Schema.Struct({ by: Schema.String, at: Schema.Finite })),
  /** Consequences of the change, the dangerous ones first. */
  consequences: Schema.Array(Consequence),
  /** Lines prefixed with `-`, `+` or a blank; `@ N`: the following lines begin at line N. */
  diff: Schema.Array(Schema.String)
})
export type ConfigChangeInfo = typeof ConfigChangeInfo.Type

export const AgentInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  backend: Schema.String,
  mode: Schema.Literals(["inbox", "loop"]),
  /** The agent that spawned it; undefined: the project's file names it. */
  parent: Schema.optionalKey(Schema.String),
  /** The role in a few words; empty: none is configured. */
  role: Schema.String,
  /** Groups that it belongs to; undefined: none. */
  labels: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The model that answers: reported by the run, otherwise chosen or configured; empty: unknown. */
  model: Schema.String,
  /** Tokens of its newest request, and the size of the model's context window; undefined: not reported. */
  context: Schema.optionalKey(Schema.Struct({ used: Schema.Finite, window: Schema.optionalKey(Schema.Finite) })),
  /** The word for people: who acts next. */
  word: Word,
  /** How its wait ends; null: it does not wait, or it waits only for a time. */
  reason: Schema.NullOr(Reason),
  /** State of the worker state machine. */
  state: Schema.String,
  /** When its word became true, ms since the epoch; 0 before the first move. */
  since: Schema.Finite,
  /** eventId of the rune that entered the state; 0 before the first move. */
  restsOn: Schema.Int,
  /** In plain words: what it does or waits for. */
  detail: Schema.String,
  /** When it continues by itself (cooling down, run limit), ms since the epoch. */
  nextAt: Schema.NullOr(Schema.Finite),
  runId: Schema.NullOr(Schema.String),
  pid: Schema.NullOr(Schema.Int),
  sessionSeq: Schema.Int,
  consecutiveErrors: Schema.Int,
  totalErrors: Schema.Int,
  maxConsecutiveErrors: Schema.Int,
  maxTotalErrors: Schema.Int,
  /** Number of messages that no confirmed run has carried yet. */
  inbox: Schema.Int,
  /** True: a turn, or a run without turns, is under way. */
  busy: Schema.optionalKey(Schema.Boolean),
  /** Whether its run survives a restart of the daemon; undefined: it has no run, or the run is not up yet. */
  outlives: Schema.optionalKey(Schema.Boolean),
  /** True: a budget of the agent, its project or the machine is exceeded and prevents its next turn. */
  spent: Schema.optionalKey(Schema.Boolean),
  /**
   * Why spending limits take effect only after the request that exceeds them, or not at all; undefined: they take
   * effect in time.
   */
  unmetered: Schema.optionalKey(Schema.String),
  /** True: it has stopped for good by itself; no person stopped it. */
  failed: Schema.optionalKey(Schema.Boolean),
  /** Number of messages that ended without an answer and wait for a person. */
  dropped: Schema.optionalKey(Schema.Int),
  cwd: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String)
})
export type AgentInfo = typeof AgentInfo.Type

/** A message to an agent that ended without an answer. */
export const DroppedInfo = Schema.Struct({
  messageId: Schema.String,
  from: Schema.String,
  /** Truncated, like the reason. */
  text: Schema.String,
  /** "refusal", "max_tokens", "max_turns" … */
  errorType: Schema.String,
  reason: Schema.String,
  /** ms since the epoch */
  since: Schema.Finite
})
export type DroppedInfo = typeof DroppedInfo.Type

/** Messages to an agent that it has not answered. */
export const BacklogInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  /** Oldest first. */
  dropped: Schema.Array(DroppedInfo),
  /** Number of older ones that are only counted. */
  more: Schema.Int,
  /** Bounds that the agent has reached; only a person can lift them. */
  bounds: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        eventId: Schema.Int,
        text: Schema.String,
        since: Schema.Finite,
        /** True: the agent takes no turn until a person answers. */
        holds: Schema.optionalKey(Schema.Boolean)
      })
    )
  ),
  /** Questions to a person that are not answered yet. */
  questions: Schema.optionalKey(
    Schema.Array(Schema.Struct({ eventId: Schema.Int, question: Schema.String, since: Schema.Finite }))
  ),
  /** Number of queued messages, including those to be retried. */
  held: Schema.Int,
  /** When the oldest of them arrived, ms since the epoch. */
  heldSince: Schema.NullOr(Schema.Finite)
})
export type BacklogInfo = typeof BacklogInfo.Type

/** The models, modes and commands that a person can choose for an agent. */
export const OffersInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  backend: Schema.String,
  /** Chosen by a person; null: as configured in the file. */
  model: Schema.NullOr(Schema.String),
  mode: Schema.NullOr(Schema.String),
  models: Schema.Array(Offer),
  modes: Schema.Array(Offer),
  /** The agent's own commands: `agentd send AGENT /NAME`. */
  commands: Schema.Array(Command),
  /** Source of these lists: a live run, an earlier run, or no run yet. */
  known: Schema.Literals(["live", "before", "not yet"])
})
export type OffersInfo = typeof OffersInfo.Type

/** Reply to a command; its effect is durable. */
export const Done = Schema.Struct({
  eventId: Schema.Int,
  /** In plain words: what was done. */
  message: Schema.String
})
export type Done = typeof Done.Type

export const Code = Schema.Literals(Object.keys(refusalCodes) as ReadonlyArray<RefusalCode>)

/** The command cannot be carried out; nothing was changed. `remedy` says what to do next. */
export class CommandRefused extends Schema.TaggedError<CommandRefused>()("CommandRefused", {
  /** Undefined: an older daemon sent no code, or a newer one sent a code that is unknown here. */
  code: Schema.optionalKey(Schema.String).pipe(
    Schema.decodeTo(Schema.UndefinedOr(Code), {
      decode: SchemaGetter.transformOptional((code) =>
        Option.some(Option.getOrUndefined(Option.filter(code, isRefusalCode)))
      ),
      encode: SchemaGetter.transformOptional((code) => Option.flatMap(code, Option.fromUndefinedOr))
    })
  ),
  message: Schema.String,
  remedy: Schema.String
}) {}

export const refuse = (code: RefusalCode, message: string, remedy: string) =>
  new CommandRefused({ code, message, remedy })

/** An error of any layer: it has a message, and usually a remedy. */
export interface Trouble {
  readonly _tag: string
  readonly message: string
  readonly remedy?: string
}

/** The refusal of a command that failed with this error. */
export const refusedBy = (error: Trouble, remedy = "See `agentd log` for what led to it."): CommandRefused =>
  new CommandRefused({ code: codeOf(error), message: error.message, remedy: error.remedy ?? remedy })

/** The person or program that calls, and its project: names are looked up there first. */
export const Caller = Schema.Struct({
  /** A login name or a program; written to the log. */
  by: Schema.String,
  /** Absolute path of the `agentd.jsonc` that applies to the caller's folder. */
  config: Schema.NullOr(Schema.String)
})
export type Caller = typeof Caller.Type

/** A coding session on the board that agentd did not start. */
export const PlateInfo = Schema.Struct({
  plateId: Schema.String,
  /** The word for people: who acts next. */
  word: Word,
  /** The coding CLI's own id of the session; a clear or a fork changes it. */
  sessionId: Schema.NullOr(Schema.String),
  status: Schema.Literals(["Starting", "Running", "Idle", "AwaitingInput", "AwaitingApproval", "Error", "Closed"]),
  /** When that status was entered, ms since the epoch. */
  since: Schema.Finite,
  /** The signal that the status rests on, and when it arrived (ms since the epoch); null before the first. */
  restsOn: Schema.NullOr(
    Schema.Struct({
      signal: Schema.Literals(["stream", "hook", "session", "transcript", "process"]),
      at: Schema.Finite
    })
  ),
  /** Plain text: what the session does now, or why it waits. */
  detail: Schema.String,
  cwd: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** The session's own title, otherwise the beginning of its newest prompt. */
  title: Schema.NullOr(Schema.String),
  lastTool: Schema.NullOr(Schema.String),
  /** Number of open todos; null: unknown. */
  todos: Schema.NullOr(Schema.Int),
  toolCalls: Schema.Int,
  /** Input and output tokens; null: unknown. */
  tokens: Schema.NullOr(Schema.Int),
  pid: Schema.NullOr(Schema.Int),
  /** `project/agent` if a run of that agent started the session. */
  agent: Schema.NullOr(Schema.String),
  /** False: it has no transcript, so missed hooks cannot be recovered. */
  watchable: Schema.Boolean,
  /** Id of a permission request that a person can answer through agentd; null: none. */
  approval: Schema.NullOr(Schema.String),
  /** Questions of the session: use `answer` for them, not `approve`. */
  questions: Schema.optionalKey(Schema.Array(Question)),
  /** Arguments of the tool that asks for approval, or whose start `/events` reported; as JSON, truncated. */
  arguments: Schema.optionalKey(Schema.String)
})
export type PlateInfo = typeof PlateInfo.Type

/** A tool call without a result. */
export const CallInfo = Schema.Struct({
  /** Unique in the store; `approve` and `deny` accept it. */
  callId: Schema.String,
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  turnId: Schema.String,
  tool: Schema.String,
  /** As JSON, truncated. */
  arguments: Schema.String,
  state: Schema.Literals(["pending_call", "awaiting_approval", "executing"]),
  /** When that state was entered, ms since the epoch. */
  since: Schema.Finite,
  /** Why the call needs approval; null: it does not. */
  reason: Schema.NullOr(Schema.String),
  /** Questions of the call: use `answer` for them, not `approve`. Undefined: it asks for approval, or for nothing. */
  questions: Schema.optionalKey(Schema.Array(Question)),
  /** When the question or the execution times out, ms since the epoch. */
  until: Schema.NullOr(Schema.Finite),
  restsOn: Schema.Int
})
export type CallInfo = typeof CallInfo.Type

/** The call that a person decides about, in full: an agent's call, or a session's permission request. */
export const AskedCall = Schema.Struct({
  /** The id that `approve` accepts. */
  id: Schema.String,
  /** `project/agent`, or the id of the session's plate. */
  agent: Schema.String,
  run: Schema.String,
  tool: Schema.String,
  /** Folder in which the call would run. */
  folder: Schema.String,
  /** The whole input as JSON; only registered secrets are masked. */
  input: Schema.String,
  /** Hash of the call as it would run; an approval must name it. */
  hash: Schema.String,
  /** Why the call needs approval; null: no reason was reported. */
  reason: Schema.NullOr(Schema.String),
  /** Undefined: it asks for approval. */
  questions: Schema.optionalKey(Schema.Array(Question)),
  /** When it began to ask, ms since the epoch. */
  since: Schema.Finite,
  /** When the request times out, ms since the epoch; null: unknown. */
  until: Schema.NullOr(Schema.Finite)
})
export type AskedCall = typeof AskedCall.Type

/** Spending, or its limit; null: not limited, or unknown. */
export const Spending = Schema.Struct({
  tokens: Schema.NullOr(Schema.Finite),
  toolCalls: Schema.NullOr(Schema.Finite),
  /** ms in turns */
  wallTime: Schema.NullOr(Schema.Finite),
  usd: Schema.NullOr(Schema.Finite)
})
export type Spending = typeof Spending.Type

export const ConversationInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  /** Absolute path of its `agentd.jsonc`. */
  config: Schema.String,
  /** The word for people: who acts next. */
  word: Word,
  /** State of the conversation's state machine. */
  state: Schema.String,
  since: Schema.Finite,
  restsOn: Schema.Int,
  /** In plain words: why it is paused or suspended, how many turns are under way. */
  detail: Schema.String,
  agents: Schema.Array(Schema.String),
  turns: Schema.Int,
  turnsActive: Schema.Int,
  turnErrors: Schema.Int,
  fatalStops: Schema.Int,
  /** Spent since the conversation was created, or last resumed from a suspension. */
  spent: Spending,
  limits: Spending,
  /** Always null. An older agentd stored here the file with the payloads of an archived conversation. */
  archive: Schema.NullOr(Schema.String)
})
export type ConversationInfo = typeof ConversationInfo.Type

/** A sub-agent that an agent or a person requests. Missing fields default to the parent's. */
export const SpawnRequest = Schema.Struct({
  name: Schema.String,
  role: Schema.optionalKey(Schema.String),
  instructions: Schema.optionalKey(Schema.String),
  /** The sub-agent's first message. */
  task: Schema.String
})
export type SpawnRequest = typeof SpawnRequest.Type

export const Report = Schema.Struct({
  status: Schema.Literals(["done", "failed", "blocked"]),
  summary: Schema.String,
  /** Commits, commands with their output, paths. */
  evidence: Schema.Array(Schema.String)
})
export type Report = typeof Report.Type

/** A sentence that explains how an agent reached its state. */
export const WhyLine = Schema.Struct({
  /** eventId of the rune that it describes; 0: it describes the present. */
  eventId: Schema.Int,
  /** ms since the epoch */
  at: Schema.Finite,
  text: Schema.String
})
export type WhyLine = typeof WhyLine.Type
