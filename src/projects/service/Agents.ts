/**
 * Agents: every project and agent that the daemon keeps, and the commands on them.
 *
 * Guarantees: what a command's reply reports is durable; names are looked up in
 * the caller's project first, else as `project/agent`; one agent's trouble never
 * touches another.
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
  /** Not there: it lives no more. */
  readonly info: AgentInfo | undefined
  readonly backlog: BacklogInfo | undefined
  readonly calls: ReadonlyArray<CallInfo>
}

type Command<A> = Effect.Effect<A, CommandRefused | StorageError>

export class Agents extends Context.Service<
  Agents,
  {
    /**
     * Reads the file and keeps its agents running from now on; again for a known project reloads it. A text that
     * nobody has agreed to yet takes effect as far as the caller agrees; where nothing is said, as it stands.
     */
    readonly register: (config: string, caller: Caller, agreed?: Agreed) => Command<ProjectInfo>
    /** Puts a change of its file aside; `hash`: of the text that was shown. */
    readonly configKeep: (name: string, hash: string | undefined, caller: Caller) => Command<Done>
    readonly configChange: (name: string, caller: Caller) => Effect.Effect<ConfigChangeInfo, CommandRefused>
    readonly projects: Effect.Effect<ReadonlyArray<ProjectInfo>>
    /** Ends all agents of a project, by its name or its conversation; none starts until the project is started again. */
    readonly stopProject: (name: string, caller: Caller) => Command<Done>
    /** Starts what was stopped with the project. */
    readonly startProject: (name: string, caller: Caller) => Command<Done>
    /** Lists the agents that are alive. */
    readonly all: Effect.Effect<ReadonlyArray<AgentInfo>>
    /** Sessions of agents' runs. */
    readonly sessions: Effect.Effect<ReadonlyArray<AgentSession>>
    readonly addresses: Effect.Effect<ReadonlyArray<Address>>
    readonly agent: (name: string, caller: Caller) => Effect.Effect<AgentInfo, CommandRefused>
    /** Of some agents what `all`, `backlog` and `calls` say of them. */
    readonly some: (agents: Iterable<Address>) => Effect.Effect<ReadonlyArray<AgentFacts>>
    /** Wakes a stopped agent with fresh counters; one that runs already is left alone and said so. */
    readonly start: (name: string, caller: Caller) => Command<Done>
    /** OperatorStop: answers when the run's processes are gone. */
    readonly stop: (name: string, caller: Caller) => Command<Done>
    readonly restart: (name: string, caller: Caller) => Command<Done>
    readonly send: (
      name: string,
      message: {
        readonly text: string
        /** queue: when the agent is free. steer: the turn in progress ends at a safe boundary, this is the next. urgent: the run ends. */
        readonly how: "queue" | "steer" | "urgent"
        /** Files that come with it; their contents are here already. */
        readonly files?: ReadonlyArray<{ readonly filename: string; readonly sha256: string }>
      },
      caller: Caller
    ) => Command<Done>
    /** Takes a piece of a file's content, and answers how many bytes of it are here: all of them when it is durable. */
    readonly addFile: (piece: Piece) => Effect.Effect<number, CommandRefused>
    /** Removes these contents, whoever needs them. */
    readonly forgetFiles: (hashes: ReadonlyArray<string>) => Effect.Effect<void>
    /** Messages that agents were asked and have not answered. */
    readonly backlog: Effect.Effect<ReadonlyArray<BacklogInfo>>
    /** Asks again what came to no answer: the message of that id, or all of the agent's. */
    readonly retry: (name: string, message: string | undefined, caller: Caller) => Command<Done>
    /** Lets it go; `held`: the messages that the agent holds, instead. */
    readonly dismiss: (
      name: string,
      what: { readonly which: string | undefined; readonly held: boolean },
      caller: Caller
    ) => Command<Done>
    /** Ends the turn, or the run where there are no turns. */
    readonly interrupt: (name: string, caller: Caller) => Command<Done>
    /** Chooses the model and the mode of an agent; null: as before. */
    readonly choose: (
      name: string,
      choice: { readonly model: string | null; readonly mode: string | null; readonly reset: boolean },
      caller: Caller
    ) => Command<Done>
    /** The models, modes and commands that a person can name for an agent. */
    readonly offers: (name: string, caller: Caller) => Effect.Effect<OffersInfo, CommandRefused>
    /** The changes of an agent in its folder since its work began. */
    readonly diff: (name: string, caller: Caller) => Effect.Effect<DiffInfo, CommandRefused>
    /** Tool calls without a result yet, those that ask first, oldest first. */
    readonly calls: Effect.Effect<ReadonlyArray<CallInfo>>
    /** The call that a person decides, whole; refused for one that asks no more, with what became of it. */
    readonly askedCall: (callId: string) => Effect.Effect<AskedCall, CommandRefused>
    /** Forgets the whole inputs of these calls, in memory and on the disk; a run that lives has its own. */
    readonly forgetInputs: (callIds: ReadonlyArray<string>) => Effect.Effect<void>
    /** By the call's id or a unique beginning of it; refused for one that asks no more, with what became of it. */
    readonly answerCall: (callId: string, decision: Answer, caller: Caller) => Command<Done>
    /** Closed and archived ones, too. */
    readonly conversations: Effect.Effect<ReadonlyArray<ConversationInfo>>
    /** By its id, a unique beginning of it, or its project's name (the newest one). Empty: the caller's. */
    readonly conversation: (name: string, caller: Caller) => Effect.Effect<ConversationInfo, CommandRefused>
    /** A new conversation of a project whose last one is closed, or of a project that is not known yet. */
    readonly newConversation: (config: string, caller: Caller) => Command<ConversationInfo>
    readonly pause: (
      name: string,
      options: { readonly inFlight: "interrupt" | "complete"; readonly reason: string },
      caller: Caller
    ) => Command<Done>
    /** From a pause, or from a suspension (then with fresh counters and budget). */
    readonly resume: (name: string, caller: Caller) => Command<Done>
    /** Stops every agent in order and seals the log; answers when that is done. */
    readonly close: (
      name: string,
      options: { readonly reason: string; readonly force: boolean },
      caller: Caller
    ) => Command<Done>
    /** Moves the payloads of a closed conversation into a compressed file. */
    readonly archive: (name: string, caller: Caller) => Command<Done>
    /** A sub-agent of a running agent: a person asks for it, or the agent itself. */
    readonly spawn: (parent: string, request: SpawnRequest, caller: Caller) => Command<Done>
    /** Finds the agent of a live run, and its rights. Refused for a run that is over. */
    readonly voice: (runId: string) => Effect.Effect<VoiceOf, CommandRefused>
    /** A rune `agent.reported`; told to whoever gave the task. */
    readonly report: (of: VoiceOf, report: Report) => Command<Done>
    /** A rune `agent.asked`, mailed to a person; the answer comes as a message. */
    readonly ask: (of: VoiceOf, question: string) => Command<Done>
    /** Messages that wait for the agent, and those that its turn carries. */
    readonly inbox: (of: VoiceOf) => Effect.Effect<ReadonlyArray<InboxMessage>>
    /** Configs of each open conversation: now, and whenever the file changes. The same may come twice. */
    readonly configs: Stream.Stream<ConfigNews>
    /**
     * Removes contents of files that no message needs. Erases texts whose time is over, a bounded number; answers how many runes lost theirs. `usual`: how long they are
     * kept where a project says nothing; undefined: for ever.
     */
    readonly expire: (usual: Duration.Duration | undefined) => Effect.Effect<number, StorageError>
    /** Since when something of an agent's is open, ms since the epoch: infinite where nothing is, 0 where that cannot be told. */
    readonly openSince: Effect.Effect<number>
    /** The config in force for a conversation; undefined for one whose project cannot be read. */
    readonly configOf: (conversation: string) => Effect.Effect<Project | undefined>
    /** Waits until the log is folded at start-up; fails if it cannot be: then there are no agents. */
    readonly recovered: Effect.Effect<void, StorageError>
    /** False until then. */
    readonly ready: Effect.Effect<boolean>
  }
>()("agentd/agents/Agents") {}
