/**
 * TurnQueue: the order of turns in a channel: who has the floor, and who is next. Pure.
 *
 *     line: [pm, dev, qa]      the first is next; an agent that has had its turn goes to the end
 *     current: pm              the agent with the floor; it is in the line, too
 *     paused: [dev]            agents that have paused their turn, and keep their position in the line
 *     claims: [dev]            paused agents that can continue: they are next, in this order
 *
 * Guarantees: no agent is in the line twice. At most one agent has the floor, and it is in the line. An agent that
 * joins is added at the end. When an agent leaves, only the agents behind it move up. An agent that claims the floor is
 * paused, and a paused agent is in the line.
 */
import type { Order } from "../config/ChannelConfig.ts"

export interface TurnQueue {
  readonly line: ReadonlyArray<string>
  readonly current: string | null
  readonly paused: ReadonlyArray<string>
  readonly claims: ReadonlyArray<string>
}

export const empty: TurnQueue = { line: [], current: null, paused: [], claims: [] }

const without = (line: ReadonlyArray<string>, agent: string) =>
  line.includes(agent) ? line.filter((other) => other !== agent) : line

/** Ends the agent's turn, whether the agent has the floor or is paused. */
const over = (queue: TurnQueue, agent: string): TurnQueue => ({
  ...queue,
  current: queue.current === agent ? null : queue.current,
  paused: without(queue.paused, agent),
  claims: without(queue.claims, agent)
})

export const join = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.line.includes(agent) ? queue : { ...queue, line: [...queue.line, agent] }

export const leave = (queue: TurnQueue, agent: string): TurnQueue => ({
  ...over(queue, agent),
  line: without(queue.line, agent)
})

/** Gives the floor to an agent in the line, if no agent has it. */
export const grant = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.current === null && queue.line.includes(agent) ? { ...over(queue, agent), current: agent } : queue

/** Moves the agent to the end of the line: it has had its turn, or gives up a paused turn. */
export const rotate = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.line.includes(agent) ? { ...over(queue, agent), line: [...without(queue.line, agent), agent] } : queue

/** Frees the floor. The agent keeps its position in the line. */
export const pause = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.current === agent ? { ...queue, current: null, paused: [...queue.paused, agent] } : queue

/** Lets the agent claim the floor, because the condition of its pause is met. */
export const claim = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.paused.includes(agent) && !queue.claims.includes(agent) ? { ...queue, claims: [...queue.claims, agent] } : queue

/** Moves the named agents to the front, in that order. The others follow in their current order. */
export const arrange = (queue: TurnQueue, agents: ReadonlyArray<string>): TurnQueue => {
  const named = [...new Set(agents)].filter((agent) => queue.line.includes(agent))
  return { ...queue, line: [...named, ...queue.line.filter((agent) => !named.includes(agent))] }
}

/** Position of the agent in the line, from 1; null if it is not in the line. */
export const positionOf = (queue: TurnQueue, agent: string): number | null => {
  const index = queue.line.indexOf(agent)
  return index === -1 ? null : index + 1
}

export const isSolo = (queue: TurnQueue, agent: string): boolean => queue.line.length === 1 && queue.line[0] === agent

export interface Rule {
  readonly order: Order
  /** Priority of an agent: agents with higher values go first. Used only if `order` is `priority`. */
  readonly priority: (agent: string) => number
  /**
   * True if the agent could take a turn at once. The first idle agent among those that claim the floor goes before all
   * others, whatever the order is.
   */
  readonly idle: (agent: string) => boolean
  /** True if the agent may take the floor, and has posts to read. */
  readonly ready: (agent: string) => boolean
}

/** The agent that takes the floor now. Null if an agent has the floor, or if none can take it. */
export const next = (queue: TurnQueue, rule: Rule): string | null => {
  if (queue.current !== null) return null
  const claiming = queue.claims.find(rule.idle)
  if (claiming !== undefined) return claiming
  if (rule.order === "manual") return null
  if (rule.order === "round-robin") return queue.line.find(rule.ready) ?? null
  let best: string | null = null
  for (const agent of queue.line) {
    if ((best === null || rule.priority(agent) > rule.priority(best)) && rule.ready(agent)) best = agent
  }
  return best
}
