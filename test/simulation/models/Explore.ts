/**
 * Explore: all that a model can reach, breadth first: every state once, by its key.
 *
 * A model steps the real functions of a feature; nothing is specified a second time. What
 * a model leaves out of its keys (ids, times) must not decide what follows.
 *
 * Guarantees: a state that breaks the invariant, a move that throws and a state from which no
 * goal can be reached are told with a shortest path to them; a model that has more
 * states than it says fails, and is never cut short in silence.
 */
import { hash } from "node:crypto"

export interface Move<S> {
  readonly name: string
  readonly next: () => S
}

export interface Model<S> {
  readonly initial: S
  readonly moves: (state: S) => Iterable<Move<S>>
  /** Two states of one key are the same state. */
  readonly key: (state: S) => string
  /** Says what is wrong with a state; undefined where nothing is. */
  readonly invariant: (state: S) => string | undefined
  /** From each state one of these can be reached. */
  readonly isGoal: (state: S) => boolean
  /** Whether a goal may be reached by a move of that name: all moves where left out. */
  readonly helps?: (move: string) => boolean
  /** More states than this are a failure. */
  readonly most: number
}

export interface Problem {
  readonly what: string
  /** The moves that lead there, a shortest way. */
  readonly path: ReadonlyArray<string>
}

export interface Explored {
  readonly states: number
  readonly transitions: number
  readonly goals: number
  /** Moves to the state that is farthest from the first. */
  readonly depth: number
  readonly problem: Problem | undefined
}

const START = -1

/** The known states, by their numbers. */
class Graph {
  readonly numbers = new Map<string, number>()
  readonly parents: Array<number> = []
  readonly names: Array<string> = []
  readonly depths: Array<number> = []
  readonly goals: Array<number> = []
  /** Pairs: from, to; those that may lead to a goal. */
  readonly edges: Array<number> = []
  transitions = 0

  add(key: string, parent: number, name: string): number {
    const number = this.parents.length
    this.numbers.set(key, number)
    this.parents.push(parent)
    this.names.push(name)
    this.depths.push(parent === START ? 0 : this.depths[parent]! + 1)
    return number
  }

  pathTo(number: number): ReadonlyArray<string> {
    const path: Array<string> = []
    for (let at = number; this.parents[at] !== START; at = this.parents[at]!) path.push(this.names[at]!)
    return path.toReversed()
  }

  /** The first state from which no goal is reached. */
  stuck(): number | undefined {
    const before: Array<Array<number>> = this.parents.map(() => [])
    for (let n = 0; n < this.edges.length; n += 2) before[this.edges[n + 1]!]!.push(this.edges[n]!)
    const isLive = new Uint8Array(this.parents.length)
    const queue = [...this.goals]
    for (const goal of queue) isLive[goal] = 1
    for (let head = 0; head < queue.length; head++) {
      for (const from of before[queue[head]!]!) {
        if (isLive[from] === 1) continue
        isLive[from] = 1
        queue.push(from)
      }
    }
    const found = isLive.indexOf(0)
    return found === -1 ? undefined : found
  }
}

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const explore = <S>({ helps, initial, invariant, isGoal, key, most, moves }: Model<S>): Explored => {
  const graph = new Graph()
  const told = (problem: Problem | undefined): Explored => ({
    states: graph.parents.length,
    transitions: graph.transitions,
    goals: graph.goals.length,
    depth: Math.max(...graph.depths.slice(-1)),
    problem
  })
  const short = (state: S): string => hash("sha1", key(state), "base64")
  const enter = (state: S, of: string, parent: number, name: string): Problem | undefined => {
    if (graph.parents.length >= most) throw new Error(`more than ${most} states: raise the model's bound, or lower it`)
    const number = graph.add(of, parent, name)
    if (isGoal(state)) graph.goals.push(number)
    const what = invariant(state)
    return what === undefined ? undefined : { what, path: graph.pathTo(number) }
  }
  const first = enter(initial, short(initial), START, "")
  if (first !== undefined) return told(first)
  let frontier: ReadonlyArray<S> = [initial]
  let from = 0
  while (frontier.length > 0) {
    const found: Array<S> = []
    for (const state of frontier) {
      for (const { name, next } of moves(state)) {
        graph.transitions += 1
        let after: S
        try {
          after = next()
        } catch (error) {
          return told({ what: `${name} throws: ${words(error)}`, path: [...graph.pathTo(from), name] })
        }
        const of = short(after)
        let to = graph.numbers.get(of)
        if (to === undefined) {
          to = graph.parents.length
          const problem = enter(after, of, from, name)
          if (problem !== undefined) return told(problem)
          found.push(after)
        }
        if (helps === undefined || helps(name)) graph.edges.push(from, to)
      }
      from += 1
    }
    frontier = found
  }
  const stuck = graph.stuck()
  return told(stuck === undefined ? undefined : { what: "no goal is reached from here", path: graph.pathTo(stuck) })
}

/** For a test's message. */
export const say = ({ problem }: Explored): string =>
  problem === undefined ? "" : `${problem.what}, after:\n  ${problem.path.join("\n  ")}`
