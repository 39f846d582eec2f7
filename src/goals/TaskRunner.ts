/**
 * TaskRunner: assigns tasks to agents, watches them, and records their results, until every task has ended or none can
 * continue.
 *
 * Guarantees: a task is sent in a message whose id is derived from goal, task and attempt, after the rune of the
 * assignment. After a crash between the two it is sent again under the same id, which has no effect if it was
 * delivered. The status of a message is queried each time, so that a missed report does no harm.
 */
import { Effect, Option, Result, Stream } from "effect"
import * as AgentRepository from "../runs/git/AgentRepository.ts"
import * as GitStore from "../runs/git/GitStore.ts"
import type { Address, Fate, Member } from "../domain/AgentPort.ts"
import { type Evidence, lacksCommit } from "../domain/GoalMessages.ts"
import type { Report } from "../domain/Messages.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { readCall, readWork } from "../domain/WorkKinds.ts"
import * as Backoff from "../core/supervision/Backoff.ts"
import { sendable } from "./AnswerJson.ts"
import { type GoalActor, RESTS, takeBack } from "./GoalActor.ts"
import { cut, tail } from "./Ellipsis.ts"
import * as GitMerge from "./GitMerge.ts"
import * as Kept from "./Kept.ts"
import type { Node } from "./Plan.ts"
import { decide, type Decision } from "./Scheduler.ts"
import * as TaskPrompt from "./TaskPrompt.ts"

/** How long a plan waits for offline agents before it is blocked, ms. */
const PATIENCE = 60_000
/** How long a task waits for its offline agent, which may be restarting, ms. */
const GRACE = 1_000
const MAX_COMMITS = 100
/** Maximum length of an answer, in characters; the end is kept. */
const MAX_OUTPUT = 2_000
const MAX_SUMMARY = 500
const MAX_ERROR = 2_000
/** Maximum number of pieces of evidence per task, and length of each in characters. */
const MAX_PIECES = 32
const MAX_PIECE = 2_000

const NO_AGENT = "is not an agent of this project"
/** Messages about completed work that cannot be read yet: the reason, and what to do. */
const unseen = {
  folder: (agent: string) => `its folder does not exist yet: agentd start ${agent}`,
  agent: `${NO_AGENT}: put it back into the project's file, or cancel the goal`
}
/** Maximum number of runes that are searched for the turn that processed a task's message. */
const MAX_RUNES = 1_000

const quietly = <A, E, R>(effect: Effect.Effect<A, E, R>, otherwise: A): Effect.Effect<A, never, R> =>
  Effect.orElseSucceed(effect, () => otherwise)

/** Id of the message that assigns a task's n-th attempt. */
const tryOf = (goalId: string, taskId: string, n: number): string => `plan/${goalId}/${taskId}/${n}`

interface Unread {
  readonly message: string
}

interface Waited {
  /** True if every open call is waiting for the user now. */
  readonly asks: boolean
  /** The total time in which all open calls waited for the user at the same time, ms. */
  readonly time: number
}

/** Computes, from the runes of an agent's calls, how long all its open calls waited for the user at the same time. */
export const waitedIn = (runes: Iterable<Pick<Rune, "actor" | "at" | "kind">>, now: number): Waited => {
  const open = new Map<string, boolean>()
  let [since, time] = [Infinity, 0]
  for (const { actor, at, kind } of runes) {
    if (kind === "tool.result") open.delete(actor)
    else open.set(actor, kind === "tool.approval_requested")
    const asks = open.size > 0 && [...open.values()].every(Boolean)
    if (asks) since = Math.min(since, at)
    else if (since < Infinity) [since, time] = [Infinity, time + Math.max(0, at - since)]
  }
  return since < Infinity ? { asks: true, time: time + Math.max(0, now - since) } : { asks: false, time }
}

export class TaskRunner {
  private readonly goal: GoalActor
  /** Ids of messages that this daemon sent, so that it received all reports on them. */
  private readonly posted = new Set<string>()
  /** Ids of messages whose attempts exceeded their timeout and were interrupted. */
  private readonly interrupted = new Set<string>()
  /** Ids of messages that a turn was processing at the last check. Only these can exceed their timeout. */
  private readonly carried = new Set<string>()
  /** When the agent of a message was first seen offline, in ms since the epoch, by message id. */
  private readonly away = new Map<string, number>()
  /** For attempts that reached their timeout: how long their calls waited for the user, by message id. */
  private readonly waited = new Map<string, Waited>()
  /** For attempts whose start is in the future: when that was first seen, in ms since the epoch, by message id. */
  private readonly seen = new Map<string, number>()
  /** Names of the agents at the last check. */
  private known: ReadonlySet<string> = new Set()
  /** Agents whose completed work cannot be read yet, each with the reason. */
  private readonly placeless = new Map<string, string>()
  /** When the plan began to wait only for offline agents, ms since the epoch; undefined if it does not. */
  private stuckSince: number | undefined = undefined

  constructor(goal: GoalActor) {
    this.goal = goal
  }

  private to(agent: string): Address {
    return { conversation: this.goal.around.conversation, agent }
  }

  /** Assigns and watches tasks until the goal leaves the executing state. */
  get run() {
    const { goal } = this
    return Effect.gen({ self: this }, function* () {
      yield* goal.around.agents.recovered
      for (;;) {
        yield* this.reclaim
        this.placeless.clear()
        for (const node of goal.state.plan.inFlight) yield* this.look(node)
        const wait = yield* this.assign
        if (wait === undefined) return
        yield* goal.news(wait)
      }
    })
  }

  /**
   * Withdraws abandoned attempts from agents that joined since the last check. If an agent was missing when its attempt
   * was abandoned, the message is still in its inbox.
   */
  private get reclaim() {
    return Effect.gen({ self: this }, function* () {
      const { goalId, members, state } = this.goal
      const present = (yield* members).map(({ agent }) => agent)
      const come = present.filter((agent) => !this.known.has(agent))
      this.known = new Set(present)
      if (come.length === 0) return
      const { inFlight, nodes } = state.plan
      const flies = new Set(inFlight.map(({ index }) => index))
      for (const { attempts, index, task } of nodes.filter((node) => node.attempts > 0)) {
        const over = flies.has(index) ? attempts - 1 : attempts
        for (let n = 1; n <= over; n++) for (const agent of come) yield* this.takeBack(agent, tryOf(goalId, task.id, n))
      }
    })
  }

  private readonly takeBack = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, agent: string, id: string) {
      const { agents } = this.goal.around
      const fate: Fate = yield* quietly(agents.fate(this.to(agent), id), { _tag: "Unknown" })
      if (fate._tag === "Waiting" || fate._tag === "Carried")
        yield* takeBack(agents, this.to(agent), id, this.goal.goalId)
    }
  )

  /**
   * The current commit of an agent's folder; null outside git. The commit is copied to the daemon's store and to the
   * user's repository, where other agents can find it. In an agent's own work tree, git must answer: otherwise work
   * would be missing from the merge.
   */
  private readonly headOf = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, member: Pick<Member, "branch" | "cwd"> | undefined, isInGit = false) {
      const { branch = null, cwd = null } = member ?? {}
      if (cwd === null) return null
      const taken = Effect.gen({ self: this }, function* () {
        const { project, stores } = this.goal.around
        const store = yield* GitStore.open(stores, (yield* project)?.root ?? cwd)
        return store === undefined ? undefined : yield* AgentRepository.handOver(store, stores, cwd)
      })
      return (yield* branch === null && !isInGit ? quietly(taken, undefined) : taken) ?? null
    }
  )

  /** Checks the status of the message that assigned a task, and updates the task. */
  private readonly look = Effect.fnUntraced({ self: this }, function* (this: TaskRunner, node: Node) {
    const { agents } = this.goal.around
    const agent = node.agent!
    const messageId = node.messageId!
    const away = this.away.get(messageId)
    this.away.delete(messageId)
    this.carried.delete(messageId)
    const fate: Fate | undefined = yield* Effect.orElseSucceed(agents.fate(this.to(agent), messageId), () => undefined)
    // read after the message's status: when an agent's turn has begun, its folder exists
    const member = (yield* this.goal.members).find((one) => one.agent === agent)
    if (fate === undefined) {
      // when the agent returns, it reports its result; another agent would repeat the work
      if (yield* this.isFinished(node)) return void this.placeless.set(agent, unseen.agent)
      return yield* this.again(node, `${agent} ${NO_AGENT} any more`, false)
    }
    switch (fate._tag) {
      case "Unknown":
        return yield* this.post(node)
      case "Waiting":
        return yield* this.recall(node, member, away)
      case "Carried":
        this.carried.add(messageId)
        if (node.state === "assigned") {
          const base = node.base ?? (yield* this.headOf(member))
          yield* this.goal.moveIfStill({ _tag: "task_started", taskId: node.task.id, base })
        }
        return yield* this.limit(node)
      case "Dropped":
        return yield* this.failed(node, "it was discarded by a person")
      case "Ended":
        return yield* this.ended(node, fate, member)
    }
  })

  /** Whether the log has a completed turn that processed the task's message. */
  private readonly isFinished = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, { agent, given, messageId }: Node) {
      const { conversation, log } = this.goal.around
      const kinds = ["turn.started", "turn.completed"]
      const runes = yield* log.tail({ stream: conversation, actor: `turn/${agent}`, kinds, after: given }, MAX_RUNES)
      let turnId: string | undefined = undefined
      for (const any of runes) {
        const rune = readWork(any)
        if (rune?.kind === "turn.started" && rune.payload.event.messageIds.includes(messageId!))
          turnId = rune.payload.turn_id
        if (rune?.kind === "turn.completed" && rune.payload.turn_id === turnId) return true
      }
      return false
    }
  )

  /** Withdraws a task from an offline agent, so that another can do it. */
  private readonly recall = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, node: Node, member: Member | undefined, away: number | undefined) {
      if (member?.online === true || !this.goal.around.takesWork()) return
      const messageId = node.messageId!
      const now = yield* this.goal.now
      const since = Math.min(away ?? now, now)
      if (now - since < GRACE) return void this.away.set(messageId, since)
      const gone = yield* quietly(this.goal.around.agents.withdraw(this.to(node.agent!), [messageId]), false)
      const when = node.state === "running" ? "while it worked on it" : "before it began"
      if (gone) yield* this.again(node, `${node.agent} went offline ${when}`, false)
    }
  )

  /** Interrupts an attempt that exceeds its timeout. The next check handles the end of its turn. */
  private readonly limit = Effect.fnUntraced({ self: this }, function* (this: TaskRunner, node: Node) {
    const messageId = node.messageId!
    if (node.state !== "running" || this.interrupted.has(messageId)) return
    const now = yield* this.goal.now
    if (now < this.deadline(node, now)) return
    // time in which the task could only wait for the user does not count towards the timeout
    const { conversation, log } = this.goal.around
    const actors = [`tool/${node.agent}/`]
    const waited = waitedIn(
      yield* Stream.runCollect(log.read({ stream: conversation, actors, after: node.given })),
      now
    )
    this.waited.set(messageId, waited)
    if (waited.asks || now < this.deadline(node, now)) return
    this.interrupted.add(messageId)
    yield* quietly(
      this.goal.around.agents.interrupt(this.to(node.agent!), messageId, "the task took too long"),
      undefined
    )
  })

  private deadline(node: Node, now: number): number {
    const id = node.messageId!
    const time = this.waited.get(id)?.time ?? 0
    // a start in the future was recorded before the clock was set back
    if (node.since > now && !this.seen.has(id)) this.seen.set(id, now)
    return (
      Math.min(node.since, this.seen.get(id) ?? Infinity) + (node.task.timeout ?? this.goal.options.taskTimeout) + time
    )
  }

  private readonly ended = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, node: Node, fate: Fate & { readonly _tag: "Ended" }, member: Member | undefined) {
      const { outcome, output, turnId } = fate
      const said = yield* this.reportsOf(node, turnId)
      const bad = said.findLast(({ status }) => status !== "done")
      const tookTooLong = this.interrupted.delete(node.messageId!)
      if (outcome !== "completed") {
        const why = tookTooLong ? "it took too long" : yield* this.goal.howEnded(turnId, outcome, node.given)
        const words = output.trim() === "" ? why : `${why}; it had said: ${tail(output.trim(), MAX_SUMMARY)}`
        return yield* this.failed(node, words)
      }
      if (bad?.status === "failed") return yield* this.failed(node, bad.summary)
      if (bad?.status === "blocked") {
        // another attempt would have the same result
        const error = cut(`blocked: ${bad.summary}`, MAX_ERROR)
        return yield* this.goal.moveIfStill({ _tag: "task_failed", taskId: node.task.id, error })
      }
      const refused = yield* this.refused(node)
      if (refused > 0) {
        const calls = refused === 1 ? "its only call was" : `all ${refused} of its calls were`
        return yield* this.failed(node, `${calls} denied, or expired without an answer`)
      }
      const cwd = member?.cwd ?? null
      // the agent's next run creates its folder again; until then its work would be missing from the merge
      if (cwd === null && node.base !== null) return void this.placeless.set(node.agent!, unseen.folder(node.agent!))
      // even if the branch cannot be read, an earlier commit shows that the folder is in git
      const isInGit = member?.branch != null || (node.began ?? node.base) !== null
      const read = yield* Effect.result(this.headOf(member, isInGit))
      const head = Result.isSuccess(read) ? read.success : null
      if (head === null && isInGit) {
        const { error, isLong } = yield* this.unread(node.agent!, cwd, read)
        if (!isLong) return void this.placeless.set(node.agent!, error)
        return yield* this.goal.moveIfStill({ _tag: "task_failed", taskId: node.task.id, error: cut(error, MAX_ERROR) })
      }
      this.goal.unreadSince.delete(node.agent!)
      // if the folder was made after the assignment, its start commit is unknown: commits that are also in the project
      // are not the task's work
      const since = head === null ? null : (node.began ?? node.base ?? (yield* this.tip))
      const commits =
        head === null || since === null || head === since ? [] : yield* quietly(this.commits(since, head), undefined)
      const evidence: Evidence = {
        cwd,
        branch: member?.branch ?? null,
        // null if git does not answer: the commits are unknown
        base: commits === undefined ? null : since,
        head,
        commits: commits ?? [],
        reported: said
          .flatMap((report) => report.evidence)
          .slice(-MAX_PIECES)
          .map((one) => cut(one, MAX_PIECE)),
        output: tail(output.trim(), MAX_OUTPUT)
      }
      if (node.task.commit === true && (head === null || lacksCommit(evidence)))
        return yield* this.failed(node, "it ended without a commit")
      const result = cut(said.at(-1)?.summary ?? tail(output.trim(), MAX_SUMMARY), MAX_SUMMARY)
      yield* this.goal.moveIfStill({ _tag: "task_completed", taskId: node.task.id, result, evidence })
    }
  )

  /** `isLong`: the error has lasted for `PATIENCE`. Before that, git may recover. */
  private readonly unread = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, agent: string, cwd: string | null, read: Result.Result<unknown, Unread>) {
      const now = yield* this.goal.now
      const since = Math.min(this.goal.unreadSince.get(agent) ?? now, now)
      const isLong = now - since >= PATIENCE
      this.goal.unreadSince.set(agent, since)
      const why = Result.isFailure(read) ? read.failure.message : "it has no commit any more"
      return { error: `its repository in ${cwd} cannot be read: ${why}`, isLong }
    }
  )

  /** The current commit of the project's own checkout; null if unknown. */
  private get tip() {
    const { project, stores } = this.goal.around
    const asked = Effect.gen(function* () {
      const root = (yield* project)?.root
      return root === undefined ? undefined : yield* GitStore.commitOf(yield* GitMerge.storeOf(stores, root), "HEAD")
    })
    return Effect.map(quietly(asked, undefined), (commit) => commit ?? null)
  }

  /** Number of calls in the turns of an attempt, if each was denied or expired; 0 if any call got a result. */
  private readonly refused = Effect.fnUntraced({ self: this }, function* (this: TaskRunner, node: Node) {
    const { agent, given, messageId } = node
    const { conversation, log } = this.goal.around
    const turns = new Set<string>()
    const calls = new Set<string>()
    const actors = [`turn/${agent}`, `tool/${agent}/`]
    const kinds = ["turn.started", "tool.call", "tool.result"]
    const came = (any: Rune): boolean => {
      const turn = readWork(any)
      if (turn?.kind === "turn.started" && turn.payload.event.messageIds.includes(messageId!))
        turns.add(turn.payload.turn_id)
      const call = readCall(any)
      if (call?.kind === "tool.call" && turns.has(call.payload.event.turnId)) calls.add(any.actor)
      if (call?.kind !== "tool.result" || !calls.has(any.actor)) return false
      return call.payload.status !== "denied" && call.payload.event._tag !== "approval_timeout"
    }
    const ran = yield* Stream.runHead(
      Stream.filter(log.read({ stream: conversation, actors, kinds, after: given }), came)
    )
    return Option.isSome(ran) ? 0 : calls.size
  })

  private commits(base: string, head: string) {
    return Effect.gen({ self: this }, function* () {
      const { project, stores } = this.goal.around
      const root = (yield* project)?.root
      if (root === undefined) return []
      return yield* GitMerge.commitsBetween(yield* GitMerge.storeOf(stores, root), base, head, MAX_COMMITS)
    })
  }

  /** The agent's reports on the turn: those received, or else those in the log. */
  private readonly reportsOf = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, { agent, given, messageId }: Node, turnId: string) {
      const told = this.goal.said(agent!, turnId)
      if (told.length > 0 || this.posted.delete(messageId!)) return told
      const { conversation, log } = this.goal.around
      const runes = yield* log.tail({ stream: conversation, kinds: ["agent.reported"], after: given }, 256)
      return runes.flatMap((any): ReadonlyArray<Report> => {
        const rune = readWork(any)
        return rune?.kind === "agent.reported" && rune.payload.turn_id === turnId ? [rune.payload] : []
      })
    }
  )

  /** Counts an error. Another attempt follows after a delay, unless the limits are reached. */
  private readonly failed = Effect.fnUntraced({ self: this }, function* (this: TaskRunner, node: Node, error: string) {
    const { backoff, maxErrors, maxTaskErrors } = this.goal.options
    const wait = Backoff.delay(
      { ...backoff, factor: 2 },
      { maxConsecutiveErrors: maxTaskErrors, maxTotalErrors: maxErrors },
      { consecutiveErrors: node.errors + 1, totalErrors: this.goal.state.plan.errors + 1 },
      `${this.goal.goalId}/${node.task.id}`
    )
    const words = cut(error, MAX_ERROR)
    yield* wait === undefined
      ? this.goal.moveIfStill({ _tag: "task_failed", taskId: node.task.id, error: words })
      : this.again(node, words, true, wait)
  })

  private readonly again = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, node: Node, error: string, counts: boolean, wait = 0) {
      const until = wait === 0 ? 0 : (yield* this.goal.now) + wait
      yield* this.goal.moveIfStill({ _tag: "task_retried", taskId: node.task.id, error, counts, until })
    }
  )

  private readonly post = Effect.fnUntraced({ self: this }, function* (this: TaskRunner, node: Node) {
    const { goalId, state } = this.goal
    this.posted.add(node.messageId!)
    const message = {
      messageId: node.messageId!,
      from: `plan:${goalId}`,
      text: sendable(TaskPrompt.text(state, node)),
      alone: true
    }
    yield* this.goal.around.agents.post(this.to(node.agent!), message).pipe(
      Effect.asVoid,
      Effect.catch((refused) => this.failed(node, `${node.agent} does not accept it: ${refused.message}`))
    )
  })

  /**
   * The scheduler's next decision. `broken` maps agents whose repositories git cannot read to the error: they get no
   * task.
   */
  private readonly next = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, broken: ReadonlyMap<string, string>) {
      const { goal } = this
      const now = yield* goal.now
      const members = yield* goal.members
      const workers = goal.workersOf(members).map((one) => (broken.has(one.name) ? { ...one, busy: true } : one))
      return { decision: decide(goal.state.plan.advance(now, goal.options.backoff.cap), workers), members, now }
    }
  )

  /** Returns how long to wait until the next check, ms; undefined if the goal leaves the executing state. */
  private get assign() {
    return Effect.gen({ self: this }, function* () {
      const broken = new Map<string, string>()
      for (;;) {
        const { decision, members, now } = yield* this.next(broken)
        if (decision._tag !== "Assign") {
          const [first] = broken
          const isIts = decision._tag === "Wait" && first !== undefined && this.goal.state.plan.inFlight.length === 0
          const stands = isIts ? { ...decision, reason: `${first[0]} gets no task: ${first[1]}` } : decision
          return yield* this.settle(stands, members, now)
        }
        const { agent } = decision
        yield* this.goal.around.giving(agent).withPermit(this.give(agent, broken))
      }
    })
  }

  /**
   * Assigns the next task to an agent, if that is still the scheduler's decision. If git cannot read the agent's
   * repository, adds the agent to `broken`.
   */
  private readonly give = Effect.fnUntraced(
    { self: this },
    function* (this: TaskRunner, agent: string, broken: Map<string, string>) {
      const { goal } = this
      // another goal may have assigned a task to this agent in the meantime
      const { decision, members } = yield* this.next(broken)
      if (decision._tag !== "Assign" || decision.agent !== agent) return
      const { task: node } = decision
      const member = members.find((one) => one.agent === agent)
      const messageId = tryOf(goal.goalId, node.task.id, node.attempts + 1)
      if (member !== undefined) yield* Kept.takeBack(goal.around, member, new Map([[goal.goalId, goal.state]]))
      const read = yield* Effect.result(this.headOf(member))
      if (Result.isFailure(read)) {
        broken.set(agent, (yield* this.unread(agent, member?.cwd ?? null, read)).error)
        return
      }
      goal.unreadSince.delete(agent)
      yield* goal.move({ _tag: "task_assigned", taskId: node.task.id, agentId: agent, messageId, base: read.success })
      yield* this.post(goal.state.plan.find(node.task.id)!)
    }
  )

  private readonly settle = Effect.fnUntraced(
    { self: this },
    function* (
      this: TaskRunner,
      decision: Exclude<Decision, { readonly _tag: "Assign" }>,
      members: ReadonlyArray<Member>,
      now: number
    ) {
      const { goal } = this
      if (decision._tag !== "Blocked") this.stuckSince = undefined
      goal.isStuck = [...goal.unreadSince.values()].some((since) => now - since >= PATIENCE)
      switch (decision._tag) {
        case "Done":
          yield* goal.moveIfStill({ _tag: "all_tasks_terminal" })
          return undefined
        case "Exhausted":
          yield* goal.moveIfStill({ _tag: "budget_exhausted", reason: decision.reason })
          return undefined
        case "Wait": {
          const [found] = this.placeless
          const reason = found === undefined ? decision.reason : `${found[0]} has finished its task, and ${found[1]}`
          goal.detail = goal.around.takesWork() ? reason : RESTS
          const deadlines = goal.state.plan.inFlight
            .filter(({ messageId, state }) => state === "running" && this.carried.has(messageId!))
            .filter(({ messageId }) => !this.interrupted.has(messageId!) && this.waited.get(messageId!)?.asks !== true)
            .map((node) => this.deadline(node, now))
          const returns = [...this.away.values()].map((since) => since + GRACE)
          if (goal.unreadSince.size > 0) returns.push(now + GRACE)
          return Math.min(...deadlines, ...returns, decision.until ?? Number.POSITIVE_INFINITY) - now
        }
        case "Blocked": {
          if (!members.some(({ online }) => online) && !goal.around.takesWork()) {
            goal.detail = RESTS
            return Number.POSITIVE_INFINITY
          }
          this.stuckSince = Math.min(this.stuckSince ?? now, now)
          if (decision.passing && now - this.stuckSince < PATIENCE) {
            goal.detail = decision.reason
            return this.stuckSince + PATIENCE - now
          }
          yield* goal.moveIfStill({ _tag: "all_runnable_blocked", reason: decision.reason })
          return undefined
        }
      }
    }
  )
}
