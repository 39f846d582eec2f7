/**
 * Messages: schemas and errors for projects, agents, calls, sessions and conversations, used by the control socket and
 * by several features.
 */
import { Option, Schema, SchemaGetter } from "effect"
import { ANSWER_SCOPES } from "../approvals/AnswerScope.ts"
import { Command, Offer } from "../runs/AgentOptions.ts"
import { Question } from "../runs/Question.ts"
import { Consequence } from "../config/ConfigChange.ts"
import { Reason, Word } from "./BoardMessages.ts"
import { codeOf, isRefusalCode, type RefusalCode, refusalCodes } from "./RefusalCode.ts"

/** A project that the daemon runs. It has one `agentd.jsonc` and one conversation. */
export const ProjectInfo = Schema.Struct({
  /** Id of the project's conversation, which is also the name of its stream. */
  conversation: Schema.String,
  name: Schema.String,
  /** Absolute path of the project's `agentd.jsonc`. */
  config: Schema.String,
  agents: Schema.Array(Schema.String),
  /** Problems of the current config file. If there are any, the last usable version stays in force. */
  problems: Schema.Array(Schema.String),
  /** True if the last usable version is lost as well. No agent of the project then runs, and `problems` says why. */
  lost: Schema.optionalKey(Schema.Boolean),
  /** Since when the config file has had problems (according to the log), in ms since the epoch. */
  since: Schema.optionalKey(Schema.Finite),
  /** Set if a user has stopped the whole project. */
  stopped: Schema.optionalKey(Schema.Struct({ by: Schema.String, since: Schema.Finite })),
  /**
   * Description of the damage, if the project's log is damaged. The project is then not loaded, and its agents do not
   * run.
   */
  damage: Schema.optionalKey(Schema.String),
  /**
   * Warnings about agents whose spending limits take effect too late (after the request that exceeds them) or not at
   * all. Each warning gives the reason.
   */
  unmetered: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Calls that no rule sees, of each agent for whose calls a rule denies or asks: a sentence each. */
  unseen: Schema.optionalKey(Schema.Array(Schema.String)),
  /**
   * Set if no user has approved the config file's current content. `hash`: hash of this content. `since`: in ms since
   * the epoch. The last approved content is in force.
   */
  waits: Schema.optionalKey(
    Schema.Struct({
      hash: Schema.String,
      since: Schema.Finite,
      /** How often the file has changed since it last had the approved content. */
      changes: Schema.optionalKey(Schema.Int)
    })
  ),
  /** Set if a user has put the change aside. `at`: ms since the epoch. agentd asks again when the file changes. */
  kept: Schema.optionalKey(Schema.Struct({ hash: Schema.String, by: Schema.String, at: Schema.Finite }))
})
export type ProjectInfo = typeof ProjectInfo.Type

export const ConfigChangeInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  config: Schema.String,
  /** Hash of the file's current content. An approval must name it. Null: the file is invalid, see `problems`. */
  hash: Schema.NullOr(Schema.String),
  problems: Schema.Array(Schema.String),
  /** True: the file's content waits for approval. False: it is in force, or differs only in formatting. */
  waits: Schema.Boolean,
  /** Set if a user has put the pending change aside: agentd does not ask again until the file changes. */
  kept: Schema.optionalKey(Schema.Struct({ by: Schema.String, at: Schema.Finite })),
  /** Consequences of the change, the dangerous ones first. */
  consequences: Schema.Array(Consequence),
  /** Lines that begin with `-`, `+` or a space. A line `@ N` means that the lines after it begin at line N. */
  diff: Schema.Array(Schema.String)
})
export type ConfigChangeInfo = typeof ConfigChangeInfo.Type

export const AgentInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  backend: Schema.String,
  mode: Schema.Literals(["inbox", "loop"]),
  /** For a sub-agent: the agent that created it. Undefined: the agent is defined in the project's config file. */
  parent: Schema.optionalKey(Schema.String),
  /** The agent's role in a few words; empty: no role is configured. */
  role: Schema.String,
  /** Labels of the agent, used to group agents; undefined: none. */
  labels: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Name of the agent's model, as the run reports it; else as chosen by the user or configured. Empty: unknown. */
  model: Schema.String,
  /** Tokens in the newest request to the model, and the model's context window in tokens; undefined: not reported. */
  context: Schema.optionalKey(Schema.Struct({ used: Schema.Finite, window: Schema.optionalKey(Schema.Finite) })),
  word: Word,
  /** The reason why the agent waits; null: the agent does not wait, or waits only until a certain time. */
  reason: Schema.NullOr(Reason),
  /** State of the agent's worker state machine. */
  state: Schema.String,
  /** Since when the status word (`word`) applies, in ms since the epoch; 0: the agent has not changed its state yet. */
  since: Schema.Finite,
  /** eventId of the rune by which the agent entered its state; 0: the agent has not changed its state yet. */
  restsOn: Schema.Int,
  /** Plain text: what the agent is doing or waiting for. */
  detail: Schema.String,
  /** When the agent continues automatically, such as after a retry delay, in ms since the epoch; null: not known. */
  nextAt: Schema.NullOr(Schema.Finite),
  runId: Schema.NullOr(Schema.String),
  pid: Schema.NullOr(Schema.Int),
  sessionSeq: Schema.Int,
  consecutiveErrors: Schema.Int,
  totalErrors: Schema.Int,
  maxConsecutiveErrors: Schema.Int,
  maxTotalErrors: Schema.Int,
  /** Number of messages that wait for a turn of the agent. */
  inbox: Schema.Int,
  /** True: the agent has an active turn or, if its program has no turns, an active run. */
  busy: Schema.optionalKey(Schema.Boolean),
  /** True: the run survives a restart of the daemon. Undefined: the agent has no run, or its run is still starting. */
  outlives: Schema.optionalKey(Schema.Boolean),
  /** The rules that a person gave for the agent's run, in the words of the config file; undefined: none. */
  runRules: Schema.optionalKey(Schema.Array(Schema.String)),
  /** True: a budget (agent, project or machine) is exceeded, so the agent cannot start its next turn. */
  spent: Schema.optionalKey(Schema.Boolean),
  /**
   * The reason why the agent's spending limits take effect too late (only after the request that exceeds them) or not
   * at all. Undefined: the limits take effect in time.
   */
  unmetered: Schema.optionalKey(Schema.String),
  /** True: the agent has stopped permanently because of its errors or limits, not because a user stopped it. */
  failed: Schema.optionalKey(Schema.Boolean),
  /** Number of unanswered messages about which the user must decide. */
  dropped: Schema.optionalKey(Schema.Int),
  cwd: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String)
})
export type AgentInfo = typeof AgentInfo.Type

/** A message that the agent has not answered. */
export const DroppedInfo = Schema.Struct({
  messageId: Schema.String,
  from: Schema.String,
  /** Text of the message, truncated. `reason` is truncated, too. */
  text: Schema.String,
  /** The reason why the turn ended without an answer: "refusal", "max_tokens", "max_turns" and others. */
  errorType: Schema.String,
  reason: Schema.String,
  /** When the turn of the message ended without an answer, in ms since the epoch. */
  since: Schema.Finite
})
export type DroppedInfo = typeof DroppedInfo.Type

export const BacklogInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  /** Unanswered messages, oldest first. */
  dropped: Schema.Array(DroppedInfo),
  /** Number of older unanswered messages that are not included in `dropped`. */
  more: Schema.Int,
  /** Limits that the agent has reached and that only the user can lift. */
  bounds: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        eventId: Schema.Int,
        text: Schema.String,
        since: Schema.Finite,
        /** True: the agent starts no turn until the user answers. */
        holds: Schema.optionalKey(Schema.Boolean)
      })
    )
  ),
  questions: Schema.optionalKey(
    Schema.Array(Schema.Struct({ eventId: Schema.Int, question: Schema.String, since: Schema.Finite }))
  ),
  /** Number of queued messages, including those that will be retried. */
  held: Schema.Int,
  /** When the oldest queued message arrived, in ms since the epoch; null: no message is queued. */
  heldSince: Schema.NullOr(Schema.Finite)
})
export type BacklogInfo = typeof BacklogInfo.Type

export const OffersInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  backend: Schema.String,
  /** The model that the user has chosen; null: the model in the config file is used. The same is true of `mode`. */
  model: Schema.NullOr(Schema.String),
  mode: Schema.NullOr(Schema.String),
  models: Schema.Array(Offer),
  modes: Schema.Array(Offer),
  /** Slash commands of the agent's program. The user runs one with `agentd send AGENT /NAME`. */
  commands: Schema.Array(Command),
  /** Run that reported the lists: the current one ("live") or an earlier one ("before"). "not yet": there is none. */
  known: Schema.Literals(["live", "before", "not yet"])
})
export type OffersInfo = typeof OffersInfo.Type

/** Reply to a command. When the reply is sent, the effect of the command is durable. */
export const Done = Schema.Struct({
  eventId: Schema.Int,
  /** Plain text: the result of the command. */
  message: Schema.String
})
export type Done = typeof Done.Type

export const Code = Schema.Literals(Object.keys(refusalCodes) as ReadonlyArray<RefusalCode>)

/** Error: the command was rejected and changed nothing. `remedy` tells the user what to do next. */
export class CommandRefused extends Schema.TaggedError<CommandRefused>()("CommandRefused", {
  /** Code of the error. Undefined: an older daemon sent no code, or a newer daemon sent a code unknown here. */
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

/** Fields that the errors of all layers have: a message and, usually, a remedy. */
export interface Trouble {
  readonly _tag: string
  readonly message: string
  readonly remedy?: string
}

export const refusedBy = (error: Trouble, remedy = "See `agentd log` for what led to it."): CommandRefused =>
  new CommandRefused({ code: codeOf(error), message: error.message, remedy: error.remedy ?? remedy })

/** The user or program that sends a command, and the project in which names in that command are looked up first. */
export const Caller = Schema.Struct({
  /** Login name of the user, or name of the program. The log stores this name. */
  by: Schema.String,
  /** Absolute path of the `agentd.jsonc` that applies to the caller's folder; null: no such file applies. */
  config: Schema.NullOr(Schema.String)
})
export type Caller = typeof Caller.Type

/** A row of the board for a session of a coding CLI. */
export const PlateInfo = Schema.Struct({
  plateId: Schema.String,
  word: Word,
  /** Id that the coding CLI has given the session. Clearing or forking the session changes the id. Null: unknown. */
  sessionId: Schema.NullOr(Schema.String),
  status: Schema.Literals(["Starting", "Running", "Idle", "AwaitingInput", "AwaitingApproval", "Error", "Closed"]),
  /** When the session entered its status, in ms since the epoch. */
  since: Schema.Finite,
  /** The signal that determined the status, and its time in ms since the epoch. Null: no signal has arrived yet. */
  restsOn: Schema.NullOr(
    Schema.Struct({
      signal: Schema.Literals(["stream", "hook", "session", "transcript", "process"]),
      at: Schema.Finite
    })
  ),
  /** Plain text: what the session is doing now, or why it waits. */
  detail: Schema.String,
  cwd: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** The session's title or, if there is none, the beginning of its newest prompt. Null: neither is known. */
  title: Schema.NullOr(Schema.String),
  lastTool: Schema.NullOr(Schema.String),
  /** Number of open items in the session's todo list; null: unknown. */
  todos: Schema.NullOr(Schema.Int),
  toolCalls: Schema.Int,
  /** Sum of the session's input and output tokens; null: unknown. */
  tokens: Schema.NullOr(Schema.Int),
  pid: Schema.NullOr(Schema.Int),
  /** The agent whose run started the session, as `project/agent`; null: the session was not started by an agent. */
  agent: Schema.NullOr(Schema.String),
  /** True: agentd can read the session's transcript, from which a missed hook event can be recovered. */
  watchable: Schema.Boolean,
  /** Id of the session's permission request, if the user can answer the request through agentd; otherwise null. */
  approval: Schema.NullOr(Schema.String),
  /** Questions from the session to the user, who answers them with `answer`, not with `approve`. */
  questions: Schema.optionalKey(Schema.Array(Question)),
  /**
   * Arguments, as truncated JSON, of the tool call that needs approval; if none does, of the newest call that `/events`
   * reported as started.
   */
  arguments: Schema.optionalKey(Schema.String)
})
export type PlateInfo = typeof PlateInfo.Type

/** A tool call that has no result yet. */
export const CallInfo = Schema.Struct({
  /** Id of the call, unique in the store. The commands `approve` and `deny` accept it. */
  callId: Schema.String,
  conversation: Schema.String,
  project: Schema.String,
  agent: Schema.String,
  turnId: Schema.String,
  tool: Schema.String,
  /** Arguments of the tool call as JSON, truncated. */
  arguments: Schema.String,
  state: Schema.Literals(["pending_call", "awaiting_approval", "executing"]),
  /** When the call entered its state, in ms since the epoch. */
  since: Schema.Finite,
  /** The reason why the call needs approval; null: the call needs no approval. */
  reason: Schema.NullOr(Schema.String),
  /** Questions of the call to the user, who answers with `answer`, not with `approve`. Undefined: no questions. */
  questions: Schema.optionalKey(Schema.Array(Question)),
  /** When the question or the execution of the call times out, in ms since the epoch; null: no timeout. */
  until: Schema.NullOr(Schema.Finite),
  restsOn: Schema.Int
})
export type CallInfo = typeof CallInfo.Type

const AskedPart = Schema.Struct({
  text: Schema.String,
  verdict: Schema.Literals(["run", "ask", "deny"]),
  reason: Schema.String,
  /** The rule that decided about the part, with its file and line. */
  rule: Schema.optionalKey(Schema.String)
})

export const RuleOffer = Schema.Struct({
  /** The offer as a person chooses it: "`npm test` here". */
  words: Schema.String,
  /** The rules that an answer with this offer adds, such as `npm test **`. */
  rules: Schema.Array(Schema.String)
})

/** The changes that an approval with an offer would make. */
export const AnswerPreview = Schema.Struct({
  /** Hash of the call, the scope, the offer and the file as it is now. The approval must name it. */
  hash: Schema.String,
  scope: Schema.Literals(ANSWER_SCOPES),
  offer: RuleOffer,
  /** The file that the approval would change; null: the rules are kept in the state of the run. */
  file: Schema.NullOr(Schema.String),
  /** The change of the file, in the form of `ConfigChangeInfo.diff`. */
  diff: Schema.Array(Schema.String)
})
export type AnswerPreview = typeof AnswerPreview.Type

/** A call that waits for the user, with its whole input: an agent's tool call, or a session's permission request. */
export const AskedCall = Schema.Struct({
  /** Id of the call or request; the command `approve` accepts it. */
  id: Schema.String,
  /** The agent as `project/agent`, or the plate id of the session. */
  agent: Schema.String,
  run: Schema.String,
  tool: Schema.String,
  /** Folder in which the call will run if it is approved. */
  folder: Schema.String,
  /** The whole input of the call as JSON, in which only registered secrets are masked. */
  input: Schema.String,
  /** Hash of the call with its whole input. An approval must name this hash. */
  hash: Schema.String,
  /** The reason why the call needs approval; null: no reason was reported. */
  reason: Schema.NullOr(Schema.String),
  /** Questions of the call to the user; undefined: the call waits for approval. */
  questions: Schema.optionalKey(Schema.Array(Question)),
  /** When the call began to wait for the user, in ms since the epoch. */
  since: Schema.Finite,
  /** When the call stops waiting for the user, in ms since the epoch; null: unknown. */
  until: Schema.NullOr(Schema.Finite),
  /** Parts of the call, each with its own decision: `ask` marks the parts that lack leave. Undefined: no parts known. */
  parts: Schema.optionalKey(Schema.Array(AskedPart)),
  /**
   * Rules that would have allowed the call, narrowest first. An approval can keep one of them. Undefined: only this call
   * can be approved.
   */
  offers: Schema.optionalKey(Schema.Array(RuleOffer)),
  /** The scopes in which an offer can be kept now. */
  scopes: Schema.optionalKey(Schema.Array(Schema.Literals(ANSWER_SCOPES))),
  /** Why an offer cannot be kept in the other scopes; undefined: it can. */
  onlyHere: Schema.optionalKey(Schema.String)
})
export type AskedCall = typeof AskedCall.Type

/** Amounts spent, or spending limits. Null: unknown, or not limited. */
export const Spending = Schema.Struct({
  tokens: Schema.NullOr(Schema.Finite),
  toolCalls: Schema.NullOr(Schema.Finite),
  /** Total duration of turns in ms. */
  wallTime: Schema.NullOr(Schema.Finite),
  usd: Schema.NullOr(Schema.Finite)
})
export type Spending = typeof Spending.Type

export const ConversationInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  /** Absolute path of the project's `agentd.jsonc`. */
  config: Schema.String,
  word: Word,
  state: Schema.String,
  since: Schema.Finite,
  restsOn: Schema.Int,
  /** Plain text: the reason why the conversation is paused or suspended, or the number of active turns. */
  detail: Schema.String,
  agents: Schema.Array(Schema.String),
  turns: Schema.Int,
  turnsActive: Schema.Int,
  turnErrors: Schema.Int,
  fatalStops: Schema.Int,
  /** Spending since the conversation was created or last resumed after a suspension. */
  spent: Spending,
  limits: Spending,
  /** Always null. Older agentd versions: path of a file with the payloads of an archived conversation. */
  archive: Schema.NullOr(Schema.String)
})
export type ConversationInfo = typeof ConversationInfo.Type

/** A request from an agent or a user to create a sub-agent. For missing fields, the parent agent's values are used. */
export const SpawnRequest = Schema.Struct({
  name: Schema.String,
  role: Schema.optionalKey(Schema.String),
  instructions: Schema.optionalKey(Schema.String),
  /** The first message to the sub-agent. */
  task: Schema.String
})
export type SpawnRequest = typeof SpawnRequest.Type

export const Report = Schema.Struct({
  status: Schema.Literals(["done", "failed", "blocked"]),
  summary: Schema.String,
  /** Evidence for the result: commits, commands with their output, paths. */
  evidence: Schema.Array(Schema.String)
})
export type Report = typeof Report.Type

/** A sentence in the explanation of how an agent came into its current state. */
export const WhyLine = Schema.Struct({
  /** eventId of the rune that the sentence describes; 0: the sentence describes the current state. */
  eventId: Schema.Int,
  /** The time to which the sentence refers, in ms since the epoch. */
  at: Schema.Finite,
  text: Schema.String
})
export type WhyLine = typeof WhyLine.Type
