/**
 * SubAgents: the order in which agents end, the limits on sub-agents, and the config of a sub-agent. Pure.
 *
 * Guarantees: Children end before their parents; otherwise the newest agent ends first. A sub-agent uses its parent's
 * backend, whose environment is not in the log.
 */
import { Result, Schema } from "effect"
import { AgentConfig } from "../config/AgentConfig.ts"
import { NAME, NAME_FORM } from "../config/Fields.ts"
import { type CommandRefused, refuse, type SpawnRequest } from "../domain/Messages.ts"
import type { RuneDraft } from "../core/event-log/Rune.ts"
import { AGENTS } from "../agents/machines/ConversationMachine.ts"
import type * as Inbox from "../agents/machines/Inbox.ts"
import { inboxName } from "../agents/machines/AgentStates.ts"

/** Computes the order in which agents must end. `names`: agents in the order in which they started. */
export const leaving = (
  names: ReadonlyArray<string>,
  parentOf: (name: string) => string | undefined
): ReadonlyArray<string> => {
  const newestFirst = names.toReversed()
  const order: Array<string> = []
  const seen = new Set<string>()
  const visit = (name: string): void => {
    // two agents in a file may be each other's parent
    if (seen.has(name)) return
    seen.add(name)
    for (const child of newestFirst) if (parentOf(child) === name) visit(child)
    order.push(name)
  }
  newestFirst.forEach(visit)
  return order
}

export interface SubAgent {
  readonly name: string
  readonly parent: string
  readonly stands: "queued" | "running" | "ended"
}

/** Sub-agents that can start now, oldest first. Without the sub-agents of a stopped parent, because they will end. */
export const admitted = (all: ReadonlyArray<SubAgent>, isRunning: (name: string) => boolean): ReadonlyArray<string> => {
  const free = AGENTS.soft - all.filter(({ stands }) => stands === "running").length
  return all
    .filter(({ parent, stands }) => stands === "queued" && isRunning(parent))
    .slice(0, Math.max(0, free))
    .map(({ name }) => name)
}

export interface Asked {
  readonly request: SpawnRequest
  /** Full name in the form `project/agent`. */
  readonly parent: string
  readonly inFile: boolean
  readonly all: ReadonlyArray<SubAgent>
  /**
   * `of`: depth of the new sub-agent; 1 if its parent is an agent in the config file. `most`: the maximum depth.
   * Undefined if a user makes the request.
   */
  readonly depth: { readonly of: number; readonly most: number } | undefined
  /** Number of sub-agents that agents have started on this day, and the maximum. */
  readonly today: { readonly day: string; readonly count: number; readonly most: number }
}

/** Describes the limit that the request exceeds; undefined if it exceeds none. */
export const boundOf = ({ all, depth, parent, request, today }: Asked): string | undefined => {
  const { name } = request
  if (depth !== undefined && today.count >= today.most)
    return `${parent} requests more sub-agents: agents have started ${today.count} on ${today.day}, and the limit is ${today.most} a day`
  if (depth !== undefined && depth.of > depth.most)
    return `${parent} requests a sub-agent ${name} at depth ${depth.of}: the limit is ${depth.most}`
  const living = all.filter(({ stands }) => stands !== "ended").length
  return depth !== undefined && living >= AGENTS.hard
    ? `${parent} requests more sub-agents: ${living} run or wait already, and the limit is ${AGENTS.hard}`
    : undefined
}

/** Why the sub-agent cannot be spawned; undefined if it can. */
export const refusal = ({ all, depth, inFile, parent, request, today }: Asked): CommandRefused | undefined => {
  const { name, task } = request
  if (!NAME.test(name))
    return refuse("invalid", `name: "${name.slice(0, 100)}" is not a valid agent name.`, `Use ${NAME_FORM}.`)
  if (task.trim() === "") return refuse("invalid", "task: is empty.", "Describe what the sub-agent has to do.")
  const living = all.filter(({ stands }) => stands !== "ended")
  if (inFile || living.some((one) => one.name === name)) {
    return refuse(
      "conflict",
      `name: an agent "${name}" already exists.`,
      "Choose another name; see the existing names: agentd ps"
    )
  }
  if (depth !== undefined && depth.of > depth.most) {
    return refuse(
      "full",
      `${parent} cannot have a sub-agent: it would be at depth ${depth.of}, and the limit is ${depth.most}.`,
      "Do it yourself, or ask a person to raise the limit: conversation.maxDepth in agentd.jsonc."
    )
  }
  if (depth !== undefined && today.count >= today.most) {
    return refuse(
      "full",
      `${parent} cannot have another sub-agent today: agents have started ${today.count}, and the limit is ${today.most} a day.`,
      "Do it yourself, or ask a person to raise the limit: conversation.maxSubAgentsPerDay in agentd.jsonc."
    )
  }
  if (living.length >= AGENTS.hard) {
    return refuse(
      "full",
      `${parent} cannot have another sub-agent: ${living.length} run or wait already, and the limit is ${AGENTS.hard}.`,
      `End one first: agentd stop ${living[0]!.name}`
    )
  }
  return undefined
}

/** The sub-agent's config: its parent's config with the fields of the request, in mode `inbox`. */
export const configOf = (parentName: string, parent: AgentConfig, request: SpawnRequest): AgentConfig => {
  const { prompt: _, ...rest } = parent
  return {
    ...rest,
    ...(request.role === undefined ? {} : { role: request.role }),
    ...(request.instructions === undefined ? {} : { instructions: request.instructions }),
    mode: "inbox",
    autostart: true,
    parent: parentName
  }
}

const encode = Schema.encodeSync(AgentConfig)

/**
 * The config without the environment variables of the backend's processes, because they can contain secrets. When the
 * sub-agent runs, it uses the parent's environment.
 */
const stored = (config: AgentConfig) => {
  const { backend, ...rest } = encode(config)
  return { ...rest, fallback: [], backend: { ...backend, env: {}, ...("mcp" in backend ? { mcp: {} } : {}) } }
}
const decode = Schema.decodeUnknownResult(AgentConfig)

/** The sub-agent's config in the log, with the current backend of its parent. */
export const settled = (
  written: unknown,
  parentName: string,
  parent: AgentConfig | undefined
): AgentConfig | undefined => {
  const own = decode(written)
  if (Result.isSuccess(own))
    return parent === undefined ? own.success : { ...own.success, backend: parent.backend, fallback: parent.fallback }
  return parent === undefined ? undefined : configOf(parentName, parent, { name: "", task: "" })
}

export const drafts = (of: {
  readonly conversation: string
  readonly name: string
  readonly parent: string
  readonly config: AgentConfig
  readonly by: string
  readonly task: Inbox.Message
}): ReadonlyArray<RuneDraft> => [
  {
    stream: of.conversation,
    kind: "agent.spawned",
    actor: `agent/${of.parent}`,
    trigger: "spawn",
    payload: {
      agent_id: of.name,
      parent_id: of.parent,
      config: stored(of.config),
      by: of.by,
      task: of.task.messageId
    }
  },
  {
    stream: of.conversation,
    kind: "inbox.received",
    actor: inboxName(of.name),
    trigger: "Received",
    payload: { event: { _tag: "Received", message: of.task } }
  }
]
