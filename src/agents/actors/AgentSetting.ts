/**
 * AgentSetting: the environment of one agent: its conversation, its config, its working folder, and the services that
 * receive its reports. Each agent has one.
 */
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
import type { AgentWeather } from "./AgentWeather.ts"
import type { WorktreeError } from "../workplace/Worktree.ts"

/** The environment of one agent, as a service. */
export class AgentSetting extends Context.Service<
  AgentSetting,
  {
    readonly agent: string
    readonly conversation: string
    readonly project: () => string
    readonly parent: string | null
    /** How many messages agents may exchange without a person, from the current config. */
    readonly rest: () => Rest
    /** Whether the agent was requested and waits for a place: it has not begun. */
    readonly queued: () => boolean
    /** The current config: a reload takes effect at the next use. */
    readonly config: () => AgentConfig
    /** The backend by its index: 0 is the agent's own, the others are its fallbacks. */
    readonly backend: (index: number) => Effect.Effect<Backend>
    /** Undefined if the model has no price. */
    readonly priceOf: (model: string) => Price | undefined
    /** The folder that the agent works in, created if it does not exist. */
    readonly place: Effect.Effect<{ readonly cwd: string; readonly branch: string | undefined }, WorktreeError>
    /** The end of the log when this daemon took it over. Runs from before that point are lost unless adopted. */
    readonly recoveredTo: number
    readonly home: ConversationPort
    /** The state of the agent's providers, by the current config. */
    readonly weather: AgentWeather
    /** How much the agent, its project and the machine may still spend. */
    readonly allowance: AgentAllowance
    /** The parent that gets the turn's answer to these messages; undefined if there is none. */
    readonly hearer: (turnId: string, asked: ReadonlyArray<Message>) => string | undefined
    /** Called when the rune `agent.answered` is durable. */
    readonly answered: (eventId: number) => Effect.Effect<void>
    readonly report: (report: AgentReport) => Effect.Effect<void>
    /** Inputs of calls that wait for a person, of all agents. */
    readonly waiting: WaitingInputs
    /** Contents of files that come with messages, of all agents. */
    readonly files: MessageFiles
    /** MCP servers of agentd itself for a run, by name. */
    readonly mcp: (runId: string) => RunSpec["mcp"]
  }
>()("agentd/agents/AgentSetting") {}
