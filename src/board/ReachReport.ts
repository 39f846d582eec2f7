/**
 * ReachReport: reports what the agents of a project can reach, for `agentd doctor`. The report covers each agent's
 * sandbox, files, programs, network, keys, approvals and limits.
 *
 * Guarantees: the report contains no value of a variable and no key. If an agent's run would not start, the report says
 * why.
 */
import { Duration, Effect, type FileSystem } from "effect"
import { hostOf } from "../runs/Host.ts"
import * as Reach from "../runs/Reach.ts"
import type { Environment } from "../runs/process/ChildProcess.ts"
import * as Sandbox from "../runs/sandbox/Sandbox.ts"
import { isConfined } from "../agents/actors/Approval.ts"
import * as AgentdMcpServer from "../agents/run/AgentdMcpServer.ts"
import * as WorkingFolder from "../agents/workplace/WorkingFolder.ts"
import { type AgentConfig, worktreeConfigOf } from "../config/AgentConfig.ts"
import * as Budget from "../agents/machines/Budget.ts"
import * as CodexCommand from "../runs/codex/CodexCommand.ts"
import * as Fallback from "../config/Fallback.ts"
import type { Project } from "../config/ConfigFile.ts"
import { limitIn } from "../config/Span.ts"
import type { AgentReach } from "./ReachMessages.ts"

export interface World extends AgentdMcpServer.Options {
  readonly environment: Environment
}

/** The calls of an agent that agentd decides about. */
export const bound = ({ approvals, backend }: AgentConfig): string => {
  switch (backend.type) {
    case "command":
      return "nothing: a command asks for no leave"
    case "claude":
      return backend.permissionMode === "bypassPermissions" || backend.args.includes("--dangerously-skip-permissions")
        ? "nothing: Claude Code is set to ask for nothing"
        : `what Claude Code asks for (${backend.permissionMode})`
    case "codex": {
      const { approvalPolicy, sandbox } = CodexCommand.permissionsOf(backend, approvals.mode, backend.sandbox !== "off")
      return approvalPolicy === "never"
        ? "nothing: Codex is set to ask for nothing"
        : `what Codex asks for (${approvalPolicy}); its commands run unasked in its own sandbox (${sandbox})`
    }
    case "exec":
      return "nothing: it does not run"
    case "acp":
      return "what it asks for, and what it has agentd do; it runs its own copy of a call"
    case "model":
      return "every call of its tools"
  }
}

const millis = (span: Duration.Duration | undefined) => (span === undefined ? null : Duration.toMillis(span))

const cachesOf = (config: AgentConfig) => {
  const shared = (worktreeConfigOf(config)?.cache ?? []).flatMap((one) =>
    typeof one === "object" && one.shared ? [one.path] : []
  )
  return shared.length === 0 ? {} : { sharedCaches: shared }
}

const turnOf = (config: AgentConfig) => {
  const { toolCalls = "off", usd = "off" } = Budget.of(config).perTurn ?? {}
  return {
    wallTime: Budget.turnTime(config) ?? null,
    toolCalls: toolCalls === "off" ? null : toolCalls,
    usd: usd === "off" ? null : usd
  }
}

const settingsOf = (config: AgentConfig) => ({
  approvals: {
    mode: config.approvals.mode,
    always: config.approvals.always,
    never: config.approvals.never,
    ...(config.approvals.inside === "run" ? { inside: isConfined(config) } : {}),
    timeout: limitIn(config.approvals.timeout),
    bind: bound(config)
  },
  limits: {
    run: Budget.runTime(config) ?? null,
    turn: turnOf(config),
    tool: Duration.toMillis(config.backend.type === "model" ? config.toolTimeout : config.maxToolTimeout),
    runsPerHour: config.maxRunsPerHour ?? null,
    tokens: config.budget.tokens ?? null,
    toolCalls: config.budget.toolCalls ?? null,
    usd: config.budget.usd ?? null,
    wallTime: millis(config.budget.wallTime),
    machine: config.limits
  },
  may: config.may
})

/** Reports what agents and their fallbacks can reach. A sub-agent can reach the same as its parent. */
export const of = Effect.fnUntraced(function* (
  projects: ReadonlyArray<Project>,
  { command, environment, socket, state }: World
): Effect.fn.Return<ReadonlyArray<AgentReach>, never, FileSystem.FileSystem> {
  const mechanism = yield* Sandbox.probe(environment, ["bubblewrap", "namespaces"])
  const given = AgentdMcpServer.given({ command, socket, state })
  const host = hostOf({ store: "", environment, state, socket })
  return yield* Effect.forEach(
    projects.flatMap((project) => Fallback.each(project.agents).map((one) => ({ project, ...one }))),
    ({ agent, config, label, project }) =>
      Effect.map(
        Reach.of(config.backend, {
          agent,
          cwd: WorkingFolder.folderOf(state, project, agent, config),
          host,
          mechanism,
          socket,
          mcp: given(Reach.RUN, config)
        }),
        (reach): AgentReach => ({
          project: project.name,
          agent: label,
          backend: config.backend.type,
          ...reach,
          ...cachesOf(config),
          ...settingsOf(config)
        })
      )
  )
})
