/** `agentd ps`: the agents, one a row. */
import { Clock, Effect } from "effect"
import { call } from "../control/ControlClient.ts"
import type { AgentInfo } from "../domain/Messages.ts"
import { Invocation, print } from "./Invocation.ts"
import { age, type Cell, plain, stateColour, table } from "./Output.ts"

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

export const run = Effect.fnUntraced(function* () {
  const { colour, columns, paths } = yield* Invocation
  const agents = yield* call(paths.socket, (client) => client.Agents())
  const now = yield* Clock.currentTimeMillis
  const sorted = agents.toSorted((a, b) => a.project.localeCompare(b.project) || a.agent.localeCompare(b.agent))
  yield* print(sorted, () =>
    sorted.length === 0
      ? ["No agents yet. Describe some in agentd.jsonc (agentd init writes a sample), then run agentd start there."]
      : table(
          HEAD,
          sorted.map((agent) => rowOf(agent, now)),
          { colour, columns }
        )
  )
})
