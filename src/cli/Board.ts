/**
 * Board: the coding sessions and the agents on one page, what waits for a person
 * first. Pure; `ps` prints it once, `watch` again and again.
 */
import { isNear, putRight, warning } from "../domain/ErrorLimit.ts"
import type { AgentInfo, CallInfo, ConversationInfo, PlateInfo, ProjectInfo } from "../domain/Messages.ts"
import * as ConfigRows from "./ConfigRows.ts"
import { inWorld } from "./Hint.ts"
import { age, type Cell, cut, paint, plain, stateColour, table, type TableOptions } from "./Output.ts"
import * as SessionTable from "./SessionTable.ts"
import type { WaitingReply } from "../rpc/WaitingMessages.ts"
import { brief } from "./Waiting.ts"

const HEAD = ["AGENT", "STATE", "SINCE", "ERRORS", "INBOX", "BRANCH", "DETAIL"]

/** The agent's activity or wait, and when it goes on by itself. */
const detail = (agent: AgentInfo, now: number, world: string | null): string => {
  const warned = isNear(agent) && agent.state !== "Stopped" ? `${warning(agent)}; ` : ""
  const text = warned + inWorld(plain(putRight(agent.detail)), world)
  if (agent.nextAt === null) return text
  const wait = agent.nextAt > now ? `goes on in ${age(agent.nextAt - now)}` : "goes on now"
  return text === "" ? wait : `${wait}; ${text}`
}

export const rowOf = (agent: AgentInfo, now: number, world: string | null = null): ReadonlyArray<Cell> => {
  const failing = agent.consecutiveErrors > 0 || isNear(agent)
  return [
    { text: `${agent.project}/${agent.agent}`, colour: "bold" },
    { text: agent.state, colour: stateColour(agent.state) },
    { text: agent.since === 0 ? "-" : age(now - agent.since) },
    {
      text: `${agent.consecutiveErrors}/${agent.maxConsecutiveErrors} · ${agent.totalErrors}/${agent.maxTotalErrors}`,
      colour: failing ? "yellow" : undefined
    },
    { text: String(agent.inbox), colour: agent.inbox > 0 ? "cyan" : undefined },
    { text: plain(agent.branch ?? "-") },
    { text: detail(agent, now, world) }
  ]
}

/** The rows of the board. */
export interface Board {
  readonly plates: ReadonlyArray<PlateInfo>
  readonly agents: ReadonlyArray<AgentInfo>
  /** Calls that ask. */
  readonly calls: ReadonlyArray<CallInfo>
  /** Conversations that are being closed, or are closed. */
  readonly conversations: ReadonlyArray<ConversationInfo>
  /** Projects whose file is not the config in force. */
  readonly projects: ReadonlyArray<ProjectInfo>
  /** All that needs a person. */
  readonly waiting: WaitingReply
}

/** A conversation in one of these needs no word here; what only a person lets go on is in the list above. */
const QUIET = new Set(["created", "active", "paused", "suspended"])
const OVER = new Set(["closed", "archived"])

/** Why a project has no agents any more is worth a word for as long. */
const RECENT = 86_400_000

/** By code units: the first `localeCompare` of a process loads ICU's collator, for 8 ms. */
const inOrder = (a: string, b: string): number => Number(a > b) - Number(a < b)

export const boardOf = (found: Board): Board => ({
  plates: found.plates,
  agents: found.agents.toSorted((a, b) => inOrder(a.project, b.project) || inOrder(a.agent, b.agent)),
  calls: found.calls.filter(({ state }) => state === "awaiting_approval"),
  waiting: found.waiting,
  projects: ConfigRows.troubled(found.projects),
  conversations: found.conversations.filter(
    ({ config, state }) =>
      !QUIET.has(state) &&
      (!OVER.has(state) || found.conversations.every((other) => other.config !== config || OVER.has(other.state)))
  )
})

/** The sessions but those of our own runs that only wait for a call of theirs: the call itself is shown. */
export const sessionsOf = ({ calls, plates }: Board): ReadonlyArray<PlateInfo> => {
  const asking = new Set(calls.map(({ agent, project }) => `${project}/${agent}`))
  return plates.filter(
    ({ agent, approval, status }) =>
      status !== "AwaitingApproval" || approval !== null || agent === null || !asking.has(agent)
  )
}

/** How many matters wait for a person. */
export const waitingIn = ({ waiting }: Board): number => waiting.rows.length + waiting.more

const standing = (all: ReadonlyArray<ConversationInfo>, now: number, options: TableOptions): ReadonlyArray<string> =>
  all.flatMap(({ conversation, since, state }) => {
    const over = OVER.has(state)
    if (over && now - since > RECENT) return []
    const then =
      state === "closing" ? "" : inWorld(" (agentd conversation new, in its project's folder)", options.world ?? null)
    const text = ` for ${age(now - since)}${then}`
    const room = options.columns === null ? text : cut(text, Math.max(20, options.columns - conversation.length - 15))
    return [`${plain(conversation)} is ${paint(options.colour, stateColour(state), state)}${room}`]
  })

export const render = (board: Board, now: number, options: TableOptions): ReadonlyArray<string> => {
  const { agents, conversations, waiting } = board
  const plates = sessionsOf(board)
  const parts = [
    brief(waiting, now, options).map((line) => inWorld(line, options.world ?? null)),
    standing(conversations, now, options),
    plates.length === 0 ? [] : SessionTable.brief(plates, now, options),
    agents.length === 0
      ? []
      : table(
          HEAD,
          agents.map((agent) => rowOf(agent, now, options.world)),
          { ...options, spare: ["BRANCH", "ERRORS", "INBOX", "SINCE"] }
        )
  ].filter((part) => part.length > 0)
  if (parts.length > 0) return parts.flatMap((part, index) => (index === 0 ? part : ["", ...part]))
  return [
    "No agents yet. Describe some in agentd.jsonc (agentd init writes a sample), then run agentd start there.",
    "No sessions either. Let Claude Code tell of them: agentd hooks install"
  ].map((line) => inWorld(line, options.world ?? null))
}
