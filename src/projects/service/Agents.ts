/**
 * Agents: all projects and agents of the daemon, and the commands on them.
 *
 * Guarantees: Everything that a command's reply reports is durable. A name is first looked up in the caller's project,
 * then as `project/agent`. An error of one agent never affects another agent.
 */
import { Context, type Duration, type Effect, type Stream } from "effect"
import type { Lasting } from "../../approvals/AnswerScope.ts"
import type { Project } from "../../config/ConfigFile.ts"
import type {
  AnswerPreview,
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
  /** The agent's row; undefined if the agent no longer exists. */
  readonly info: AgentInfo | undefined
  readonly backlog: BacklogInfo | undefined
  readonly calls: ReadonlyArray<CallInfo>
}

type Command<A> = Effect.Effect<A, CommandRefused | StorageError>

export class Agents extends Context.Service<
  Agents,
  {
    /**
     * Registers the file and keeps its agents running from now on; reloads a known project. An untrusted text takes
     * effect only if the caller trusts it. If `agreed` is omitted, the caller trusts the current file.
     */
    readonly register: (config: string, caller: Caller, agreed?: Agreed) => Command<ProjectInfo>
    /** Puts a change of the project's file aside. `hash`: hash of the text that was shown to the user. */
    readonly configKeep: (name: string, hash: string | undefined, caller: Caller) => Command<Done>
    readonly configChange: (name: string, caller: Caller) => Effect.Effect<ConfigChangeInfo, CommandRefused>
    readonly projects: Effect.Effect<ReadonlyArray<ProjectInfo>>
    /**
     * Ends all agents of a project, by the project's name or conversation. No agent starts until the project is started
     * again.
     */
    readonly stopProject: (name: string, caller: Caller) => Command<Done>
    /** Starts the agents that were stopped with the project. */
    readonly startProject: (name: string, caller: Caller) => Command<Done>
    /** All live agents. */
    readonly all: Effect.Effect<ReadonlyArray<AgentInfo>>
    readonly sessions: Effect.Effect<ReadonlyArray<AgentSession>>
    readonly addresses: Effect.Effect<ReadonlyArray<Address>>
    readonly agent: (name: string, caller: Caller) => Effect.Effect<AgentInfo, CommandRefused>
    /** The entries of `all`, `backlog` and `calls` for the given agents. */
    readonly some: (agents: Iterable<Address>) => Effect.Effect<ReadonlyArray<AgentFacts>>
    /**
     * Starts a stopped agent and sets its error counters to zero. An agent that already runs is not changed, and the
     * reply says so.
     */
    readonly start: (name: string, caller: Caller) => Command<Done>
    /** Returns when all processes of the agent's run have ended. */
    readonly stop: (name: string, caller: Caller) => Command<Done>
    readonly restart: (name: string, caller: Caller) => Command<Done>
    readonly send: (
      name: string,
      message: {
        readonly text: string
        /**
         * `queue`: delivered when the agent is free. `steer`: ends the current turn at a safe boundary, and starts the
         * next turn with this message. `urgent`: ends the run.
         */
        readonly how: "queue" | "steer" | "urgent"
        /** Attached files, which must have been added before. */
        readonly files?: ReadonlyArray<{ readonly filename: string; readonly sha256: string }>
      },
      caller: Caller
    ) => Command<Done>
    /** Adds a part of a file. Returns the number of bytes received. The file is durable when it is complete. */
    readonly addFile: (piece: Piece) => Effect.Effect<number, CommandRefused>
    /** Removes the files with these hashes, even if a message needs them. */
    readonly forgetFiles: (hashes: ReadonlyArray<string>) => Effect.Effect<void>
    /** Unanswered messages to agents, and other entries that wait for the user. */
    readonly backlog: Effect.Effect<ReadonlyArray<BacklogInfo>>
    /** Queues unanswered messages again: the message with this id, or all unanswered messages of the agent. */
    readonly retry: (name: string, message: string | undefined, caller: Caller) => Command<Done>
    /** Discards unanswered messages. If `held` is true, discards queued messages instead. */
    readonly dismiss: (
      name: string,
      what: { readonly which: string | undefined; readonly held: boolean },
      caller: Caller
    ) => Command<Done>
    /** Ends the current turn. If the run has no turns, ends the run. */
    readonly interrupt: (name: string, caller: Caller) => Command<Done>
    /** Sets the model and mode of an agent; null keeps the current choice. */
    readonly choose: (
      name: string,
      choice: { readonly model: string | null; readonly mode: string | null; readonly reset: boolean },
      caller: Caller
    ) => Command<Done>
    readonly offers: (name: string, caller: Caller) => Effect.Effect<OffersInfo, CommandRefused>
    /** The files in an agent's folder that have changed since its work started. */
    readonly diff: (name: string, caller: Caller) => Effect.Effect<DiffInfo, CommandRefused>
    /** Tool calls that have no result yet: calls that wait for the user first, then the oldest first. */
    readonly calls: Effect.Effect<ReadonlyArray<CallInfo>>
    /**
     * A call that waits for the user, with its complete input. If it no longer waits, the error contains its outcome.
     */
    readonly askedCall: (callId: string) => Effect.Effect<AskedCall, CommandRefused>
    /** Deletes the stored inputs of these calls from memory and disk. A live run has its own copy. */
    readonly forgetInputs: (callIds: ReadonlyArray<string>) => Effect.Effect<void>
    /** Answers a call, by its id or a unique prefix. If the call no longer waits, the error contains its outcome. */
    readonly answerCall: (
      callId: string,
      /** `lasting`: the approval also keeps a rule; `hash` is then the hash of the preview. */
      decision: Omit<Answer, "lasting"> & { readonly lasting?: Lasting | undefined },
      caller: Caller
    ) => Command<Done>
    /** The change that an approval with a rule would make. */
    readonly answerPreview: (callId: string, lasting: Lasting) => Effect.Effect<AnswerPreview, CommandRefused>
    /** All conversations, including closed and archived ones. */
    readonly conversations: Effect.Effect<ReadonlyArray<ConversationInfo>>
    /**
     * A conversation by its id, a unique prefix, or its project's name (then the newest). Empty name: the caller's
     * project.
     */
    readonly conversation: (name: string, caller: Caller) => Effect.Effect<ConversationInfo, CommandRefused>
    /** Starts a conversation for an unknown project, or for a project whose newest conversation is closed. */
    readonly newConversation: (config: string, caller: Caller) => Command<ConversationInfo>
    readonly pause: (
      name: string,
      options: { readonly inFlight: "interrupt" | "complete"; readonly reason: string },
      caller: Caller
    ) => Command<Done>
    /** Resumes a conversation. After a suspension, the counters and the budget are reset. */
    readonly resume: (name: string, caller: Caller) => Command<Done>
    /** Stops all agents in an orderly way, then seals the log. Returns when that is done. */
    readonly close: (
      name: string,
      options: { readonly reason: string; readonly force: boolean },
      caller: Caller
    ) => Command<Done>
    /** Moves the payloads of a closed conversation to a compressed file. */
    readonly archive: (name: string, caller: Caller) => Command<Done>
    /** Spawns a sub-agent of a running agent, for a user or for the agent itself. */
    readonly spawn: (parent: string, request: SpawnRequest, caller: Caller) => Command<Done>
    /** Finds the agent of a live run, and its rights. Fails if the run has ended. */
    readonly voice: (runId: string) => Effect.Effect<VoiceOf, CommandRefused>
    /** Writes a rune `agent.reported`. The report goes to the sender of the task. */
    readonly report: (of: VoiceOf, report: Report) => Command<Done>
    /**
     * Writes a rune `agent.asked`, and mails the question to the user. The answer arrives as a message to the agent.
     */
    readonly ask: (of: VoiceOf, question: string) => Command<Done>
    /** Messages that wait for the agent, and messages that its current turn carries. */
    readonly inbox: (of: VoiceOf) => Effect.Effect<ReadonlyArray<InboxMessage>>
    /** The current config of each open conversation, followed by each later config. A config may be sent twice. */
    readonly configs: Stream.Stream<ConfigNews>
    /**
     * Removes files that no message needs. Erases expired text in a batch, and returns the number of runes
     * that were tried. `usual`: how long text is kept if the project's config does not say; undefined: text is kept
     * permanently.
     */
    readonly expire: (usual: Duration.Duration | undefined) => Effect.Effect<number, StorageError>
    /** When the oldest unfinished work started, ms since the epoch; infinite if there is none, 0 if unknown. */
    readonly openSince: Effect.Effect<number>
    /** The current config of a conversation; undefined if its project cannot be read. */
    readonly configOf: (conversation: string) => Effect.Effect<Project | undefined>
    /**
     * Waits until the log has been read after the daemon's start. Fails if it cannot be read; then there are no agents.
     */
    readonly recovered: Effect.Effect<void, StorageError>
    /** True if the log has been read. */
    readonly ready: Effect.Effect<boolean>
  }
>()("agentd/agents/Agents") {}
