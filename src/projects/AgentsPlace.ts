/**
 * AgentsPlace: what all agents of a daemon share besides its log and actors: where their
 * worktrees are made, the servers of agentd's own that a run is given, and how far the log
 * went when this daemon took it over.
 */
import { Context, type FileSystem } from "effect"
import type { Backends } from "../runs/Backends.ts"
import type { RunSpec } from "../runs/Backend.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import type { ActorSystem } from "../core/event-actor/ActorSystem.ts"
import type { EventLog } from "../core/event-log/EventLog.ts"
import type { Redact } from "../core/event-log/Redact.ts"
import type { Bus } from "./service/Bus.ts"
import type { MessageFiles } from "../agents/prompt/MessageFiles.ts"
import type { WaitingInputs } from "../agents/run/WaitingInputs.ts"

export class AgentsPlace extends Context.Service<
  AgentsPlace,
  {
    /** Where worktrees are made: `<state>/worktrees`. */
    readonly worktrees: string
    /** Where the daemon's own git folders lie. */
    readonly stores: string
    /** Where the configs lie that a person has agreed to: `<state>/configs`. */
    readonly configs: string
    /** The end of the log when this daemon took it over: what is older, an earlier daemon did. */
    readonly recoveredTo: number
    readonly waiting: WaitingInputs
    readonly files: MessageFiles
    /** Servers of agentd's own for a run, by name. */
    readonly mcp: (runId: string, config: AgentConfig) => RunSpec["mcp"]
  }
>()("agentd/agents/AgentsPlace") {}

export type Services = ActorSystem | AgentsPlace | Backends | Bus | EventLog | FileSystem.FileSystem | Redact
