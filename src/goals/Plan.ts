/**
 * Plan: the tasks of one goal as a dependency graph, and where each of them stands.
 *
 * Guarantees: a change costs what it touches, never the size of the plan; a task is
 * ready exactly when all that it depends on is completed and nobody has it; one that
 * depends, however far, on a task that failed or was cancelled is blocked; nothing
 * recurses, so a chain may be as long as it likes. No clock, no I/O: the same changes
 * in the same order give the same plan.
 *
 * It changes in place, since a goal may have 200,000 tasks: who needs one to keep
 * folds it again from the log.
 */
import type { Task, TaskCounts, TaskState } from "../domain/GoalMessages.ts"
import { Heap } from "./Heap.ts"

/** What is kept of a completed task; the whole of it is in the log. */
export interface Result {
  /** The rune that holds result and evidence. */
  readonly eventId: number
  readonly branch: string | null
  readonly cwd: string | null
  readonly head: string | null
}

/** One task and where it stands. Only its plan changes it. */
export interface Node {
  readonly task: Task
  /** Its age: its place in the plan. */
  readonly index: number
  state: TaskState
  /** The agent that has it, or had it last. */
  agent: string | null
  /** The message by which it was given out; the same after a restart. */
  messageId: string | null
  /** Times that it was given out, and how many of them ended with an error. */
  attempts: number
  errors: number
  /** When its state was entered, ms since the epoch. */
  since: number
  /** Not to be given out before, ms since the epoch. */
  notBefore: number
  error: string | null
  result: Result | null
  /** The rune by which it was given out last; 0 before. */
  given: number
  /** Where its agent stood when it began its newest try, and when it was given the task first. */
  base: string | null
  began: string | null
  /** Dependencies that are not completed. */
  missing: number
  /** Dependencies that are failed, cancelled or blocked. */
  broken: number
  readonly dependents: Array<Node>
  /** Its place in the queue; null where it is in none. */
  entry: Entry | null
}

/** A ready task that was queued; one that is not its node's any more counts for nothing. */
export interface Entry {
  readonly node: Node
  /** As its node said then, so that the order of a heap stands. */
  readonly notBefore: number
}

/** Ready tasks that the same agents are able to do, the first one first. */
export interface Lane {
  readonly owner: string | null
  readonly needs: ReadonlyArray<string>
  readonly heap: Heap<Entry>
}

/** Priority, then age. */
export const goesFirst = (a: Node, b: Node): boolean =>
  a.task.priority === b.task.priority ? a.index < b.index : a.task.priority > b.task.priority

const TERMINAL: ReadonlySet<TaskState> = new Set(["completed", "failed", "cancelled"])
const BREAKS: ReadonlySet<TaskState> = new Set(["failed", "cancelled", "blocked"])

export const isTerminal = (node: Node): boolean => TERMINAL.has(node.state)

const laneKey = ({ needs, owner }: Task): string => JSON.stringify([owner, needs.toSorted()])

export class Plan {
  readonly nodes: Array<Node> = []
  private readonly byId = new Map<string, Node>()
  readonly lanes = new Map<string, Lane>()
  private readonly later = new Heap<Entry>((a, b) => a.notBefore < b.notBefore)
  readonly counts: { -readonly [state in keyof TaskCounts]: number } = {
    pending: 0,
    assigned: 0,
    running: 0,
    completed: 0,
    failed: 0,
    blocked: 0,
    cancelled: 0
  }
  /** Assigned or running. */
  readonly inFlight = new Map<string, Node>()
  /** Errors of all tasks. */
  errors = 0

  get size(): number {
    return this.nodes.length
  }

  get terminal(): number {
    return this.counts.completed + this.counts.failed + this.counts.cancelled
  }

  find(id: string): Node | undefined {
    return this.byId.get(id)
  }

  /** Tasks that were checked: ids are new, dependencies are in the plan or among them, and there is no cycle. */
  add(tasks: ReadonlyArray<Task>, at: number): void {
    const added = tasks.map((task) => this.enter(task, at))
    for (const node of added) this.link(node)
    for (const node of added) this.settle(node, at)
  }

  private enter(task: Task, at: number): Node {
    const node: Node = {
      task,
      index: this.nodes.length,
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
      began: null,
      missing: 0,
      broken: 0,
      dependents: [],
      entry: null
    }
    this.nodes.push(node)
    this.byId.set(task.id, node)
    this.counts.pending++
    return node
  }

  /** One that is not there yet comes with a later piece of the plan: it is missing until then. */
  private readonly awaited = new Map<string, Array<Node>>()

  private link(node: Node): void {
    for (const id of node.task.dependsOn) {
      const dependency = this.byId.get(id)
      node.missing++
      if (dependency === undefined) {
        const waiting = this.awaited.get(id)
        if (waiting === undefined) this.awaited.set(id, [node])
        else waiting.push(node)
      } else this.depend(node, dependency)
    }
    const waiting = this.awaited.get(node.task.id)
    if (waiting === undefined) return
    this.awaited.delete(node.task.id)
    for (const other of waiting) this.depend(other, node)
  }

  private depend(node: Node, dependency: Node): void {
    dependency.dependents.push(node)
    if (dependency.state === "completed") node.missing--
    if (BREAKS.has(dependency.state)) node.broken++
  }

  /** Pending or blocked, by what it depends on, and so on to all that follow from it. */
  private settle(first: Node, at: number): void {
    const open = [first]
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (node.state !== "pending" && node.state !== "blocked") continue
      const state = node.broken > 0 ? "blocked" : "pending"
      if (state !== node.state) this.move(node, state, at, open)
      this.queue(node)
    }
  }

  /** To another state; what depends on it is put on `open` where it may have changed by that. */
  private move(node: Node, state: TaskState, at: number, open: Array<Node>): void {
    const broke = BREAKS.has(node.state)
    const breaks = BREAKS.has(state)
    const done = state === "completed"
    this.counts[node.state]--
    this.counts[state]++
    node.state = state
    node.since = at
    if (broke === breaks && !done) return
    for (const other of node.dependents) {
      if (broke !== breaks) other.broken += breaks ? 1 : -1
      // for good: what is completed stays so
      if (done) other.missing--
      open.push(other)
    }
  }

  private to(node: Node, state: TaskState, at: number): void {
    const open: Array<Node> = []
    this.move(node, state, at, open)
    if (state === "assigned" || state === "running") this.inFlight.set(node.task.id, node)
    else this.inFlight.delete(node.task.id)
    this.queue(node)
    for (const other of open) this.settle(other, at)
  }

  /** In the queue when it is ready, and only then. */
  private queue(node: Node): void {
    if (!this.isReady(node)) node.entry = null
    else if (node.entry === null) {
      node.entry = { node, notBefore: node.notBefore }
      const heap = node.notBefore > 0 ? this.later : this.laneOf(node.task).heap
      heap.push(node.entry)
    }
  }

  private laneOf(task: Task): Lane {
    const key = laneKey(task)
    let lane = this.lanes.get(key)
    if (lane === undefined) {
      lane = { owner: task.owner, needs: task.needs, heap: new Heap((a, b) => goesFirst(a.node, b.node)) }
      this.lanes.set(key, lane)
    }
    return lane
  }

  /** Nothing keeps it but time and agents. */
  isReady(node: Node): boolean {
    return node.state === "pending" && node.missing === 0
  }

  /** The first that counts; those before it are taken off. */
  private first(heap: Heap<Entry>): Entry | undefined {
    let entry = heap.peek()
    for (; entry !== undefined && entry.node.entry !== entry; entry = heap.peek()) heap.pop()
    return entry
  }

  /** The first ready task of a lane. */
  head(lane: Lane): Node | undefined {
    return this.first(lane.heap)?.node
  }

  /** Those whose wait is over are ready from now on. */
  advance(now: number): void {
    for (
      let next = this.first(this.later);
      next !== undefined && next.notBefore <= now;
      next = this.first(this.later)
    ) {
      next.node.notBefore = 0
      next.node.entry = null
      this.queue(next.node)
    }
  }

  /** When the next wait is over; undefined where none waits for time. */
  get nextAt(): number | undefined {
    return this.first(this.later)?.notBefore
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
  ) {
    const node = this.byId.get(id)!
    node.began = node.agent === by.agent ? (node.began ?? by.base) : by.base
    node.agent = by.agent
    node.messageId = by.messageId
    node.base = by.base
    node.given = by.eventId ?? 0
    node.attempts++
    node.notBefore = 0
    this.to(node, "assigned", at)
  }

  start(id: string, base: string | null, at: number): void {
    const node = this.byId.get(id)!
    node.base ??= base
    node.began ??= base
    this.to(node, "running", at)
  }

  complete(id: string, result: Result, at: number): void {
    const node = this.byId.get(id)!
    node.result = result
    node.error = null
    this.to(node, "completed", at)
  }

  /** For good, or until a person lets it be tried again. */
  fail(id: string, error: string, at: number): void {
    const node = this.byId.get(id)!
    node.error = error
    node.errors++
    this.errors++
    this.to(node, "failed", at)
  }

  /** One try is over, another follows. */
  release(
    id: string,
    why: { readonly error: string; readonly counts: boolean; readonly until: number },
    at: number
  ): void {
    const node = this.byId.get(id)!
    node.error = why.error
    if (why.counts) {
      node.errors++
      this.errors++
    }
    node.notBefore = why.until
    this.to(node, "pending", at)
  }

  cancel(id: string, at: number): void {
    const node = this.byId.get(id)
    if (node !== undefined && !isTerminal(node)) this.to(node, "cancelled", at)
  }

  /** One that failed is tried again, with a clean slate. */
  reopen(id: string, at: number): void {
    const node = this.byId.get(id)
    if (node === undefined || node.state !== "failed") return
    this.errors -= node.errors
    node.errors = 0
    node.notBefore = 0
    this.to(node, "pending", at)
  }
}
