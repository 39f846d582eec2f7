/**
 * Plan: the tasks of one goal as a dependency graph, and where each of them stands.
 *
 * Guarantees: a plan never changes: a change gives another one and shares with it what
 * it did not touch, so that a change costs what it touches and never the size of the
 * plan; a task is ready exactly when all that it depends on is completed and nobody has
 * it; one that depends, however far, on a task that failed or was cancelled is blocked;
 * nothing recurses along the graph, so a chain may be as long as it likes. No clock, no
 * I/O: the same changes in the same order give the same plan.
 */
import { HashMap, Option } from "effect"
import type { Task, TaskCounts, TaskState } from "../domain/GoalMessages.ts"
import * as Heap from "./Heap.ts"
import { Links } from "./Links.ts"
import { Places } from "./Places.ts"
import { type Edit, Vector } from "./Vector.ts"

/** The result of a completed task as the plan keeps it; the whole is in the log. */
export interface Result {
  /** The rune that holds result and evidence. */
  readonly eventId: number
  readonly branch: string | null
  readonly cwd: string | null
  readonly head: string | null
  /** True if the task was done in a repository and left no commit. */
  readonly noCommit?: boolean
}

/** A task and its state, as a snapshot holds it. */
export interface Row {
  readonly task: Task
  readonly state: TaskState
  /** The agent that has the task, or had it last. */
  readonly agent: string | null
  /** The message by which the task was given out; the same after a restart. */
  readonly messageId: string | null
  /** How often the task was given out, and how often that ended with an error. */
  readonly attempts: number
  readonly errors: number
  /** When the state was entered, ms since the epoch. */
  readonly since: number
  /** The task is not given out before, ms since the epoch. */
  readonly notBefore: number
  readonly error: string | null
  readonly result: Result | null
  /** The rune by which the task was given out last; 0 before. */
  readonly given: number
  /** The agent's commit at the beginning of the newest try, and when the agent was given the task first. */
  readonly base: string | null
  readonly began: string | null
}

export interface Node extends Row {
  /** The task's place in the plan, which is its age. */
  readonly index: number
  /** The lane's place. */
  readonly lane: number
  /** A dependency is not completed. */
  readonly waits: boolean
  /** Dependencies that are failed, cancelled or blocked. */
  readonly broken: number
  /** The number of the task's entry in a queue; 0 where it is in none. */
  readonly entry: number
  /** The first links that hold a dependency of the task, and whether later ones may: of a task that came with a later piece. */
  readonly links: number
  readonly awaited: boolean
}

const rowOf = (task: Task, at: number): Row => ({
  task,
  state: "pending",
  agent: null,
  messageId: null,
  attempts: 0,
  errors: 0,
  since: at,
  notBefore: 0,
  error: null,
  result: null,
  given: 0,
  base: null,
  began: null
})

/** A ready task in a queue. An entry whose number is not its node's any more is void. */
interface Entry {
  readonly number: number
  readonly index: number
  readonly priority: number
  readonly notBefore: number
}

/** Ready tasks that the same agents are able to do, in order. */
export interface Lane {
  readonly owner: string | null
  readonly needs: ReadonlyArray<string>
  readonly heap: Heap.Heap<Entry> | undefined
}

/** Priority goes first, then age. */
export const goesFirst = (a: Node, b: Node): boolean =>
  a.task.priority === b.task.priority ? a.index < b.index : a.task.priority > b.task.priority

const first: Heap.Before<Entry> = (a, b) => (a.priority === b.priority ? a.index < b.index : a.priority > b.priority)
const sooner: Heap.Before<Entry> = (a, b) =>
  a.notBefore === b.notBefore ? a.index < b.index : a.notBefore < b.notBefore

const isOver = (notBefore: number, now: number, longest: number): boolean =>
  notBefore <= now || notBefore > now + longest

const TERMINAL: ReadonlySet<TaskState> = new Set(["completed", "failed", "cancelled"])
const FLIES: ReadonlySet<TaskState> = new Set(["assigned", "running"])
const BREAKS: ReadonlySet<TaskState> = new Set(["failed", "cancelled", "blocked"])

export const isTerminal = (node: Node): boolean => TERMINAL.has(node.state)

/** True where the task waits for nothing but time and agents. */
export const isReady = ({ state, waits }: Node): boolean => state === "pending" && !waits

const laneKey = ({ needs, owner }: Task): string => JSON.stringify([owner, needs.toSorted()])

/** A list of tasks that wait for one task. */
interface Waiting {
  readonly index: number
  /** The links that were known when the search began, and where the search is: what it has passed is completed. */
  readonly known: number
  readonly link: number
  readonly place: number
  readonly beside: Waiting | undefined
}

/** A piece of a plan while it is entered. */
interface Piece {
  readonly rows: ReadonlyArray<Row>
  /** The place of the first task, and of each by id. */
  readonly from: number
  readonly added: ReadonlyMap<string, number>
  readonly awaited: Map<string, Array<number>>
  /** Pairs of places: `dependents[n]` depends on `dependencies[n]`. */
  readonly dependencies: Array<number>
  readonly dependents: Array<number>
}

type Awaited = HashMap.HashMap<string, ReadonlyArray<number>>

interface Parts {
  readonly nodes: Vector<Node>
  /** By id. */
  readonly places: Places
  readonly links: ReadonlyArray<Links>
  /**
   * By the place of a task: those that are looked at again when it is completed. A task that waits
   * stands with one of those that it waits for; so one of many dependencies is not touched by the
   * end of each.
   */
  readonly waiting: Vector<Waiting | undefined>
  /** Ids that come with a later piece of the plan, and the tasks that depend on them. */
  readonly awaited: Awaited
  readonly lanes: Vector<Lane>
  /** By key. */
  readonly laneOf: Places
  /** Ready tasks that wait for time. The first entry of this heap and of each lane is never void; entries below may be. */
  readonly later: Heap.Heap<Entry> | undefined
  readonly counts: TaskCounts
  readonly flying: ReadonlySet<number>
  readonly errors: number
  readonly entries: number
}

export class Plan {
  private readonly parts: Parts

  private constructor(parts: Parts) {
    this.parts = parts
  }

  static readonly empty = new Plan({
    nodes: Vector.empty,
    places: Places.none,
    links: [],
    waiting: Vector.empty,
    awaited: HashMap.empty(),
    lanes: Vector.empty,
    laneOf: Places.none,
    later: undefined,
    counts: { pending: 0, assigned: 0, running: 0, completed: 0, failed: 0, blocked: 0, cancelled: 0 },
    flying: new Set(),
    errors: 0,
    entries: 0
  })

  /** All tasks in the order of their age. */
  get nodes(): Vector<Node> {
    return this.parts.nodes
  }

  get lanes(): Iterable<Lane> {
    return this.parts.lanes
  }

  get counts(): TaskCounts {
    return this.parts.counts
  }

  /** The tasks that are assigned or running. */
  get inFlight(): ReadonlyArray<Node> {
    return [...this.parts.flying].map((index) => this.parts.nodes.get(index)!)
  }

  get errors(): number {
    return this.parts.errors
  }

  get size(): number {
    return this.parts.nodes.size
  }

  get terminal(): number {
    const { cancelled, completed, failed } = this.parts.counts
    return completed + failed + cancelled
  }

  find(id: string): Node | undefined {
    const index = this.parts.places.find(id)
    return index === undefined ? undefined : this.parts.nodes.get(index)
  }

  /** The first ready task of a lane. */
  head({ heap }: Lane): Node | undefined {
    return heap === undefined ? undefined : this.parts.nodes.get(heap.item.index)
  }

  /** When the next wait is over; undefined where none waits for time. */
  get nextAt(): number | undefined {
    return this.parts.later?.item.notBefore
  }

  private changed(change: (draft: Draft) => void): Plan {
    const draft = new Draft(this.parts)
    change(draft)
    return new Plan(draft.done())
  }

  /** Adds tasks that were checked: ids are new, dependencies are in the plan or among the tasks (of a later piece, too), and there is no cycle. */
  add(tasks: ReadonlyArray<Task>, at: number): Plan {
    return tasks.length === 0 ? this : this.changed((draft) => draft.add(tasks.map((task) => rowOf(task, at))))
  }

  /** The plan of which `rows` were taken. */
  static of(rows: ReadonlyArray<Row>): Plan {
    return rows.length === 0 ? Plan.empty : Plan.empty.changed((draft) => draft.add(rows))
  }

  /** All that the plan is, as plain data, in the order of age. */
  rows(): ReadonlyArray<Row> {
    return Array.from(this.parts.nodes, (node) => ({
      task: node.task,
      state: node.state,
      agent: node.agent,
      messageId: node.messageId,
      attempts: node.attempts,
      errors: node.errors,
      since: node.since,
      notBefore: node.notBefore,
      error: node.error,
      result: node.result,
      given: node.given,
      base: node.base,
      began: node.began
    }))
  }

  /** Makes the tasks ready whose wait is over; a longer one than any was set by a clock that was ahead. */
  advance(now: number, longest = Number.POSITIVE_INFINITY): Plan {
    const next = this.nextAt
    return next === undefined || !isOver(next, now, longest)
      ? this
      : this.changed((draft) => draft.advance(now, longest))
  }

  private with(id: string, change: (draft: Draft, node: Node) => void): Plan {
    const node = this.find(id)
    if (node === undefined) throw new Error(`the plan has no task ${id}`)
    return this.changed((draft) => change(draft, node))
  }

  assign(
    id: string,
    by: {
      readonly agent: string
      readonly messageId: string
      readonly base: string | null
      readonly eventId?: number
    },
    at: number
  ): Plan {
    return this.with(id, (draft, node) => {
      const { agent, base, eventId = 0, messageId } = by
      const began = node.agent === agent ? (node.began ?? base) : base
      const attempts = node.attempts + 1
      draft.to({ ...node, agent, messageId, base, began, given: eventId, attempts, notBefore: 0 }, "assigned", at)
    })
  }

  start(id: string, base: string | null, at: number): Plan {
    return this.with(id, (draft, node) =>
      draft.to({ ...node, base: node.base ?? base, began: node.began ?? base }, "running", at)
    )
  }

  complete(id: string, result: Result, at: number): Plan {
    return this.with(id, (draft, node) => draft.to({ ...node, result, error: null }, "completed", at))
  }

  /** Fails the task for good, or until a person lets it be tried again. */
  fail(id: string, error: string, at: number): Plan {
    return this.with(id, (draft, node) => {
      draft.next.errors++
      draft.to({ ...node, error, errors: node.errors + 1 }, "failed", at)
    })
  }

  /** Ends a try; another follows. */
  release(
    id: string,
    why: { readonly error: string; readonly counts: boolean; readonly until: number },
    at: number
  ): Plan {
    return this.with(id, (draft, node) => {
      const { counts, error, until } = why
      if (counts) draft.next.errors++
      draft.to({ ...node, error, errors: node.errors + (counts ? 1 : 0), notBefore: until }, "pending", at)
    })
  }

  cancel(id: string, at: number): Plan {
    const node = this.find(id)
    return node === undefined || isTerminal(node) ? this : this.changed((draft) => draft.to(node, "cancelled", at))
  }

  /** Makes a failed task pending again, without its errors. */
  reopen(id: string, at: number): Plan {
    const node = this.find(id)
    if (node?.state !== "failed") return this
    return this.changed((draft) => {
      draft.next.errors -= node.errors
      draft.to({ ...node, errors: 0, notBefore: 0 }, "pending", at)
    })
  }
}

/** The changes from one plan to the next. */
class Draft {
  private readonly nodes: Edit<Node>
  private readonly waiting: Edit<Waiting | undefined>
  private readonly lanes: Edit<Lane>
  readonly next: { -readonly [part in keyof Parts]: Parts[part] }
  private readonly counts: { -readonly [state in keyof TaskCounts]: number }
  /** Lanes of which an entry may have become void. */
  private readonly worn = new Set<number>()

  constructor(before: Parts) {
    this.nodes = before.nodes.edit()
    this.waiting = before.waiting.edit()
    this.lanes = before.lanes.edit()
    this.counts = { ...before.counts }
    this.next = { ...before, counts: this.counts }
  }

  done(): Parts {
    if (this.worn.size > 0) this.next.later = this.inForce(this.next.later, sooner)
    for (const index of this.worn) {
      const lane = this.lanes.get(index)
      const heap = this.inForce(lane.heap, first)
      if (heap !== lane.heap) this.lanes.set(index, { ...lane, heap })
    }
    return { ...this.next, nodes: this.nodes.done(), waiting: this.waiting.done(), lanes: this.lanes.done() }
  }

  /** The heap without void entries at its front. */
  private inForce(heap: Heap.Heap<Entry> | undefined, before: Heap.Before<Entry>): Heap.Heap<Entry> | undefined {
    let left = heap
    while (left !== undefined && this.nodes.get(left.item.index).entry !== left.item.number) {
      left = Heap.pop(left, before)
    }
    return left
  }

  add(rows: ReadonlyArray<Row>): void {
    const from = this.nodes.size
    const piece: Piece = {
      rows,
      from,
      added: new Map(rows.map(({ task }, index) => [task.id, from + index])),
      awaited: new Map(),
      dependencies: [],
      dependents: []
    }
    for (const row of rows) this.enter(row, piece)
    const arrived = this.arrive(piece)
    this.next.places = this.next.places.with(piece.added.keys())
    this.next.awaited = HashMap.mutate(this.next.awaited, (all) => {
      for (const [id, indexes] of piece.awaited) {
        HashMap.set(all, id, [...Option.getOrElse(HashMap.get(all, id), () => []), ...indexes])
      }
    })
    if (piece.dependencies.length > 0)
      this.next.links = [...this.next.links, new Links(piece.dependencies, piece.dependents)]
    for (const index of arrived) this.wait(index)
    for (let index = from; index < this.nodes.size; index++) {
      if (this.nodes.get(index).waits) this.wait(index)
      this.settle(index, rows[index - from]!.since)
    }
  }

  /** Enters one task; a dependency that is not there yet comes with a later piece. */
  private enter(row: Row, { added, awaited, dependencies, dependents, from, rows }: Piece): void {
    const { state, task } = row
    const index = this.nodes.size
    let waits = false
    let isAwaiting = false
    let broken = 0
    for (const id of task.dependsOn) {
      const beside = added.get(id)
      const place = beside ?? this.next.places.find(id)
      if (place === undefined) {
        waits = isAwaiting = true
        const waiting = awaited.get(id)
        if (waiting === undefined) awaited.set(id, [index])
        else waiting.push(index)
        continue
      }
      dependencies.push(place)
      dependents.push(index)
      const { state } = beside === undefined ? this.nodes.get(place) : rows[place - from]!
      if (state !== "completed") waits = true
      if (BREAKS.has(state)) broken++
    }
    this.counts[state]++
    this.next.errors += row.errors
    if (FLIES.has(state)) this.next.flying = new Set([...this.next.flying, index])
    const links = this.next.links.length
    this.nodes.push({ ...row, index, lane: this.laneFor(task), waits, broken, entry: 0, links, awaited: isAwaiting })
    this.waiting.push(undefined)
  }

  /** Links the tasks that awaited tasks of this piece; answers with their places. */
  private arrive({ added, dependencies, dependents }: Piece): ReadonlySet<number> {
    const arrived = new Set<number>()
    if (HashMap.isEmpty(this.next.awaited)) return arrived
    this.next.awaited = HashMap.mutate(this.next.awaited, (all) => {
      for (const [id, index] of added) {
        const waiting = Option.getOrUndefined(HashMap.get(all, id))
        if (waiting === undefined) continue
        HashMap.remove(all, id)
        for (const other of waiting) {
          dependencies.push(index)
          dependents.push(other)
          arrived.add(other)
        }
      }
    })
    return arrived
  }

  /** Lets the task wait for one open dependency, searching on from where the last search ended; false where none is open. */
  private wait(index: number, from?: Waiting): boolean {
    let { known, link, place } = from ?? {
      known: this.next.links.length,
      link: this.next.links.length - 1,
      place: Infinity
    }
    const isOpen = (dependency: number) => this.nodes.get(dependency).state !== "completed"
    const node = this.nodes.get(index)
    for (let last = node.links; ;) {
      for (; link >= last; link--, place = Infinity) {
        const links = this.next.links[link]!
        place = links.youngest(index, place, isOpen)
        if (place === -1) continue
        const dependency = links.at(index, place)
        this.waiting.set(dependency, { index, known, link, place, beside: this.waiting.get(dependency) })
        return true
      }
      if (known === this.next.links.length || !node.awaited) break
      // awaited dependencies have come since
      last = known
      known = this.next.links.length
      link = known - 1
    }
    return node.awaited && node.task.dependsOn.some((id) => this.next.places.find(id) === undefined)
  }

  private laneFor(task: Task): number {
    const key = laneKey(task)
    const known = this.next.laneOf.find(key)
    if (known !== undefined) return known
    const lane = this.lanes.push({ owner: task.owner, needs: task.needs, heap: undefined })
    this.next.laneOf = this.next.laneOf.with([key])
    return lane
  }

  /** Makes a task pending or blocked by its dependencies, and then all tasks that this changes. */
  private settle(first: number, at: number): void {
    const open = [first]
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      const node = this.nodes.get(index)
      if (node.state !== "pending" && node.state !== "blocked") continue
      const state = node.broken > 0 ? "blocked" : "pending"
      if (state !== node.state) this.move(node, state, at, open)
      this.queue(index)
    }
  }

  /** Moves a task to another state; dependents that may change by that are put on `open`. */
  private move(node: Node, state: TaskState, at: number, open: Array<number>): void {
    const { index } = node
    const before = this.nodes.get(index).state
    this.counts[before]--
    this.counts[state]++
    // only a pending task is in a queue
    if (node.entry > 0) this.worn.add(node.lane)
    this.nodes.set(index, { ...node, state, since: at, entry: 0 })
    if (state === "completed") this.release(index, open)
    const change = Number(BREAKS.has(state)) - Number(BREAKS.has(before))
    if (change === 0) return
    for (const links of this.next.links) {
      links.dependents(index, (dependent) => {
        const other = this.nodes.get(dependent)
        this.nodes.set(dependent, { ...other, broken: other.broken + change })
        open.push(dependent)
      })
    }
  }

  /** Lets the tasks that waited for a completed task wait for another dependency, or for none. */
  private release(index: number, open: Array<number>): void {
    let waiting = this.waiting.get(index)
    if (waiting === undefined) return
    this.waiting.set(index, undefined)
    for (; waiting !== undefined; waiting = waiting.beside) {
      const node = this.nodes.get(waiting.index)
      if (!node.waits || this.wait(waiting.index, waiting)) continue
      this.nodes.set(waiting.index, { ...node, waits: false })
      open.push(waiting.index)
    }
  }

  /** Puts a changed task into another state, and settles all that depends on it. */
  to(node: Node, state: TaskState, at: number): void {
    const open: Array<number> = []
    this.move(node, state, at, open)
    const flies = FLIES.has(state)
    if (flies !== this.next.flying.has(node.index)) {
      const flying = new Set(this.next.flying)
      if (flies) flying.add(node.index)
      else flying.delete(node.index)
      this.next.flying = flying
    }
    this.queue(node.index)
    for (const other of open) this.settle(other, at)
  }

  private queue(index: number): void {
    const node = this.nodes.get(index)
    if (!isReady(node) || node.entry > 0) return
    const entry = { number: ++this.next.entries, index, priority: node.task.priority, notBefore: node.notBefore }
    this.nodes.set(index, { ...node, entry: entry.number })
    if (node.notBefore > 0) {
      this.next.later = Heap.push(this.next.later, entry, sooner)
      return
    }
    const lane = this.lanes.get(node.lane)
    this.lanes.set(node.lane, { ...lane, heap: Heap.push(lane.heap, entry, first) })
  }

  advance(now: number, longest: number): void {
    while (this.next.later !== undefined && isOver(this.next.later.item.notBefore, now, longest)) {
      const { index } = this.next.later.item
      this.next.later = this.inForce(Heap.pop(this.next.later, sooner), sooner)
      this.nodes.set(index, { ...this.nodes.get(index), notBefore: 0, entry: 0 })
      this.queue(index)
    }
  }
}
