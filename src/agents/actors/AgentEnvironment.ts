/** AgentEnvironment: one agent's conversation, config and working folder, and the services that receive its reports. */
import { Context, type Effect } from "effect"
import type { Backend, RunSpec } from "../../runs/Backend.ts"
import type { Rule } from "../../approvals/Rule.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { AgentReport } from "../../domain/AgentPort.ts"
import type { Price } from "../../domain/Prices.ts"
import type { ConversationPort } from "./ConversationPort.ts"
import type { Message, Rest } from "../machines/Inbox.ts"
import type { MessageFiles } from "../prompt/MessageFiles.ts"
import type { WaitingInputs } from "../run/WaitingInputs.ts"
import type { AgentAllowance } from "./AgentAllowance.ts"
import type { AgentProviders } from "./AgentProviders.ts"
import type { PortBlock } from "../machines/WorkerMachine.ts"
import type { Furnished } from "../workplace/WorkingFolder.ts"
import type { WorktreeError } from "../workplace/Worktree.ts"

export class AgentEnvironment extends Context.Service<
  AgentEnvironment,
  {
    readonly agent: string
    readonly conversation: string
    readonly project: () => string
    readonly parent: string | null
    /** Limits on the messages that agents exchange without a message from a user. Read from the current config. */
    readonly rest: () => Rest
    /** True if the agent was requested but has not started, because it waits for a free slot. */
    readonly queued: () => boolean
    /** The agent's current config, so after a reload the new config. */
    readonly config: () => AgentConfig
    /** The rules for the agent's calls in the configs that are in force. */
    readonly rules: () => ReadonlyArray<Rule>
    /** Returns the backend with this index: 0 is the agent's own, the others are its fallbacks. */
    readonly backend: (index: number) => Effect.Effect<Backend>
    /** Price of a model; undefined if it has none. */
    readonly priceOf: (model: string) => Price | undefined
    /** The folder that the agent works in, created if it does not exist. */
    readonly place: Effect.Effect<{ readonly cwd: string; readonly branch: string | undefined }, WorktreeError>
    /** Gives the agent's worktree what its project needs there. `before`: the ports that the agent had. */
    readonly furnish: (of: {
      readonly cwd: string
      readonly before: PortBlock | undefined
      readonly isLive?: boolean
    }) => Effect.Effect<Furnished, WorktreeError>
    /**
     * Id of the last event in the log when this daemon started. Earlier runs are lost unless this daemon adopts them.
     */
    readonly recoveredTo: number
    readonly home: ConversationPort
    /** Availability of the agent's providers, according to the current config. */
    readonly weather: AgentProviders
    /** Remaining budgets of the agent, its project and the machine. */
    readonly allowance: AgentAllowance
    /** The parent agent that gets the answer of the turn with these messages; undefined if no parent gets it. */
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
