/**
 * BoardParts: the parts of the board that runes touch, and the board's facts with these parts read anew. Pure.
 *
 * Guarantees: an agent's own rune touches that agent and those whom it moves; a rune that is not known to touch less
 * touches all; facts with a part read anew stand in the order in which a reading of all has them.
 */
import type { AgentFacts } from "../projects/service/Agents.ts"
import { asksFirst } from "../agents/machines/CallRow.ts"
import type { Address } from "../domain/AgentPort.ts"
import * as Rows from "../domain/BoardRow.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import type { Given } from "./WaitingList.ts"

/** Lists that are short, and are read as a whole; `others`: all that is no agent's. */
export type List = "channels" | "goals" | "plates" | "others"

export interface Parts {
  readonly all: boolean
  /** By their rows' ids. */
  readonly agents: ReadonlyMap<string, Address>
  readonly lists: ReadonlySet<List>
  /** True: read in turn, whatever runes there were. */
  readonly inTurn: boolean
}

export const NOTHING: Parts = { all: false, agents: new Map(), lists: new Set(), inTurn: false }
export const ALL: Parts = { ...NOTHING, all: true }

export const join = (a: Parts, b: Parts): Parts => ({
  all: a.all || b.all,
  agents: b.agents.size === 0 ? a.agents : new Map([...a.agents, ...b.agents]),
  lists: b.lists.size === 0 ? a.lists : new Set([...a.lists, ...b.lists]),
  inTurn: a.inTurn || b.inTurn
})

/** Whether there is less than all to read. */
export const hasSome = ({ agents, lists }: Parts): boolean => agents.size + lists.size > 0

/** Of so many turns the n-th has its part of the known agents and all that live and are not known, and the first one all else. */
export const turn = (
  { known, living }: { readonly known: ReadonlyArray<Address>; readonly living: ReadonlyArray<Address> },
  n: number,
  turns: number
): Parts => {
  const ids = new Set(known.map(Rows.ofAgent))
  const its = known.filter((_, at) => at % turns === n % turns)
  const unknown = living.filter((agent) => !ids.has(Rows.ofAgent(agent)))
  return {
    all: false,
    agents: new Map([...its, ...unknown].map((agent) => [Rows.ofAgent(agent), agent])),
    lists: new Set(n % turns === 0 ? ["others" as const] : []),
    inTurn: true
  }
}

/** Machines of which an agent consists, and what speaks in its name. */
const AGENTS = new Set(["inbox", "turn", "agent", "worker", "tools", "tool", "choice", "meter", "voice"])
const LISTS: ReadonlyMap<string, List> = new Map([
  ["channel", "channels"],
  ["seat", "channels"],
  ["plan", "goals"],
  ["merge", "goals"],
  ["plate", "plates"]
])

/** States of a conversation in which it holds nobody: a turn that it counts changes no row. */
const LIVES: ReadonlySet<string | null> = new Set(["created", "active"])
const isCount = ({ actor, from, to }: Rune): boolean =>
  actor.startsWith("conversation/") && LIVES.has(to) && from === to

/** The parts that runes touch. */
export const touched = (runes: Iterable<Rune>): Parts => {
  let all = false
  const agents = new Map<string, Address>()
  const lists = new Set<List>()
  for (const rune of runes) {
    if (isCount(rune)) continue
    for (const actor of [rune.actor, ...rune.moves]) {
      const [machine = "", name] = actor.split("/", 2)
      const list = LISTS.get(machine)
      if (name === undefined) all = true
      else if (AGENTS.has(machine)) {
        const address = { conversation: rune.stream, agent: name }
        agents.set(Rows.ofAgent(address), address)
      } else if (list !== undefined) lists.add(list)
      else all = true
    }
  }
  return { all, agents, lists, inTurn: false }
}

/** Parts as they are now; a list that is not there was not read. */
export interface News extends Partial<Omit<Given, "agents" | "backlog" | "calls">> {
  readonly agents: ReadonlyArray<AgentFacts>
}

/** Each where it was, with new ones at the end. */
const inPlace = (agents: Given["agents"], news: ReadonlyMap<string, AgentFacts>): Given["agents"] => {
  const left = new Map(news)
  const known = agents.flatMap((agent) => {
    const id = Rows.ofAgent(agent)
    const facts = left.get(id)
    if (facts === undefined) return [agent]
    left.delete(id)
    return facts.info === undefined ? [] : [facts.info]
  })
  return [...known, ...[...left.values()].flatMap(({ info }) => info ?? [])]
}

/** In the order of the agents that they are of. */
const ordered = <A extends Address>(all: ReadonlyArray<A>, agents: Given["agents"]): ReadonlyArray<A> => {
  if (all.length < 2) return all
  const of = Map.groupBy(all, Rows.ofAgent)
  return agents.flatMap((agent) => of.get(Rows.ofAgent(agent)) ?? [])
}

/** Calls in the order in which the agents are asked for them. */
export const callsInOrder = (calls: Given["calls"], agents: Given["agents"]): Given["calls"] =>
  ordered(calls, agents).toSorted(asksFirst)

export const withNews = <G extends Given>(given: G, { agents: read, ...lists }: News): G => {
  if (read.length === 0) return { ...given, ...lists }
  const news = new Map(read.map((facts) => [Rows.ofAgent(facts), facts]))
  const agents = inPlace(given.agents, news)
  const others = <A extends Address>(all: ReadonlyArray<A>) => all.filter((one) => !news.has(Rows.ofAgent(one)))
  const backlog = [...others(given.backlog), ...read.flatMap((facts) => facts.backlog ?? [])]
  const calls = [...others(given.calls), ...read.flatMap((facts) => facts.calls)]
  return {
    ...given,
    ...lists,
    agents,
    backlog: ordered(backlog, agents),
    calls: callsInOrder(calls, agents)
  }
}
