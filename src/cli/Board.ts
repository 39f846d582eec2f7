/**
 * Board: the coding sessions and the agents on one page, what waits for a person
 * first. Pure; `ps` prints it once, `watch` again and again.
 */
import { isNear, warning } from "../domain/ErrorLimit.ts"
import type { AgentInfo, CallInfo, ConversationInfo, PlateInfo, ProjectInfo } from "../domain/Messages.ts"
import * as ConfigRows from "./ConfigRows.ts"
import { inWorld } from "./Hint.ts"
import { age, type Cell, cut, paint, plain, stateColour, table, type TableOptions } from "./Output.ts"
import * as SessionTable from "./SessionTable.ts"
import { shorten } from "./Waiting.ts"

const HEAD = ["AGENT", "STATE", "SINCE", "ERRORS", "INBOX", "BRANCH", "DETAIL"]

/** The agent's activity or wait, and when it goes on by itself. */
const detail = (agent: AgentInfo, now: number, world: string | null): string => {
  const warned = isNear(agent) && agent.state !== "Stopped" ? `${warning(agent)}; ` : ""
  const text = warned + inWorld(plain(agent.detail), world)
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
  /** Conversations that are paused, suspended or in trouble. */
  readonly conversations: ReadonlyArray<ConversationInfo>
  /** Projects whose file is not the config in force. */
  readonly projects: ReadonlyArray<ProjectInfo>
}

/** A conversation in one of these needs no word. */
const QUIET = new Set(["created", "active"])
const OVER = new Set(["closed", "archived"])

/** Why a project has no agents any more is worth a word for as long. */
const RECENT = 86_400_000

/** By code units: the first `localeCompare` of a process loads ICU's collator, for 8 ms. */
const inOrder = (a: string, b: string): number => Number(a > b) - Number(a < b)

export const boardOf = (found: Board): Board => ({
  plates: found.plates,
  agents: found.agents.toSorted((a, b) => inOrder(a.project, b.project) || inOrder(a.agent, b.agent)),
  calls: found.calls.filter(({ state }) => state === "awaiting_approval"),
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
export const waitingIn = (board: Board): number =>
  sessionsOf(board).filter(SessionTable.waits).length + board.calls.length + ConfigRows.troubled(board.projects).length

const asking = (calls: ReadonlyArray<CallInfo>, now: number, options: TableOptions): ReadonlyArray<string> => {
  const short = shorten(calls.map(({ callId }) => callId))
  return table(
    ["ASKS YOU", "AGENT", "TOOL", "SINCE", "ARGUMENTS"],
    calls.map((call) => [
      { text: plain(short(call.callId)), colour: "bold" },
      { text: `${call.project}/${call.agent}` },
      { text: plain(call.tool), colour: "yellow" },
      { text: age(now - call.since) },
      { text: cut(plain(call.arguments.slice(0, 1000)), 200) }
    ]),
    { ...options, spare: ["SINCE"] }
  )
}

const standing = (all: ReadonlyArray<ConversationInfo>, now: number, options: TableOptions): ReadonlyArray<string> =>
  all.flatMap(({ conversation, detail, since, state }) => {
    const over = OVER.has(state)
    if (over && now - since > RECENT) return []
    const why = detail === "" || over ? "" : `: ${plain(detail)}`
    const next = over ? "agentd conversation new, in its project's folder" : `agentd resume ${plain(conversation)}`
    const then = state === "closing" ? "" : inWorld(` (${next})`, options.world ?? null)
    const text = ` for ${age(now - since)}${why}${then}`
    const room = options.columns === null ? text : cut(text, Math.max(20, options.columns - conversation.length - 15))
    return [`${plain(conversation)} is ${paint(options.colour, stateColour(state), state)}${room}`]
  })

export const render = (board: Board, now: number, options: TableOptions): ReadonlyArray<string> => {
  const { agents, calls, conversations, projects } = board
  const plates = sessionsOf(board)
  const parts = [
    calls.length === 0 ? [] : asking(calls, now, options),
    ConfigRows.rows(projects, now, options.colour).map((line) => inWorld(line, options.world ?? null)),
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
