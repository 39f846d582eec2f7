/**
 * Messages: the shapes about agents that cross a boundary (control socket, siblings),
 * with their errors.
 */
import { Option, Schema, SchemaGetter } from "effect"
import { Command, Offer } from "../runs/Offers.ts"
import { Question } from "../runs/Question.ts"
import { Consequence } from "../config/ConfigChange.ts"
import { Reason, Word } from "./BoardMessages.ts"
import { codeOf, isRefusalCode, type RefusalCode, refusalCodes } from "./RefusalCode.ts"

/** A project that the daemon keeps: one `agentd.jsonc`, one conversation. */
export const ProjectInfo = Schema.Struct({
  /** The conversation's id, and the stream of its runes. */
  conversation: Schema.String,
  name: Schema.String,
  /** Absolute path of its `agentd.jsonc`. */
  config: Schema.String,
  agents: Schema.Array(Schema.String),
  /** Problems of the file as it is now; the last good one is in force. */
  problems: Schema.Array(Schema.String),
  /** Since when the file has them, as the log has it, ms since the epoch. */
  since: Schema.optionalKey(Schema.Finite),
  /** Set where a person has stopped all of it. */
  stopped: Schema.optionalKey(Schema.Struct({ by: Schema.String, since: Schema.Finite })),
  /** Set where its log is damaged, in words: it is set apart, and nothing of it runs. */
  damage: Schema.optionalKey(Schema.String),
  /** Agents whose limits hold later than with the request that spends them, or not at all, and why. */
  unmetered: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The file has a text that nobody has agreed to, by its hash, since then (ms since the epoch); the last one agreed to is in force. */
  waits: Schema.optionalKey(
    Schema.Struct({
      hash: Schema.String,
      since: Schema.Finite,
      /** So often it has changed since the last text that was in force. */
      changes: Schema.optionalKey(Schema.Int)
    })
  ),
  /** A person has put the file's change aside, then (ms since the epoch): it waits for nobody until it changes again. */
  kept: Schema.optionalKey(Schema.Struct({ hash: Schema.String, by: Schema.String, at: Schema.Finite }))
})
export type ProjectInfo = typeof ProjectInfo.Type

/** How a project's file differs from the config in force. */
export const ConfigChangeInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  config: Schema.String,
  /** Of the file's text as it stands: what a person agrees to. Null: it cannot be used, see the problems. */
  hash: Schema.NullOr(Schema.String),
  problems: Schema.Array(Schema.String),
  /** False: it is in force already, or says the same in other words. */
  waits: Schema.Boolean,
  /** A person has put it aside: it waits, and asks nobody until it changes again. */
  kept: Schema.optionalKey(Schema.Struct({ by: Schema.String, at: Schema.Finite })),
  /** Consequences of the change, the dangerous first. */
  consequences: Schema.Array(Consequence),
  /** Lines with `-`, `+` or a blank before them; `@ N`: what follows begins at line N. */
  diff: Schema.Array(Schema.String)
})
export type ConfigChangeInfo = typeof ConfigChangeInfo.Type

export const AgentInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  backend: Schema.String,
  mode: Schema.Literals(["inbox", "loop"]),
  /** The agent that began it; not there: the project's file names it. */
  parent: Schema.optionalKey(Schema.String),
  /** The role in a few words; empty: not said. */
  role: Schema.String,
  /** Groups that it belongs to; not there: none. */
  labels: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The model that answers it, as its run names it, else as it was chosen or configured; empty: not known. */
  model: Schema.String,
  /** Tokens that its newest request was given, and the most that its model takes; not there: not told. */
  context: Schema.optionalKey(Schema.Struct({ used: Schema.Finite, window: Schema.optionalKey(Schema.Finite) })),
  /** The word for people: who acts next. */
  word: Word,
  /** The end of its wait; null where it does not wait, or for its time alone. */
  reason: Schema.NullOr(Reason),
  /** The worker machine's state. */
  state: Schema.String,
  /** When its word became true, ms since the epoch; 0 before the first move. */
  since: Schema.Finite,
  /** The evidence for the status: the eventId of the rune that entered the state; 0 before the first move. */
  restsOn: Schema.Int,
  /** In plain words: what it does or waits for. */
  detail: Schema.String,
  /** When it goes on by itself (cooling down, run limit), ms since the epoch. */
  nextAt: Schema.NullOr(Schema.Finite),
  runId: Schema.NullOr(Schema.String),
  pid: Schema.NullOr(Schema.Int),
  sessionSeq: Schema.Int,
  consecutiveErrors: Schema.Int,
  totalErrors: Schema.Int,
  maxConsecutiveErrors: Schema.Int,
  maxTotalErrors: Schema.Int,
  /** Messages that no confirmed run has carried yet. */
  inbox: Schema.Int,
  /** A turn of it, or a run without turns, is under way. */
  busy: Schema.optionalKey(Schema.Boolean),
  /** Whether its run goes on while the daemon is restarted; not there: it has none, or it is not up yet. */
  outlives: Schema.optionalKey(Schema.Boolean),
  /** A limit of its own, its project's or the machine's keeps it from its next turn. */
  spent: Schema.optionalKey(Schema.Boolean),
  /** Why limits of its spending hold later than with the request that spends them, or not at all; not there: they hold. */
  unmetered: Schema.optionalKey(Schema.String),
  /** True: it has stopped for good by itself, and no person stopped it. */
  failed: Schema.optionalKey(Schema.Boolean),
  /** Messages that came to no answer, and wait for a person. */
  dropped: Schema.optionalKey(Schema.Int),
  cwd: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String)
})
export type AgentInfo = typeof AgentInfo.Type

/** A message that an agent was asked, and that came to no answer. */
export const DroppedInfo = Schema.Struct({
  messageId: Schema.String,
  from: Schema.String,
  /** Bounded, as the reason. */
  text: Schema.String,
  /** "refusal", "max_tokens", "max_turns" … */
  errorType: Schema.String,
  reason: Schema.String,
  /** ms since the epoch */
  since: Schema.Finite
})
export type DroppedInfo = typeof DroppedInfo.Type

/** Messages that an agent was asked and has not answered. */
export const BacklogInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  /** Oldest first. */
  dropped: Schema.Array(DroppedInfo),
  /** So many older ones are only counted. */
  more: Schema.Int,
  /** Bounds that it has reached, and that only a person moves. */
  bounds: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        eventId: Schema.Int,
        text: Schema.String,
        since: Schema.Finite,
        /** The agent takes no turn before a person answers. */
        holds: Schema.optionalKey(Schema.Boolean)
      })
    )
  ),
  /** Questions to a person that no person has answered. */
  questions: Schema.optionalKey(
    Schema.Array(Schema.Struct({ eventId: Schema.Int, question: Schema.String, since: Schema.Finite }))
  ),
  /** Messages that wait, or are to be taken up again. */
  held: Schema.Int,
  /** When the oldest of them came, ms since the epoch. */
  heldSince: Schema.NullOr(Schema.Finite)
})
export type BacklogInfo = typeof BacklogInfo.Type

/** The models, modes and commands that a person can name for an agent. */
export const OffersInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  backend: Schema.String,
  /** Chosen by a person; null: as the file says. */
  model: Schema.NullOr(Schema.String),
  mode: Schema.NullOr(Schema.String),
  models: Schema.Array(Offer),
  modes: Schema.Array(Offer),
  /** Commands of the agent's own: `agentd send AGENT /NAME`. */
  commands: Schema.Array(Command),
  /** From a run that lives, from one before, or from none yet. */
  known: Schema.Literals(["live", "before", "not yet"])
})
export type OffersInfo = typeof OffersInfo.Type

/** A command's reply: what it reports is durable. */
export const Done = Schema.Struct({
  eventId: Schema.Int,
  /** In plain words: what was done. */
  message: Schema.String
})
export type Done = typeof Done.Type

export const Code = Schema.Literals(Object.keys(refusalCodes) as ReadonlyArray<RefusalCode>)

/** The command cannot be carried out; nothing was changed. `remedy` says what to do next. */
export class CommandRefused extends Schema.TaggedError<CommandRefused>()("CommandRefused", {
  /** Undefined: an older daemon sent none, or a newer one sent a code that is not known here. */
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

/** An error of any layer that has a message, and mostly a remedy. */
export interface Trouble {
  readonly _tag: string
  readonly message: string
  readonly remedy?: string
}

/** The refusal of a command that met this error. */
export const refusedBy = (error: Trouble, remedy = "See `agentd log` for what led to it."): CommandRefused =>
  new CommandRefused({ code: codeOf(error), message: error.message, remedy: error.remedy ?? remedy })

/** The person or program that asks, and the project asked from: names are looked up there first. */
export const Caller = Schema.Struct({
  /** A login name or a program; goes into the log. */
  by: Schema.String,
  /** Absolute path of the `agentd.jsonc` that the caller stands in. */
  config: Schema.NullOr(Schema.String)
})
export type Caller = typeof Caller.Type

/** A coding session on the board: one that agentd did not start. */
export const PlateInfo = Schema.Struct({
  plateId: Schema.String,
  /** The word for people: who acts next. */
  word: Word,
  /** The coding CLI's own id of the session; a clear or a fork changes it. */
  sessionId: Schema.NullOr(Schema.String),
  status: Schema.Literals(["Starting", "Running", "Idle", "AwaitingInput", "AwaitingApproval", "Error", "Closed"]),
  /** When that status was entered, ms since the epoch. */
  since: Schema.Finite,
  /** The signal on which the status rests, and when it came (ms since the epoch); null before the first. */
  restsOn: Schema.NullOr(
    Schema.Struct({
      signal: Schema.Literals(["stream", "hook", "session", "transcript", "process"]),
      at: Schema.Finite
    })
  ),
  /** The session's present activity, or the reason for its wait, in plain words. */
  detail: Schema.String,
  cwd: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** The session's own title, else the beginning of its newest prompt. */
  title: Schema.NullOr(Schema.String),
  lastTool: Schema.NullOr(Schema.String),
  /** Open todos; null where none are known. */
  todos: Schema.NullOr(Schema.Int),
  toolCalls: Schema.Int,
  /** Input and output tokens; null where unknown. */
  tokens: Schema.NullOr(Schema.Int),
  pid: Schema.NullOr(Schema.Int),
  /** `project/agent`, if a run of that agent started it. */
  agent: Schema.NullOr(Schema.String),
  /** False: it has no transcript, so missed hooks cannot be made good. */
  watchable: Schema.Boolean,
  /** A permission request that a person can answer through agentd; its id. */
  approval: Schema.NullOr(Schema.String),
  /** Questions that the session asks: they take an `answer`, and no approval. */
  questions: Schema.optionalKey(Schema.Array(Question)),
  /** The arguments of the tool that asks for leave, or whose start `/events` told; as JSON, bounded. */
  arguments: Schema.optionalKey(Schema.String)
})
export type PlateInfo = typeof PlateInfo.Type

/** A tool call that has no result yet. */
export const CallInfo = Schema.Struct({
  /** Unique in the store: what `approve` and `deny` take. */
  callId: Schema.String,
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  turnId: Schema.String,
  tool: Schema.String,
  /** As JSON, bounded. */
  arguments: Schema.String,
  state: Schema.Literals(["pending_call", "awaiting_approval", "executing"]),
  /** When that state was entered, ms since the epoch. */
  since: Schema.Finite,
  /** Why it asks; null where it does not. */
  reason: Schema.NullOr(Schema.String),
  /** Questions of the call: they take an `answer`, and no approval. Not there: the call asks for leave, or not at all. */
  questions: Schema.optionalKey(Schema.Array(Question)),
  /** When the question or the execution times out, ms since the epoch. */
  until: Schema.NullOr(Schema.Finite),
  restsOn: Schema.Int
})
export type CallInfo = typeof CallInfo.Type

/** The matter that a person decides, whole: a call of an agent, or what a session asks leave for. */
export const AskedCall = Schema.Struct({
  /** The name that `approve` takes. */
  id: Schema.String,
  /** `project/agent`, or the session's plate. */
  agent: Schema.String,
  run: Schema.String,
  tool: Schema.String,
  /** Where it would run. */
  folder: Schema.String,
  /** As JSON: all of it, but for registered secrets, which are masked. */
  input: Schema.String,
  /** Of the call as it would run: an approval names it. */
  hash: Schema.String,
  /** Why it asks; null where that is not said. */
  reason: Schema.NullOr(Schema.String),
  /** Not there: it asks for leave. */
  questions: Schema.optionalKey(Schema.Array(Question)),
  /** When it began to ask, ms since the epoch. */
  since: Schema.Finite,
  /** When it asks no more, ms since the epoch; null where that is not known. */
  until: Schema.NullOr(Schema.Finite)
})
export type AskedCall = typeof AskedCall.Type

/** Spending, or its limit; null: not limited, or not known. */
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
  /** The conversation machine's state. */
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
  /** Since it was created, or last resumed from a suspension. */
  spent: Spending,
  limits: Spending,
  /** Always null: an older agentd named the file of an archived one's payloads. */
  archive: Schema.NullOr(Schema.String)
})
export type ConversationInfo = typeof ConversationInfo.Type

/** A sub-agent that an agent or a person asks for. What is left out is as the parent's. */
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

/** A sentence of the story that led an agent to its state. */
export const WhyLine = Schema.Struct({
  /** The rune that it tells of; 0 for what is so now. */
  eventId: Schema.Int,
  /** ms since the epoch */
  at: Schema.Finite,
  text: Schema.String
})
export type WhyLine = typeof WhyLine.Type
