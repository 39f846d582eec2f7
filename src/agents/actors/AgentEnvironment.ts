/** AgentEnvironment: one agent's conversation, config and working folder, and the services that receive its reports. */
import { Context, type Effect } from "effect"
import type { Backend, RunSpec } from "../../runs/Backend.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { AgentReport } from "../../domain/AgentPort.ts"
import type { Price } from "../../domain/Prices.ts"
import type { ConversationPort } from "./ConversationPort.ts"
import type { Message, Rest } from "../machines/Inbox.ts"
import type { MessageFiles } from "../prompt/MessageFiles.ts"
import type { WaitingInputs } from "../run/WaitingInputs.ts"
import type { AgentAllowance } from "./AgentAllowance.ts"
import type { AgentProviders } from "./AgentProviders.ts"
import type { WorktreeError } from "../workplace/Worktree.ts"

export class AgentEnvironment extends Context.Service<
  AgentEnvironment,
  {
    readonly agent: string
    readonly conversation: string
    readonly project: () => string
    readonly parent: string | null
    /** Maximum number of messages that agents may exchange without a user's message, from the current config. */
    readonly rest: () => Rest
    /** True if the agent was requested but has not started, because it waits for a free slot. */
    readonly queued: () => boolean
    /** After a reload, the next call returns the new config. */
    readonly config: () => AgentConfig
    /** The backend by its index: 0 is the agent's own, the others are its fallbacks. */
    readonly backend: (index: number) => Effect.Effect<Backend>
    /** Undefined if the model has no price. */
    readonly priceOf: (model: string) => Price | undefined
    /** The folder that the agent works in, created if it does not exist. */
    readonly place: Effect.Effect<{ readonly cwd: string; readonly branch: string | undefined }, WorktreeError>
    /** Last event id of the log when this daemon started. Older runs are lost unless this daemon adopts them. */
    readonly recoveredTo: number
    readonly home: ConversationPort
    /** Availability of the agent's providers, according to the current config. */
    readonly weather: AgentProviders
    /** Remaining budgets of the agent, its project and the machine. */
    readonly allowance: AgentAllowance
    /** The parent agent that gets the turn's answer to these messages; undefined if there is none. */
    readonly hearer: (turnId: string, asked: ReadonlyArray<Message>) => string | undefined
    /** Called when the rune `agent.answered` is durable. */
    readonly answered: (eventId: number) => Effect.Effect<void>
    readonly report: (report: AgentReport) => Effect.Effect<void>
    /** Stored inputs of calls that wait for the user, for all agents. */
    readonly waiting: WaitingInputs
    /** Contents of the files that are attached to messages, for all agents. */
    readonly files: MessageFiles
    /** MCP servers of agentd itself for a run, by name. */
    readonly mcp: (runId: string) => RunSpec["mcp"]
  }
>()("agentd/agents/AgentEnvironment") {}
