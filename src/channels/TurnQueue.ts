/**
 * TurnQueue: whose turn it is in a channel, and who is next. Pure.
 *
 *     line: [pm, dev, qa]      the first is next; who has had its turn goes to the end
 *     current: pm              who has the floor; it stands in the line, too
 *
 * Guarantees: nobody stands in it twice; at most one has the floor, and it stands
 * in the line; who joins stands at the end; who leaves moves those behind it up by
 * one and nobody else.
 */
import type { Order } from "../config/ChannelConfig.ts"

export interface TurnQueue {
  readonly line: ReadonlyArray<string>
  readonly current: string | null
}

export const empty: TurnQueue = { line: [], current: null }

const without = (line: ReadonlyArray<string>, agent: string) => line.filter((other) => other !== agent)

/** At the end: its turn comes after everybody else's. */
export const join = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.line.includes(agent) ? queue : { ...queue, line: [...queue.line, agent] }

export const leave = (queue: TurnQueue, agent: string): TurnQueue => ({
  line: without(queue.line, agent),
  current: queue.current === agent ? null : queue.current
})

/** The floor is taken by one at a time, and only from within the line. */
export const grant = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.current === null && queue.line.includes(agent) ? { ...queue, current: agent } : queue

/** It has had its turn: it goes to the end. */
export const rotate = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.line.includes(agent)
    ? { line: [...without(queue.line, agent), agent], current: queue.current === agent ? null : queue.current }
    : queue

/** It gives the floor to others and keeps its place. */
export const pause = (queue: TurnQueue, agent: string): TurnQueue =>
  queue.current === agent ? { ...queue, current: null } : queue

/** Those that are named come first, in that order; the others after them as they stood. */
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
  /** Its wait is over and it may go on: before anyone else, whatever the order. */
  readonly claims: (agent: string) => boolean
  /** It may take the floor, and would have something to do. */
  readonly ready: (agent: string) => boolean
}

/** Who takes the floor now; null while somebody has it, or when there is nobody for it. */
export const next = (queue: TurnQueue, rule: Rule): string | null => {
  if (queue.current !== null) return null
  const claiming = queue.line.find(rule.claims)
  if (claiming !== undefined) return claiming
  if (rule.order === "manual") return null
  if (rule.order === "round-robin") return queue.line.find(rule.ready) ?? null
  let best: string | null = null
  for (const agent of queue.line) {
    if ((best === null || rule.priority(agent) > rule.priority(best)) && rule.ready(agent)) best = agent
  }
  return best
}
