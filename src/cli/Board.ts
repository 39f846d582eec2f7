/**
 * Board: the coding sessions and the agents on one page, what waits for a person
 * first. Pure; `ps` prints it once, `watch` again and again.
 */
import type { AgentInfo, CallInfo, ConversationInfo, PlateInfo } from "../domain/Messages.ts"
import { age, type Cell, cut, paint, plain, stateColour, table, type TableOptions } from "./Output.ts"
import * as SessionTable from "./SessionTable.ts"
import { shorten } from "./Waiting.ts"

const HEAD = ["AGENT", "STATE", "SINCE", "ERRORS", "INBOX", "BRANCH", "DETAIL"]

/** What it does or waits for, and when it goes on by itself. */
const detail = (agent: AgentInfo, now: number): string => {
  const text = plain(agent.detail)
  if (agent.nextAt === null) return text
  const wait = agent.nextAt > now ? `goes on in ${age(agent.nextAt - now)}` : "goes on now"
  return text === "" ? wait : `${wait}; ${text}`
}

export const rowOf = (agent: AgentInfo, now: number): ReadonlyArray<Cell> => {
  const failing = agent.consecutiveErrors > 0
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
    { text: detail(agent, now) }
  ]
}

/** What is shown. */
export interface Board {
  readonly plates: ReadonlyArray<PlateInfo>
  readonly agents: ReadonlyArray<AgentInfo>
  /** Those that ask. */
  readonly calls: ReadonlyArray<CallInfo>
  /** Those in which not everything goes its way. */
  readonly conversations: ReadonlyArray<ConversationInfo>
}

/** A conversation in one of these needs no word. */
const QUIET = new Set(["created", "active", "closed", "archived"])

export const boardOf = (found: Board): Board => ({
  plates: found.plates,
  agents: found.agents.toSorted((a, b) => a.project.localeCompare(b.project) || a.agent.localeCompare(b.agent)),
  calls: found.calls.filter(({ state }) => state === "awaiting_approval"),
  conversations: found.conversations.filter(({ state }) => !QUIET.has(state))
})

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
    options
  )
}

const standing = (all: ReadonlyArray<ConversationInfo>, now: number, options: TableOptions): ReadonlyArray<string> =>
  all.map(({ conversation, detail, since, state }) => {
    const why = detail === "" ? "" : `: ${plain(detail)}`
    const then = state === "closing" ? "" : ` (agentd resume ${conversation})`
    const text = ` for ${age(now - since)}${why}${then}`
    const room = options.columns === null ? text : cut(text, Math.max(20, options.columns - conversation.length - 15))
    return `${conversation} is ${paint(options.colour, stateColour(state), state)}${room}`
  })

export const render = (board: Board, now: number, options: TableOptions): ReadonlyArray<string> => {
  const { agents, calls, conversations, plates } = board
  const parts = [
    calls.length === 0 ? [] : asking(calls, now, options),
    standing(conversations, now, options),
    plates.length === 0 ? [] : SessionTable.brief(plates, now, options),
    agents.length === 0
      ? []
      : table(
          HEAD,
          agents.map((agent) => rowOf(agent, now)),
          options
        )
  ].filter((part) => part.length > 0)
  if (parts.length > 0) return parts.flatMap((part, index) => (index === 0 ? part : ["", ...part]))
  return [
    "No agents yet. Describe some in agentd.jsonc (agentd init writes a sample), then run agentd start there.",
    "No sessions either. Let Claude Code tell of them: agentd hooks install"
  ]
}
