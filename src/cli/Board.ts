/**
 * Board: the coding sessions and the agents on one page, what waits for a person
 * first. Pure; `ps` prints it once, `watch` again and again.
 */
import type { AgentInfo, PlateInfo } from "../domain/Messages.ts"
import { age, type Cell, plain, stateColour, table, type TableOptions } from "./Output.ts"
import * as SessionTable from "./SessionTable.ts"

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
}

export const boardOf = (plates: ReadonlyArray<PlateInfo>, agents: ReadonlyArray<AgentInfo>): Board => ({
  plates,
  agents: agents.toSorted((a, b) => a.project.localeCompare(b.project) || a.agent.localeCompare(b.agent))
})

export const render = ({ agents, plates }: Board, now: number, options: TableOptions): ReadonlyArray<string> => {
  const sessions = plates.length === 0 ? [] : SessionTable.brief(plates, now, options)
  const ours =
    agents.length === 0
      ? []
      : table(
          HEAD,
          agents.map((agent) => rowOf(agent, now)),
          options
        )
  if (sessions.length > 0 && ours.length > 0) return [...sessions, "", ...ours]
  if (sessions.length + ours.length > 0) return [...sessions, ...ours]
  return [
    "No agents yet. Describe some in agentd.jsonc (agentd init writes a sample), then run agentd start there.",
    "No sessions either. Let Claude Code tell of them: agentd hooks install"
  ]
}
