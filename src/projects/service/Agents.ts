/**
 * Agents: every project and agent of the daemon, and the commands on them.
 *
 * Guarantees: what a command's reply reports is durable. Names are looked up in the caller's project first, otherwise
 * as `project/agent`. A failure of one agent never affects another.
 */
import { Context, type Duration, type Effect, type Stream } from "effect"
import type { Project } from "../../config/ConfigFile.ts"
import type {
  AskedCall,
  AgentInfo,
  BacklogInfo,
  CallInfo,
  Caller,
  CommandRefused,
  ConfigChangeInfo,
  ConversationInfo,
  Done,
  OffersInfo,
  ProjectInfo,
  Report,
  SpawnRequest
} from "../../domain/Messages.ts"
import type { Address, AgentSession } from "../../domain/AgentPort.ts"
import type { DiffInfo } from "../../domain/DiffMessages.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import type { InboxMessage, VoiceOf } from "../../agents/actors/AgentVoice.ts"
import type { ConfigNews } from "./Bus.ts"
import type { Answer } from "../../agents/machines/CallRow.ts"
import type { Agreed } from "../ConfigTrust.ts"
import type { Piece } from "../../agents/prompt/MessageFiles.ts"

export interface AgentFacts extends Address {
  /** Undefined if the agent is no longer alive. */
  readonly info: AgentInfo | undefined
  readonly backlog: BacklogInfo | undefined
  readonly calls: ReadonlyArray<CallInfo>
}

type Command<A> = Effect.Effect<A, CommandRefused | StorageError>

export class Agents extends Context.Service<
  Agents,
  {
    /**
     * Reads the file and keeps its agents running from now on. For a known project, reloads it. A text that nobody has
     * agreed to takes effect only if the caller agrees; if `agreed` is omitted, the caller agrees to the current file.
     */
    readonly register: (config: string, caller: Caller, agreed?: Agreed) => Command<ProjectInfo>
    /** Puts a change of the project's file aside. `hash`: the text that the person was shown. */
    readonly configKeep: (name: string, hash: string | undefined, caller: Caller) => Command<Done>
    readonly configChange: (name: string, caller: Caller) => Effect.Effect<ConfigChangeInfo, CommandRefused>
    readonly projects: Effect.Effect<ReadonlyArray<ProjectInfo>>
    /** Ends all agents of a project, by its name or conversation. None starts until the project is started again. */
    readonly stopProject: (name: string, caller: Caller) => Command<Done>
    /** Starts the agents that were stopped with the project. */
    readonly startProject: (name: string, caller: Caller) => Command<Done>
    /** Lists the agents that are alive. */
    readonly all: Effect.Effect<ReadonlyArray<AgentInfo>>
    readonly sessions: Effect.Effect<ReadonlyArray<AgentSession>>
    readonly addresses: Effect.Effect<ReadonlyArray<Address>>
    readonly agent: (name: string, caller: Caller) => Effect.Effect<AgentInfo, CommandRefused>
    /** The rows of `all`, `backlog` and `calls` for some agents. */
    readonly some: (agents: Iterable<Address>) => Effect.Effect<ReadonlyArray<AgentFacts>>
    /** Starts a stopped agent with fresh counters. An agent that already runs is left alone, and the reply says so. */
    readonly start: (name: string, caller: Caller) => Command<Done>
    /** Stops the agent (OperatorStop). Returns when the run's processes are gone. */
    readonly stop: (name: string, caller: Caller) => Command<Done>
    readonly restart: (name: string, caller: Caller) => Command<Done>
    readonly send: (
      name: string,
      message: {
        readonly text: string
        /**
         * `queue`: when the agent is free. `steer`: ends the turn at a safe boundary; this is the next. `urgent`: ends
         * the run.
         */
        readonly how: "queue" | "steer" | "urgent"
        /** Files that come with the message. Their contents must be added before. */
        readonly files?: ReadonlyArray<{ readonly filename: string; readonly sha256: string }>
      },
      caller: Caller
    ) => Command<Done>
    /**
     * Takes a part of a file's content. Returns how many of its bytes are here; the content is durable when it is
     * complete.
     */
    readonly addFile: (piece: Piece) => Effect.Effect<number, CommandRefused>
    /** Removes these contents, even if a message needs them. */
    readonly forgetFiles: (hashes: ReadonlyArray<string>) => Effect.Effect<void>
    /** Messages that agents were asked and have not answered. */
    readonly backlog: Effect.Effect<ReadonlyArray<BacklogInfo>>
    /** Asks unanswered messages again: the one with this id, or all of the agent's. */
    readonly retry: (name: string, message: string | undefined, caller: Caller) => Command<Done>
    /** Discards unanswered messages. `held`: discards the messages queued for the agent instead. */
    readonly dismiss: (
      name: string,
      what: { readonly which: string | undefined; readonly held: boolean },
      caller: Caller
    ) => Command<Done>
    /** Ends the turn, or the run if the run has no turns. */
    readonly interrupt: (name: string, caller: Caller) => Command<Done>
    /** Chooses the model and mode of an agent; null leaves the current choice. */
    readonly choose: (
      name: string,
      choice: { readonly model: string | null; readonly mode: string | null; readonly reset: boolean },
      caller: Caller
    ) => Command<Done>
    /** The models, modes and commands that a person can name for an agent. */
    readonly offers: (name: string, caller: Caller) => Effect.Effect<OffersInfo, CommandRefused>
    /** The changed files in an agent's folder since its work began. */
    readonly diff: (name: string, caller: Caller) => Effect.Effect<DiffInfo, CommandRefused>
    /** Tool calls without a result: those that wait for a person first, oldest first. */
    readonly calls: Effect.Effect<ReadonlyArray<CallInfo>>
    /** The call that a person decides, with its whole input. Refused, with the outcome, if the call no longer waits. */
    readonly askedCall: (callId: string) => Effect.Effect<AskedCall, CommandRefused>
    /** Removes the stored inputs of these calls, in memory and on the disk. A live run has its own copy. */
    readonly forgetInputs: (callIds: ReadonlyArray<string>) => Effect.Effect<void>
    /** Answers a call by its id or a unique prefix of it. Refused, with the outcome, if the call no longer waits. */
    readonly answerCall: (callId: string, decision: Answer, caller: Caller) => Command<Done>
    /** All conversations, including closed and archived ones. */
    readonly conversations: Effect.Effect<ReadonlyArray<ConversationInfo>>
    /** A conversation by its id, a unique prefix of it, or its project's name (the newest). Empty: the caller's. */
    readonly conversation: (name: string, caller: Caller) => Effect.Effect<ConversationInfo, CommandRefused>
    /** Begins a conversation of a project whose last one is closed, or of an unknown project. */
    readonly newConversation: (config: string, caller: Caller) => Command<ConversationInfo>
    readonly pause: (
      name: string,
      options: { readonly inFlight: "interrupt" | "complete"; readonly reason: string },
      caller: Caller
    ) => Command<Done>
    /** Resumes from a pause, or from a suspension (then with fresh counters and budget). */
    readonly resume: (name: string, caller: Caller) => Command<Done>
    /** Stops every agent in order and seals the log. Returns when that is done. */
    readonly close: (
      name: string,
      options: { readonly reason: string; readonly force: boolean },
      caller: Caller
    ) => Command<Done>
    /** Moves the payloads of a closed conversation into a compressed file. */
    readonly archive: (name: string, caller: Caller) => Command<Done>
    /** Spawns a sub-agent of a running agent, for a person or the agent itself. */
    readonly spawn: (parent: string, request: SpawnRequest, caller: Caller) => Command<Done>
    /** Finds the agent of a live run, and its rights. Refused for a run that has ended. */
    readonly voice: (runId: string) => Effect.Effect<VoiceOf, CommandRefused>
    /** Writes a rune `agent.reported`. The report goes to the sender of the task. */
    readonly report: (of: VoiceOf, report: Report) => Command<Done>
    /** Writes a rune `agent.asked` and mails the question to a person. The answer comes as a message. */
    readonly ask: (of: VoiceOf, question: string) => Command<Done>
    /** Messages that wait for the agent, and those that its turn carries. */
    readonly inbox: (of: VoiceOf) => Effect.Effect<ReadonlyArray<InboxMessage>>
    /** Configs of each open conversation: now, and after each change. A config may come twice. */
    readonly configs: Stream.Stream<ConfigNews>
    /**
     * Removes contents of files that no message needs. Erases a bounded number of expired texts, and answers how many
     * runes it tried. `usual`: how long texts are stored if the project's config does not say; undefined: for ever.
     */
    readonly expire: (usual: Duration.Duration | undefined) => Effect.Effect<number, StorageError>
    /** Start of the oldest open work, ms since the epoch; infinite if there is none, 0 if it is unknown. */
    readonly openSince: Effect.Effect<number>
    /** The config in force for a conversation; undefined if its project cannot be read. */
    readonly configOf: (conversation: string) => Effect.Effect<Project | undefined>
    /** Waits until the log is folded at start-up; fails if that is impossible: then there are no agents. */
    readonly recovered: Effect.Effect<void, StorageError>
    /** Whether the log is folded. */
    readonly ready: Effect.Effect<boolean>
  }
>()("agentd/agents/Agents") {}
