/**
 * AgentSetting: what one agent is set in: its conversation, its settings, where it
 * works, and those outside who are told of it. Made anew for each agent.
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

/** A run's events as the board is told them. */
export class AgentSetting extends Context.Service<
  AgentSetting,
  {
    readonly agent: string
    readonly conversation: string
    readonly project: () => string
    readonly parent: string | null
    /** How far agents go among themselves without a person, as the file says now. */
    readonly rest: () => Rest
    /** Whether it was asked for and waits for a place: it has not begun. */
    readonly queued: () => boolean
    /** As the file says now: a reload takes effect with the next use. */
    readonly config: () => AgentConfig
    /** By its place: 0 is the agent's own, the others are its fallbacks. */
    readonly backend: (index: number) => Effect.Effect<Backend>
    /** Undefined: the model has no price. */
    readonly priceOf: (model: string) => Price | undefined
    /** Where the agent works, made where it is not there yet. */
    readonly place: Effect.Effect<{ readonly cwd: string; readonly branch: string | undefined }, WorktreeError>
    /** The end of the log when this daemon took it over: runs of before are lost. */
    readonly recoveredTo: number
    readonly home: ConversationPort
    /** The weather of the provider that the agent asks, as its file says now. */
    readonly weather: AgentWeather
    /** The rest of what the agent, its project and the machine may spend. */
    readonly allowance: AgentAllowance
    /** The parent that is to hear what a turn answered to these; undefined where none is. */
    readonly hearer: (turnId: string, asked: ReadonlyArray<Message>) => string | undefined
    /** The rune that says so is durable. */
    readonly answered: (eventId: number) => Effect.Effect<void>
    readonly report: (report: AgentReport) => Effect.Effect<void>
    /** Inputs of calls that wait for a person, of all agents. */
    readonly waiting: WaitingInputs
    /** Contents of files that come with messages, of all agents. */
    readonly files: MessageFiles
    /** Servers of agentd's own for a run, by name. */
    readonly mcp: (runId: string) => RunSpec["mcp"]
  }
>()("agentd/agents/AgentSetting") {}
