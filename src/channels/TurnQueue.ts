/**
 * TurnQueue: whose turn it is in a channel, and who is next. Pure.
 *
 *     line: [pm, dev, qa]      the first is next; who has had its turn goes to the end
 *     current: pm              who has the floor; it stands in the line, too
 *     paused: [dev]            who has paused its turn, and keeps its place in the line
 *     claims: [dev]            paused ones that may go on: they are next, the first first
 *
 * Guarantees: no agent stands in it twice; at most one has the floor, and it stands
 * in the line; who joins stands at the end; who leaves moves those behind it up by
 * one and no others; who claims the floor is paused, who is paused stands in the line.
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

/** Ends the agent's turn: neither under way nor paused. */
const over = (queue: TurnQueue, agent: string): TurnQueue => ({
  ...queue,
  current: queue.current === agent ? null : queue.current,
  paused: without(queue.paused, agent),
  claims: without(queue.claims, agent)
})

/** At the end: its turn comes after everybody else's. */
export const join = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.line.includes(agent) ? queue : { ...queue, line: [...queue.line, agent] }

export const leave = (queue: TurnQueue, agent: string): TurnQueue => ({
  ...over(queue, agent),
  line: without(queue.line, agent)
})

/** The floor is taken by one at a time, and only from within the line. */
export const grant = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.current === null && queue.line.includes(agent) ? { ...over(queue, agent), current: agent } : queue

/** Moves the agent to the end: it has had its turn, or forfeits a paused one. */
export const rotate = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.line.includes(agent) ? { ...over(queue, agent), line: [...without(queue.line, agent), agent] } : queue

/** Gives the floor to others; the agent keeps its place. */
export const pause = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.current === agent ? { ...queue, current: null, paused: [...queue.paused, agent] } : queue

/** Lets the agent claim the floor: the condition of its pause is met. */
export const claim = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.paused.includes(agent) && !queue.claims.includes(agent) ? { ...queue, claims: [...queue.claims, agent] } : queue

/** Arranges the queue: the named agents first, in that order; the others after them as they stood. */
export const arrange = (queue: TurnQueue, agents: ReadonlyArray<string>): TurnQueue => {
  const named = [...new Set(agents)].filter((agent) => queue.line.includes(agent))
  return { ...queue, line: [...named, ...queue.line.filter((agent) => !named.includes(agent))] }
}

/** From 1; null when it does not stand in it. */
export const positionOf = (queue: TurnQueue, agent: string): number | null => {
  const index = queue.line.indexOf(agent)
  return index === -1 ? null : index + 1
}

/** Nobody else is in the cycle. */
export const isSolo = (queue: TurnQueue, agent: string): boolean => queue.line.length === 1 && queue.line[0] === agent

export interface Rule {
  readonly order: Order
  /** The higher, the sooner; read with order `priority` only. */
  readonly priority: (agent: string) => number
  /** True where the agent could take a turn at once: of those that claim the floor, before all others and whatever the order. */
  readonly idle: (agent: string) => boolean
  /** True where the agent may take the floor, and would have something to do. */
  readonly ready: (agent: string) => boolean
}

/** The agent that takes the floor now; null while somebody has it, or when there is nobody for it. */
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
