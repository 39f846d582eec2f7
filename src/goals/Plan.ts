/**
 * Plan: the tasks of one goal as a dependency graph, with the state of each task.
 *
 * Guarantees: a plan is immutable: a change returns another plan. A task is ready exactly when all of its dependencies
 * are completed and no agent has it. A task is blocked if it depends, directly or not, on a failed or cancelled task.
 * Nothing recurses along the graph, so a chain can have any length. No clock, no I/O: the same changes in the same
 * order give the same plan. A plan has no maximum size: PlanFile rejects plans that are too long.
 */
import type { Task, TaskCounts, TaskState } from "../domain/GoalMessages.ts"

/** The result of a completed task, as far as the plan stores it. The whole result is in the log. */
export interface Result {
  /** `eventId` of the rune with result and evidence. */
  readonly eventId: number
  readonly branch: string | null
  readonly cwd: string | null
  readonly head: string | null
  /** True if the task was done in a repository and left no commit. */
  readonly noCommit?: boolean
}

/** A task and its state, in the form stored in a snapshot. */
export interface Row {
  readonly task: Task
  readonly state: TaskState
  /** The agent that has the task, or had it last. */
  readonly agent: string | null
  /** Id of the message that assigned the task. It stays the same after a restart. */
  readonly messageId: string | null
  /** Number of assignments, and number of those that ended with an error. */
  readonly attempts: number
  readonly errors: number
  /** When the state was entered, ms since the epoch. */
  readonly since: number
  /** Earliest time of the next assignment, ms since the epoch. */
  readonly notBefore: number
  readonly error: string | null
  readonly result: Result | null
  /** `eventId` of the rune of the last assignment; 0 before the first. */
  readonly given: number
  /** The agent's commit at the start of the newest attempt, and at the start of its first attempt at this task. */
  readonly base: string | null
  readonly began: string | null
}

export interface Node extends Row {
  /** The task's position in the plan; older tasks come first. */
  readonly index: number
  /** Number of dependencies that are not completed, or not in the plan yet, because plans are logged in pieces. */
  readonly missing: number
  /** Number of dependencies that are failed, cancelled or blocked. */
  readonly broken: number
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

/** Whether task `a` is assigned before `b`: by priority, then by age. */
export const goesFirst = (a: Node, b: Node): boolean =>
  a.task.priority === b.task.priority ? a.index < b.index : a.task.priority > b.task.priority

const TERMINAL: ReadonlySet<TaskState> = new Set(["completed", "failed", "cancelled"])
const IN_FLIGHT: ReadonlySet<TaskState> = new Set(["assigned", "running"])
const BREAKS: ReadonlySet<TaskState> = new Set(["failed", "cancelled", "blocked"])

export const isTerminal = (node: Node): boolean => TERMINAL.has(node.state)

/** True if the task waits only for its retry delay or for an agent. */
export const isReady = ({ missing, state }: Node): boolean => state === "pending" && missing === 0

/** The edges between the tasks of a plan. Plans with the same tasks share one graph. */
class Graph {
  private readonly tasks: ReadonlyArray<Task>
  private readonly places: ReadonlyMap<string, number>
  /** Indexes of dependents, by the id of the dependency; built on first use. */
  private edges: ReadonlyMap<string, ReadonlyArray<number>> | undefined

  constructor(tasks: ReadonlyArray<Task>) {
    this.tasks = tasks
    this.places = new Map(tasks.map(({ id }, index) => [id, index]))
  }

  with(tasks: ReadonlyArray<Task>): Graph {
    return new Graph([...this.tasks, ...tasks])
  }

  place(id: string): number | undefined {
    return this.places.get(id)
  }

  dependents(id: string): ReadonlyArray<number> {
    this.edges ??= this.reversed()
    return this.edges.get(id) ?? []
  }

  private reversed(): ReadonlyMap<string, ReadonlyArray<number>> {
    const edges = new Map<string, Array<number>>()
    for (const [index, { dependsOn }] of this.tasks.entries()) {
      for (const id of dependsOn) {
        const known = edges.get(id)
        if (known === undefined) edges.set(id, [index])
        else known.push(index)
      }
    }
    return edges
  }
}

const countsOf = (nodes: ReadonlyArray<Node>): TaskCounts => {
  const counts = { pending: 0, assigned: 0, running: 0, completed: 0, failed: 0, blocked: 0, cancelled: 0 }
  for (const { state } of nodes) counts[state]++
  return counts
}

export class Plan {
  /** All tasks, oldest first. */
  readonly nodes: ReadonlyArray<Node>
  private readonly graph: Graph
  private counted: TaskCounts | undefined

  private constructor(nodes: ReadonlyArray<Node>, graph: Graph) {
    this.nodes = nodes
    this.graph = graph
  }

  static readonly empty = new Plan([], new Graph([]))

  get counts(): TaskCounts {
    this.counted ??= countsOf(this.nodes)
    return this.counted
  }

  get inFlight(): ReadonlyArray<Node> {
    return this.nodes.filter(({ state }) => IN_FLIGHT.has(state))
  }

  get errors(): number {
    return this.nodes.reduce((sum, { errors }) => sum + errors, 0)
  }

  get size(): number {
    return this.nodes.length
  }

  get terminal(): number {
    const { cancelled, completed, failed } = this.counts
    return completed + failed + cancelled
  }

  find(id: string): Node | undefined {
    const index = this.graph.place(id)
    return index === undefined ? undefined : this.nodes[index]
  }

  /** The tasks that can be assigned now. */
  get ready(): ReadonlyArray<Node> {
    return this.nodes.filter((node) => isReady(node) && node.notBefore === 0)
  }

  /** Earliest end of a retry delay, in ms since the epoch. Undefined if no task has one. */
  get nextAt(): number | undefined {
    let next: number | undefined
    for (const node of this.nodes) {
      if (isReady(node) && node.notBefore > 0 && node.notBefore < (next ?? Infinity)) next = node.notBefore
    }
    return next
  }

  /**
   * Adds tasks that were checked: their ids are new and there is no cycle. Every dependency is in the plan, among these
   * tasks, or in a later piece of the plan.
   */
  add(tasks: ReadonlyArray<Task>, at: number): Plan {
    return tasks.length === 0 ? this : this.with(tasks.map((task) => rowOf(task, at)))
  }

  static of(rows: ReadonlyArray<Row>): Plan {
    return rows.length === 0 ? Plan.empty : Plan.empty.with(rows)
  }

  private with(rows: ReadonlyArray<Row>): Plan {
    const { size } = this
    const graph = this.graph.with(rows.map(({ task }) => task))
    const stateOf = (id: string): TaskState | undefined => {
      const place = graph.place(id)
      return place === undefined ? undefined : (this.nodes[place] ?? rows[place - size])?.state
    }
    const added = rows.map((row, n): Node => {
      const states = row.task.dependsOn.map(stateOf)
      const missing = states.filter((state) => state !== "completed").length
      const broken = states.filter((state) => state !== undefined && BREAKS.has(state)).length
      return { ...row, index: size + n, missing, broken }
    })
    const draft = new Draft([...this.nodes, ...added], graph)
    for (const { index, since } of added) draft.settle(index, since)
    return new Plan(draft.nodes, graph)
  }

  /** The whole plan as plain data, oldest task first. */
  rows(): ReadonlyArray<Row> {
    return this.nodes.map(({ broken: _broken, index: _index, missing: _missing, ...row }) => row)
  }

  /**
   * Makes tasks ready whose retry delay is over. A delay that ends more than `longest` ms from now also counts as over:
   * it was set while the clock was ahead.
   */
  advance(now: number, longest = Number.POSITIVE_INFINITY): Plan {
    const isOver = ({ notBefore }: Node) => notBefore > 0 && (notBefore <= now || notBefore > now + longest)
    if (!this.nodes.some(isOver)) return this
    return new Plan(
      this.nodes.map((node) => (isOver(node) ? { ...node, notBefore: 0 } : node)),
      this.graph
    )
  }

  /** Changes one task, and updates the tasks that depend on it. */
  private to(id: string, change: (node: Node) => Partial<Row> & { readonly state: TaskState }, at: number): Plan {
    const node = this.find(id)
    if (node === undefined) throw new Error(`the plan has no task ${id}`)
    const draft = new Draft([...this.nodes], this.graph)
    draft.put({ ...node, ...change(node), since: at })
    return new Plan(draft.nodes, this.graph)
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
    const { agent, base, eventId: given = 0, messageId } = by
    return this.to(
      id,
      (node) => ({
        state: "assigned",
        agent,
        messageId,
        base,
        began: node.agent === agent ? (node.began ?? base) : base,
        given,
        attempts: node.attempts + 1,
        notBefore: 0
      }),
      at
    )
  }

  start(id: string, base: string | null, at: number): Plan {
    return this.to(id, (node) => ({ state: "running", base: node.base ?? base, began: node.began ?? base }), at)
  }

  complete(id: string, result: Result, at: number): Plan {
    return this.to(id, () => ({ state: "completed", result, error: null }), at)
  }

  /** Marks a task as failed. Only the user can have it retried. */
  fail(id: string, error: string, at: number): Plan {
    return this.to(id, ({ errors }) => ({ state: "failed", error, errors: errors + 1 }), at)
  }

  /** Ends an attempt and makes the task pending again. */
  release(
    id: string,
    why: { readonly error: string; readonly counts: boolean; readonly until: number },
    at: number
  ): Plan {
    const { counts, error, until } = why
    return this.to(
      id,
      ({ errors }) => ({ state: "pending", error, errors: errors + (counts ? 1 : 0), notBefore: until }),
      at
    )
  }

  cancel(id: string, at: number): Plan {
    const node = this.find(id)
    return node === undefined || isTerminal(node) ? this : this.to(id, () => ({ state: "cancelled" }), at)
  }

  /** Makes a failed task pending again, and resets its error count. */
  reopen(id: string, at: number): Plan {
    const isFailed = this.find(id)?.state === "failed"
    return isFailed ? this.to(id, () => ({ state: "pending", errors: 0, notBefore: 0 }), at) : this
  }
}

/** The tasks of the next plan while they are being changed. */
class Draft {
  readonly nodes: Array<Node>
  private readonly graph: Graph

  constructor(nodes: Array<Node>, graph: Graph) {
    this.nodes = nodes
    this.graph = graph
  }

  /** Replaces a task, and updates all tasks that depend on it. */
  put(node: Node): void {
    const open: Array<number> = []
    this.set(node, open)
    this.settleAll(open, node.since)
  }

  /** Sets a task to pending or blocked, depending on its dependencies, and updates the tasks that depend on it. */
  settle(index: number, at: number): void {
    this.settleAll([index], at)
  }

  private settleAll(open: Array<number>, at: number): void {
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      const node = this.nodes[index]!
      if (node.state !== "pending" && node.state !== "blocked") continue
      const state = node.broken > 0 ? "blocked" : "pending"
      if (state !== node.state) this.set({ ...node, state, since: at }, open)
    }
  }

  /** If dependents now wait for fewer or more dependencies, updates their counts and adds them to `open`. */
  private set(node: Node, open: Array<number>): void {
    const before = this.nodes[node.index]!.state
    this.nodes[node.index] = node
    const missing = Number(before === "completed") - Number(node.state === "completed")
    const broken = Number(BREAKS.has(node.state)) - Number(BREAKS.has(before))
    if (missing === 0 && broken === 0) return
    for (const index of this.graph.dependents(node.task.id)) {
      const other = this.nodes[index]!
      this.nodes[index] = { ...other, missing: other.missing + missing, broken: other.broken + broken }
      open.push(index)
    }
  }
}
