/**
 * BoardSections: determines which parts of the board a rune affects, and merges newly read parts into the board's
 * facts. Pure.
 *
 * Guarantees: a rune of an agent affects that agent and the agents whose state it changes. If it is not known what a
 * rune affects, everything is read again. After a merge, facts have the same order as after a full read.
 */
import type { AgentFacts } from "../projects/service/Agents.ts"
import { asksFirst } from "../agents/machines/CallRow.ts"
import type { Address } from "../domain/AgentPort.ts"
import * as Rows from "../domain/BoardRow.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import type { Given } from "./WaitingList.ts"

/** Short lists that are always read completely. `others`: everything that does not belong to an agent. */
export type List = "channels" | "goals" | "plates" | "others"

export interface Parts {
  readonly all: boolean
  /** The agents to read, by row id. */
  readonly agents: ReadonlyMap<string, Address>
  readonly lists: ReadonlySet<List>
  /** True if the periodic check caused the read, false if runes did. */
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

export const hasSome = ({ agents, lists }: Parts): boolean => agents.size + lists.size > 0

/**
 * The parts to read in turn `n` of `turns`: a share of the known agents, and all live agents that are not known yet.
 * The first turn also reads everything that is not an agent.
 */
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

/** Names of an agent's state machines, and of the actor that writes runes in the agent's name. */
const AGENTS = new Set(["inbox", "turn", "agent", "worker", "tools", "tool", "choice", "meter", "voice"])
const LISTS: ReadonlyMap<string, List> = new Map([
  ["channel", "channels"],
  ["seat", "channels"],
  ["plan", "goals"],
  ["merge", "goals"],
  ["plate", "plates"]
])

/** States in which a conversation's agents may work. Runes that only count turns in these states change no row. */
const LIVES: ReadonlySet<string | null> = new Set(["created", "active"])
const isCount = ({ actor, from, to }: Rune): boolean =>
  actor.startsWith("conversation/") && LIVES.has(to) && from === to

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

/** Newly read parts. A list that is undefined has not been read. */
export interface News extends Partial<Omit<Given, "agents" | "backlog" | "calls">> {
  readonly agents: ReadonlyArray<AgentFacts>
}

/** Replaces known agents at their positions, and adds new ones at the end. */
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

/** Sorts items by the order of the agents to which they belong. */
const ordered = <A extends Address>(all: ReadonlyArray<A>, agents: Given["agents"]): ReadonlyArray<A> => {
  if (all.length < 2) return all
  const of = Map.groupBy(all, Rows.ofAgent)
  return agents.flatMap((agent) => of.get(Rows.ofAgent(agent)) ?? [])
}

/** Sorts calls in the order of a full read. */
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
