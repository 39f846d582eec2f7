/**
 * Tools: the tools of agentd's own turn loop: shell, read, write, edit, list, search, and the tools of MCP servers.
 *
 * Guarantees (INV-TOOL-SANDBOX): file tools access nothing outside the workspace and nothing that is hidden, and do not
 * change `.git` or agentd's config (Workspace). Commands run in a sandbox if the machine has one. If it has none, each
 * command needs an approval or is not run (Sandbox). A folder that would expose secrets is rejected as a workspace. MCP
 * servers are programs that the config names; only approvals restrict them.
 */
import { Effect, type FileSystem, type Scope } from "effect"
import { MODEL_TOOLS, type ModelBackend } from "../config/BackendConfig.ts"
import { BackendError, type RunEvent, type RunSpec } from "../runs/Backend.ts"
import * as HiddenPaths from "../runs/HiddenPaths.ts"
import type { Host } from "../runs/Host.ts"
import { objection } from "../runs/sandbox/Confinement.ts"
import * as FileTools from "./FileTools.ts"
import * as McpTools from "./McpTools.ts"
import type { ProcessTree } from "../runs/process/ProcessTree.ts"
import type { Reaper } from "../runs/process/Reaper.ts"
import { Sandbox } from "../runs/sandbox/Sandbox.ts"
import * as SearchTool from "./SearchTool.ts"
import * as ShellTool from "./ShellTool.ts"
import type { Tool } from "./Tool.ts"
import * as Workspace from "../runs/sandbox/Workspace.ts"

export interface Toolbox {
  readonly tools: ReadonlyArray<Tool>
  /** Returns the current tools of MCP servers, which can change during the run. */
  readonly given?: () => ReadonlyArray<Tool>
}

export interface ToolboxOptions {
  readonly config: ModelBackend
  /** Absolute path of the only folder that the tools may change. */
  readonly workspace: string
  readonly spec: RunSpec
  readonly host: Host
  readonly emit: (event: RunEvent) => Effect.Effect<void>
}

const refusal = (message: string, remedy: string) => new BackendError({ message, remedy, fatal: true })

/** Creates the tools. The tools and the MCP servers exist until the scope closes. */
export const make = Effect.fnUntraced(function* (
  options: ToolboxOptions
): Effect.fn.Return<Toolbox, BackendError, Scope.Scope | ProcessTree | Reaper | FileSystem.FileSystem | Sandbox> {
  const { config, emit, host, spec } = options
  const why = objection(HiddenPaths.real(options.workspace), host.environment)
  if (why !== undefined)
    return yield* refusal(
      `${options.workspace} cannot be an agent's workspace: ${why}`,
      "move the project into its own folder, or give the agent a worktree"
    )
  const hidden = HiddenPaths.ofModel(config, host, options.workspace)
  const open = yield* Workspace.Opener
  const workspace = yield* Effect.mapError(
    open(options.workspace, { hidden: HiddenPaths.around(options.workspace, hidden) }),
    ({ message, remedy }) => refusal(`the workspace cannot be used: ${message}`, remedy)
  )
  const { mechanism } = yield* Sandbox
  const makers = {
    shell: Effect.flatMap(mechanism, (mechanism) =>
      ShellTool.make({ config, spec, host, workspace, hidden, mechanism })
    ),
    read: Effect.succeed(FileTools.read(workspace)),
    write: Effect.succeed(FileTools.write(workspace)),
    edit: Effect.succeed(FileTools.edit(workspace)),
    list: Effect.succeed(FileTools.list(workspace)),
    search: Effect.succeed(SearchTool.make(workspace))
  }
  const own = yield* Effect.forEach(
    MODEL_TOOLS.filter((name) => config.tools.includes(name)),
    (name) => makers[name]
  )
  // `spec.mcp` comes last, so that a server in the config cannot replace the one that agentd provides
  const servers = { ...config.mcp, ...spec.mcp }
  const given = yield* McpTools.make({ servers, spec, host, cwd: workspace.root, emit })
  return { tools: own, given }
})
