/**
 * Goals: each acknowledged goal comes to an end; its tasks are given out in the order of
 * their dependencies, one to an agent, and none again that was done; what is merged is in
 * the branch, once; nothing of anybody's is lost from the repository; what is said of a goal
 * is what the log and the repository say.
 */
import type { GoalInfo, GoalPage, MergeReply, TaskState } from "../../../src/domain/GoalMessages.ts"
import type { Tagged } from "../../../src/core/event-actor/StateMachine.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { Autonomy } from "../../../src/goals/GoalMachine.ts"
import { type Stand, table } from "../../../src/goals/GoalState.ts"
import { taken } from "../../support/Cells.ts"
import type { Git, GitWitness } from "../world/Git.ts"
import type { Seen } from "../world/Processes.ts"
import type { Beginning, WorkWitness } from "../world/Work.ts"
import { ROOT, type Workshop } from "../world/Workshop.ts"
import type { Check, Verdicts } from "./Check.ts"

type Json = { readonly [field: string]: any }

interface Task {
  readonly id: string
  readonly dependsOn: ReadonlyArray<string>
  state: TaskState
  agent: string | null
}

interface Goal {
  readonly stream: string
  readonly goalId: string
  readonly word: string
  readonly tasks: Map<string, Task>
  state: string
  /** After each of its runes, by their ids. */
  readonly at: Map<number, string>
  /** By its table. */
  stand: Stand
  /** The daemon's last words about the goal. */
  detail: string
}

const TASK_EVENTS: { readonly [tag: string]: { readonly from: ReadonlyArray<TaskState>; readonly to: TaskState } } = {
  task_assigned: { from: ["pending"], to: "assigned" },
  task_started: { from: ["assigned"], to: "running" },
  task_completed: { from: ["assigned", "running"], to: "completed" },
  task_failed: { from: ["assigned", "running"], to: "failed" },
  task_retried: { from: ["assigned", "running"], to: "pending" }
}
const TERMINAL: ReadonlyArray<string> = ["completed", "failed", "cancelled"]
const FINAL: ReadonlyArray<string> = ["goal_met", "stopped"]

export class Goals implements Check, GitWitness, WorkWitness {
  /** Set where there is one. */
  workshop: Workshop | undefined = undefined
  private readonly verdicts: Verdicts
  private readonly head: () => number
  /** Reached cells of the goal's table. */
  private readonly cells: Set<string>
  private readonly goals = new Map<string, Goal>()
  private readonly sealed = new Set<string>()
  /** Goals that were merged, by name. */
  private readonly taken = new Set<string>()
  private readonly words = new Set<string>()
  /** Agents that were asked something of a goal: a goal that ends, or has waited too long, interrupts them. */
  readonly asked = new Set<string>()
  /** The task of a turn; what was reported of the turn. */
  private readonly taskOf = new Map<string, string>()
  private readonly bad = new Set<string>()
  /** Tasks whose agents have said that they are done, by the rune that says so. */
  private readonly done = new Map<string, number>()
  /** By goal, task and agent. */
  private readonly commits = new Map<string, Array<string>>()
  private readonly folders = new Map<string, Set<Seen>>()

  constructor(verdicts: Verdicts, head: () => number, cells: Set<string>) {
    this.verdicts = verdicts
    this.cells = cells
    this.head = head
  }

  private get git(): Git | undefined {
    return this.workshop?.git
  }

  /** The highest number of a goal. */
  get newest(): number {
    return Math.max(0, ...[...this.goals.values()].map(({ goalId }) => Number(goalId.slice(1))))
  }

  // People.

  /** Goals that stand there, of conversations that are open. */
  standing(...states: ReadonlyArray<string>): ReadonlyArray<string> {
    const all = [...this.goals.values()].filter(
      ({ state, stream }) => states.includes(state) && !this.sealed.has(stream)
    )
    return all.map(({ goalId }) => goalId)
  }

  durable(what: string, eventId: number): void {
    if (eventId > this.head())
      this.verdicts.broken("what is acknowledged is durable", `goal ${what}: rune ${eventId} of ${this.head()}`)
  }

  acked(word: string, eventId: number): void {
    this.durable("new", eventId)
    if (!this.words.has(word)) this.verdicts.broken("what is acknowledged is durable", `${word} is in no durable rune`)
  }

  /** Checks the shown work of a done task against the repository. */
  shown({ goal, tasks }: GoalPage, isQuiet: boolean): void {
    this.listed(goal)
    const known = this.goals.get(`${goal.conversation}/${goal.goalId}`)
    if (isQuiet && known?.state !== goal.state)
      this.verdicts.broken("what is said of a goal is so", `${goal.goalId}: said ${goal.state}, logged ${known?.state}`)
    for (const { head, id, state } of tasks) {
      if (head !== null && this.git?.commits.has(head) === false)
        this.verdicts.broken("what is said of a goal is so", `${goal.goalId}/${id}: there is no commit ${head}`)
      const logged = known?.tasks.get(id)?.state
      const said = state === "blocked" ? "pending" : state
      if (isQuiet && logged !== said)
        this.verdicts.broken("what is said of a goal is so", `${goal.goalId}/${id}: said ${state}, logged ${logged}`)
    }
  }

  listed({ conversation, detail, goalId, restsOn, state }: GoalInfo): void {
    const known = this.goals.get(`${conversation}/${goalId}`)
    if (known !== undefined) known.detail = detail
    if (restsOn > 0 && known?.at.get(restsOn) !== state)
      this.verdicts.broken(
        "what is said of a goal is so",
        `${goalId}: said ${state} by rune ${restsOn}, logged ${known?.at.get(restsOn)}`
      )
  }

  isMerged(name: string): boolean {
    return this.taken.has(name)
  }

  merged(name: string, { eventId, results, target }: MergeReply): void {
    const { git } = this
    this.taken.add(name)
    this.durable("merge", eventId)
    const tip = git?.branches.get(target)
    if (git === undefined || tip === undefined) return
    for (const { branch, head, outcome } of results) {
      this.verdicts.sometimes(`goal merge: ${outcome}`)
      const isIn = git.isAncestor(head, tip) || this.isPicked(branch, tip)
      if (outcome !== "conflict" && !isIn)
        this.verdicts.broken("what is merged is in the branch", `${name}: ${branch} ${outcome}, rune ${eventId}`)
    }
    const merges = [...git.history(tip)].map((id) => git.commits.get(id)!).filter(({ parents }) => parents.length > 1)
    const heads = merges.filter(({ subject }) => subject.startsWith("Merge agentd/")).map(({ parents }) => parents[1]!)
    if (new Set(heads).size < heads.length)
      this.verdicts.broken("what is merged is merged once", `${name} into ${target}`)
    this.complete(name, results, tip)
  }

  /** Whether something was picked of a branch that other goals' commits are on, too: commits of one parent. */
  private isPicked(branch: string, tip: string): boolean {
    const { git } = this
    return [...(git?.history(tip) ?? [])].some((id) => {
      const { parents, subject } = git!.commits.get(id)!
      return parents.length === 1 && subject.startsWith(`Merge ${branch}:`)
    })
  }

  /** A met goal that merged without a conflict is in the branch with all that its done tasks have committed. */
  private complete(name: string, results: MergeReply["results"], tip: string): void {
    const met = [...this.goals.values()].filter(
      ({ goalId, state, stream }) => goalId === name && state === "goal_met" && !this.sealed.has(stream)
    )
    const [goal] = met
    if (goal === undefined || met.length > 1 || results.some(({ outcome }) => outcome === "conflict")) return
    if (results.some(({ branch, head }) => this.git?.isAncestor(head, tip) === false && this.isPicked(branch, tip)))
      return
    for (const { agent, id, state } of goal.tasks.values()) {
      if (state !== "completed") continue
      for (const commit of this.commits.get(`${goal.word} ${id} ${agent}`) ?? [])
        if (this.git?.isAncestor(commit, tip) === false)
          this.verdicts.broken("a merged goal is merged as a whole", `${goal.word} ${id}: ${commit.slice(0, 12)}`)
    }
  }

  // The log.

  rune(rune: Rune): void {
    const { actor, eventId, kind, payload, stream } = rune
    const event = (payload["event"] ?? {}) as Json
    if (kind === "session.closed") this.sealed.add(stream)
    if (kind === "agent.reported" && payload["status"] !== "done") this.bad.add(String(payload["turn_id"]))
    if (kind === "turn.completed") {
      const task = this.taskOf.get(event["turnId"])
      if (task !== undefined && !this.bad.has(event["turnId"])) this.done.set(task, eventId)
    }
    if (!actor.startsWith("plan/")) return
    const key = `${stream}/${actor.slice("plan/".length)}`
    if (event["_tag"] === "goal_submitted") this.submitted(key, rune, event)
    const goal = this.goals.get(key)
    if (goal === undefined) return this.verdicts.broken("a goal's runes begin with it", `${key} ${kind} ${eventId}`)
    if (FINAL.includes(goal.state)) this.verdicts.broken("what has ended does not go on", `${key} ${kind} ${eventId}`)
    if (this.sealed.has(stream)) this.verdicts.broken("what has ended does not go on", `${key} ${kind} ${eventId}`)
    this.legal(goal, rune, event)
    this.moved(goal, event, eventId)
    goal.state = rune.to ?? goal.state
    goal.at.set(eventId, goal.state)
    if (!FINAL.includes(goal.state)) return
    this.verdicts.sometimes(`goal ended: ${event["_tag"]}`)
    // what is in flight ends with the goal
    for (const task of goal.tasks.values())
      if (task.state === "assigned" || task.state === "running") task.state = "cancelled"
  }

  private submitted(key: string, { stream }: Rune, event: Json): void {
    const word = /\[(goal-\d+)\]/.exec(event["goal"])?.[1] ?? ""
    const goalId = key.slice(stream.length + 1)
    if (this.goals.has(key)) this.verdicts.broken("a goal's name is its own", key)
    this.words.add(word)
    this.goals.set(key, {
      stream,
      goalId,
      word,
      tasks: new Map(),
      state: "[*]",
      at: new Map(),
      stand: table.initial,
      detail: ""
    })
  }

  /** The rune is a move of the goal's table, and says what the table says. */
  private legal(goal: Goal, rune: Rune, event: Json): void {
    const { data, state } = goal.stand
    const [cell] = taken(Autonomy, state, data, event as Tagged)
    if (cell === undefined || rune.from !== state || rune.to !== cell.to || rune.kind !== cell.kind)
      return this.verdicts.broken(
        "a rune is a legal move",
        `${goal.goalId}: ${rune.eventId} ${rune.kind} from ${state}`
      )
    this.cells.add(cell.cell)
    goal.stand = table.apply(goal.stand, rune, false)
  }

  private moved(goal: Goal, event: Json, eventId: number): void {
    const { tasks } = goal
    const tag = event["_tag"] as string
    this.verdicts.sometimes(`goal ${tag}`)
    const add = (added: ReadonlyArray<Json>) => {
      for (const { dependsOn, id } of added) {
        if (tasks.has(id)) this.verdicts.broken("a task's name is its own", `${goal.word} ${id}, rune ${eventId}`)
        tasks.set(id, { id, dependsOn, state: "pending", agent: null })
      }
    }
    if (tag === "decompose_goal") tasks.clear()
    if (tag === "decompose_goal" || tag === "critique_found_issues") add(event["tasks"])
    if (tag === "plan_updated") add(event["added"])
    if (tag === "dependency_resolved")
      for (const id of event["tasks"] ?? []) {
        if (tasks.get(id)?.state === "failed") tasks.get(id)!.state = "pending"
      }
    const open = [...tasks.values()].filter(({ state }) => !TERMINAL.includes(state))
    if (tag === "all_tasks_terminal" || tag === "critique_passed")
      if (open.length > 0)
        this.verdicts.broken("a review begins when every task is terminal", `${goal.word}: ${open[0]!.id}`)
    const move = TASK_EVENTS[tag]
    if (move !== undefined) this.task(goal, tag, move, event, eventId)
  }

  private task(goal: Goal, tag: string, move: (typeof TASK_EVENTS)[string], event: Json, eventId: number): void {
    const task = goal.tasks.get(event["taskId"])
    const said = `${goal.word} ${event["taskId"]} ${tag}, rune ${eventId}`
    if (task === undefined || !move.from.includes(task.state))
      return this.verdicts.broken("a task goes its way", `${said}: ${task?.state ?? "no such task"}`)
    if (tag === "task_assigned") this.assigned(goal, task, event["agentId"], said)
    if (tag === "task_completed") this.completed(goal, task, event["evidence"], said)
    task.state = move.to
  }

  private assigned(goal: Goal, task: Task, agent: string, said: string): void {
    const early = task.dependsOn.filter((id) => goal.tasks.get(id)?.state !== "completed")
    if (early.length > 0) this.verdicts.broken("a task begins after what it depends on", `${said}: ${early.join()}`)
    const others = [...goal.tasks.values()].filter(
      (other) => other.agent === agent && (other.state === "assigned" || other.state === "running")
    )
    if (others.length > 0) this.verdicts.broken("an agent has one task", `${said}: ${agent} has ${others[0]!.id}`)
    task.agent = agent
  }

  /** Checks a task that the log calls done: each commit that was made for the task is in its evidence. */
  private completed(goal: Goal, task: Task, evidence: Json | null, said: string): void {
    const { git } = this
    if (git === undefined) return
    const head = (evidence?.["head"] ?? null) as string | null
    if (head !== null && !git.commits.has(head))
      this.verdicts.broken("what is shown of a task is so", `${said}: ${head}`)
    for (const commit of this.commits.get(`${goal.word} ${task.id} ${task.agent}`) ?? [])
      if (head === null || !git.isAncestor(commit, head))
        this.verdicts.broken(
          "what is shown of a task is so",
          `${said}: ${commit.slice(0, 12)} is not in ${JSON.stringify(evidence)}`
        )
  }

  // The agents.

  spawned(process: Seen): void {
    const { cwd } = process
    if (this.git === undefined || cwd === ROOT) return
    const here = this.folders.get(cwd) ?? new Set()
    this.folders.set(cwd, here.add(process))
    const other = [...here].find(({ agent }) => agent !== process.agent)
    if (other !== undefined)
      this.verdicts.broken("a worktree belongs to one agent", `${cwd}: ${other.agent}, ${process.agent}`)
    this.verdicts.sometimes("an agent works in a worktree")
  }

  gone(process: Seen): void {
    this.folders.get(process.cwd)?.delete(process)
  }

  given({ agent }: Seen, turnId: string, text: string): void {
    const word = /\[(goal-\d+)\]/.exec(text)?.[1]
    if (word !== undefined) this.asked.add(agent)
    const task = /^Task ([^:\n]+): /m.exec(text)?.[1]
    if (word === undefined || task === undefined) return
    const name = `${word} ${task}`
    const eventId = this.done.get(name)
    if (eventId !== undefined)
      this.verdicts.broken("a task that is done is not worked on again", `${name}, done by rune ${eventId}`)
    this.taskOf.set(turnId, name)
  }

  readonly taskGiven = (goal: string, task: string, { agent }: Beginning): void => {
    this.verdicts.sometimes("an agent is given a task")
    const of = [...this.goals.values()].find(({ word }) => word === goal)?.tasks.get(task)
    if (of === undefined) this.verdicts.broken("a task that is worked on is in the log", `${goal} ${task} by ${agent}`)
  }

  readonly committed = (goal: string, task: string, { agent }: Beginning, commit: string): void => {
    const name = `${goal} ${task} ${agent}`
    this.commits.set(name, [...(this.commits.get(name) ?? []), commit])
  }

  // The repository.

  readonly changed = (what: string, before: ReadonlySet<string>): void => {
    const { git, workshop } = this
    if (git === undefined || workshop === undefined) return
    const after = git.reachable
    const lost = [...before].filter((id) => !after.has(id) && !git.commits.get(id)!.subject.startsWith("Merge agentd/"))
    if (lost.length > 0) this.verdicts.broken("no commit is lost", `git ${what}: ${lost[0]!.slice(0, 12)}`)
    for (const [path, text] of workshop.desk)
      if (workshop.files.text(`${ROOT}/${path}`) !== text)
        this.verdicts.broken("a person's uncommitted work is left alone", `git ${what}: ${path}`)
  }

  readonly removed = (folder: string, work: ReadonlyArray<string>): void => {
    if (folder.startsWith("/state/worktrees/") && work.length > 0)
      this.verdicts.broken("no uncommitted work goes with its worktree", `${folder}: ${work.join()}`)
  }

  // The end.

  private get open(): ReadonlyArray<Goal> {
    return [...this.goals.values()].filter(({ state, stream }) => !FINAL.includes(state) && !this.sealed.has(stream))
  }

  isDone(): boolean {
    return this.open.length === 0
  }

  atRest(): void {
    for (const { detail, goalId, state, tasks, word } of this.open)
      this.verdicts.broken(
        "an acknowledged goal comes to an end",
        `${goalId} ${word}: ${state} (${detail}); ${[...tasks.values()].map((task) => `${task.id} ${task.state}`).join()}`
      )
  }
}
