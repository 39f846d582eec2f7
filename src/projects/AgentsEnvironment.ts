/**
 * AgentsEnvironment: what all agents of a daemon share: folders, agentd's own MCP servers, stored inputs and files, and
 * the last event id of the earlier daemons.
 */
import { Context, type FileSystem } from "effect"
import type { TreePorts } from "../agents/workplace/TreePorts.ts"
import type { Runner } from "../runs/ConfinedCommand.ts"
import type { Backends } from "../runs/Backends.ts"
import type { RunSpec } from "../runs/Backend.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import type { ActorSystem } from "../core/event-actor/ActorSystem.ts"
import type { EventLog } from "../core/event-log/EventLog.ts"
import type { Redact } from "../core/event-log/Redact.ts"
import type { Bus } from "./service/Bus.ts"
import type { MessageFiles } from "../agents/prompt/MessageFiles.ts"
import type { WaitingInputs } from "../agents/run/WaitingInputs.ts"

export class AgentsEnvironment extends Context.Service<
  AgentsEnvironment,
  {
    /** The folder of all worktrees: `<state>/worktrees`. */
    readonly worktrees: string
    /** The folder of the daemon's own git repositories. */
    readonly stores: string
    /** Runs the commands that set up worktrees. */
    readonly commands: Runner
    /** The ports of all agents. */
    readonly ports: TreePorts
    /** The folder of the configs that the user has trusted: `<state>/configs`. */
    readonly configs: string
    /** Id of the last event in the log when this daemon started. Earlier daemons wrote the runes up to this id. */
    readonly recoveredTo: number
    readonly waiting: WaitingInputs
    readonly files: MessageFiles
    /** agentd's own MCP servers for a run, by name. */
    readonly mcp: (runId: string, config: AgentConfig) => RunSpec["mcp"]
  }
>()("agentd/agents/AgentsEnvironment") {}

export type Services = ActorSystem | AgentsEnvironment | Backends | Bus | EventLog | FileSystem.FileSystem | Redact
