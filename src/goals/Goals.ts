/**
 * Goals: the commands that users give for goals, and the views that they get in reply.
 *
 *     submit ─┐               ┌ decompose, refine, review ─► AgentPort
 *     approve ┼─► GoalActor ──┤ TaskRunner ────────────────► AgentPort
 *     reports ┘               └ ReviewGate, merge ─────────► git, commands
 *
 * Guarantees: a reply is sent only when the change that it reports is durable. A request is checked before anything is
 * written, and an invalid plan is rejected. Work that has begun is completed even if the caller is interrupted. Every
 * error says what to do next. A goal is named `g3` within its project, and `project/g3` elsewhere. A merge takes only
 * reviewed work, unless the user requests more; conflicts are reported and left alone.
 */
import { Clock, Context, Deferred, Effect, Layer } from "effect"
import { services } from "../runs/CapturedServices.ts"
import { AgentPort } from "../domain/AgentPort.ts"
import { Conversations } from "../domain/Conversations.ts"
import {
  type AskedPlan,
  type Task,
  type GoalInfo,
  type GoalOptions,
  type GoalPage,
  type GoalRequest,
  type MergeReply,
  TASKS_A_PAGE,
  TASKS_NAMED
} from "../domain/GoalMessages.ts"
import * as CallHash from "../domain/CallHash.ts"
import { type Caller, CommandRefused, type Done, refuse, refusedBy, type Trouble } from "../domain/Messages.ts"
import { ActorSystem } from "../core/event-actor/ActorSystem.ts"
import { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import * as GitMerge from "./GitMerge.ts"
import * as Kept from "./Kept.ts"
import { type GoalActor, type Needs, readGoal } from "./GoalActor.ts"
import type * as GoalMachine from "./GoalMachine.ts"
import { type GoalRecord, GoalRegistry, type Options } from "./GoalRegistry.ts"
import { type GoalState, isFinal, usedBy } from "./GoalState.ts"
import { figuresOf, infoOf, taskOf } from "./GoalView.ts"
import type { Node, Plan } from "./Plan.ts"
import * as PlanFile from "./PlanFile.ts"
import * as PlanHash from "./PlanHash.ts"
import { checkAgents, DEFAULTS, optionsOf, workersOf } from "./GoalDefaults.ts"
import * as ReviewGate from "./ReviewGate.ts"
import * as GitStore from "../runs/git/GitStore.ts"

type Command<A> = Effect.Effect<A, CommandRefused | StorageError>

export interface MergeHow {
  /** Target branch; null for the goal's own target, or else the branch that is checked out. */
  readonly into: string | null
  /** Whether to merge even if the goal is not met. */
  readonly unreviewed: boolean
  /** Whether to merge also commits that belong to no task of the goal. */
  readonly all: boolean
  /** The merge that the user's own git has already done in the branch's checkout. */
  readonly done?: { readonly from: string; readonly commit: string } | undefined
}

export class Goals extends Context.Service<
  Goals,
  {
    /** Submits a goal. `key`: the schedule and due time, if a schedule submits it; stored in the goal's first rune. */
    readonly submit: (request: GoalRequest, caller: Caller, key?: string) => Command<Done & { readonly goalId: string }>
    /** Whether the goal is open: it has not ended, and its conversation is not closed. */
    readonly isOpen: (conversation: string, goalId: string) => boolean
    /** Lists the goals of the caller's project, or of all projects, newest first. */
    readonly list: (options: { readonly all: boolean }, caller: Caller) => Effect.Effect<ReadonlyArray<GoalInfo>>
    /** The goal with one page of its tasks, in the order of the plan. */
    readonly page: (name: string, from: number, caller: Caller) => Command<GoalPage>
    /** Gives a plan to a goal that waits for one. `path` is the absolute path of the plan file. */
    readonly plan: (name: string, path: string, caller: Caller) => Command<Done>
    /** The plan that waits for approval, with one page of its complete tasks. */
    readonly asked: (name: string, from: number, caller: Caller) => Command<AskedPlan>
    /** Approves a plan. `hash`: hash of the plan that the caller saw. If it differs or is missing, this is rejected. */
    readonly approve: (name: string, hash: string | undefined, caller: Caller) => Command<Done>
    /** Rejects the plan that waits for approval. `reason` tells the planner what to change. */
    readonly reject: (name: string, reason: string, caller: Caller) => Command<Done>
    readonly cancel: (name: string, reason: string, caller: Caller) => Command<Done>
    /** Resumes a blocked goal and retries one failed task, or all of them if `task` is null. */
    readonly retry: (name: string, task: string | null, caller: Caller) => Command<Done>
    readonly merge: (name: string, options: MergeHow, caller: Caller) => Command<MergeReply>
    /** Stops every goal of a conversation that is about to be closed. */
    readonly stopAll: (conversation: string, by: string, reason: string) => Effect.Effect<void>
    /** Waits until all goals are recovered from the log at startup. Fails if they cannot be recovered. */
    readonly recovered: Effect.Effect<void, StorageError>
  }
>()("agentd/goals/Goals") {}

/** Maximum number of goals of one conversation that have not ended. */
const MAX_OPEN = 20
/** Delay in ms before a stopped agent's needs are reported. By then its task is withdrawn if another can do it. */
const TAKEN_BACK = 5_000
/** Maximum number of failed tasks that one retry reopens. All their ids are in one rune. */
const MAX_RETRIED = 2_000

/** The error for a caller whose current folder is in no project. */
const nowhere = (name?: string): CommandRefused =>
  name === undefined
    ? refuse(
        "invalid",
        "There is no agentd.jsonc here, so no agent could work on the goal.",
        "Run the command again in the project's folder."
      )
    : refuse(
        "not_found",
        `The project of ${name} is not known: there is no agentd.jsonc here.`,
        "Specify the project, too: PROJECT/GOAL. See: agentd goal ls --all"
      )

/** Maximum length of all descriptions in one reply, in characters. A single task that is longer is still returned. */
const MAX_SHOWN = 500_000

/** A goal's state in the user's words. */
const inWords = (state: string): string =>
  ({
    goal_received: "waiting for a plan",
    planning: "being planned",
    executing: "being worked on",
    reviewing: "in review",
    goal_met: "met"
  })[state] ?? state

const isWhole = (goal: GoalActor): boolean => goal.isComplete && goal.state.revise === null

const nothingToApprove = (goal: GoalActor): CommandRefused =>
  goal.state.stand.state === "planning"
    ? refuse("not_now", `The plan of ${goal.goalId} is not complete yet.`, "Try again in a moment: agentd goal show")
    : refuse(
        "conflict",
        `${goal.goalId} is ${inWords(goal.state.stand.state)}: there is nothing to approve.`,
        `See where it stands: agentd goal show ${goal.goalId}`
      )

/** The oldest reason why an agent with work of this goal cannot continue without the user. Undefined if none. */
const needsOf = (goal: GoalActor, now: number) => {
  const agents = [goal.asking?.agent, ...goal.state.plan.inFlight.map(({ agent }) => agent)]
  return Effect.map(
    agents.some((agent) => agent != null) ? goal.around.agents.members(goal.around.conversation) : Effect.succeed([]),
    (members) =>
      members
        .filter(({ online, needs }) => online || now - (needs?.since ?? now) > TAKEN_BACK)
        .flatMap(({ agent, needs }) => (needs !== undefined && agents.includes(agent) ? [needs] : []))
        .toSorted((a, b) => a.since - b.since)
        .at(0)
  )
}

/** Returns the hash of the current plan. Starts again if the plan changes during the calculation. */
const hashNow = Effect.fnUntraced(function* (goal: GoalActor) {
  for (;;) {
    const { state } = goal
    const hash = yield* PlanHash.hashOf(goal.around.conversation, goal.goalId, state)
    if (goal.state === state) return hash
  }
})

const explained = (error: Trouble): CommandRefused | StorageError =>
  error instanceof StorageError || error instanceof CommandRefused
    ? error
    : refusedBy(error, "See its status: agentd goal show")

const carriedOut = <A, E extends Trouble, R>(effect: Effect.Effect<A, E, R>) => Effect.mapError(effect, explained)

/** The tasks that are listed first in a long plan: those in progress, then failed ones. */
const namedOf = ({ counts, inFlight, nodes }: Plan): ReadonlyArray<Node> => {
  const failed = counts.failed === 0 ? [] : nodes.filter(({ state }) => state === "failed")
  return [...inFlight, ...failed].slice(0, TASKS_NAMED)
}

class Commands {
  private readonly registry: GoalRegistry
  constructor(registry: GoalRegistry) {
    this.registry = registry
  }

  /** Finds `g3` from within its project, or `project/g3` or `conversation/g3` from anywhere. */
  private readonly find = Effect.fnUntraced({ self: this }, function* (this: Commands, name: string, caller: Caller) {
    yield* Deferred.await(this.registry.parts.ready)
    const slash = name.lastIndexOf("/")
    const goalId = name.slice(slash + 1)
    const conversations =
      slash === -1
        ? [yield* Effect.mapError(this.registry.parts.options.projects.ofCaller(caller), () => nowhere(name))]
        : yield* Effect.filter([...this.registry.records.keys()], (conversation) =>
            conversation === name.slice(0, slash)
              ? Effect.succeed(true)
              : Effect.map(
                  this.registry.parts.options.projects.config(conversation),
                  (found) => found?.name === name.slice(0, slash)
                )
          )
    const found = conversations.flatMap((conversation) => this.registry.records.get(conversation)?.get(goalId) ?? [])
    if (found.length === 1) return found[0]!
    return yield* refuse(
      found.length === 0 ? "not_found" : "ambiguous",
      found.length === 0 ? `There is no goal "${name}".` : `"${name}" names ${found.length} goals.`,
      found.length === 0
        ? "See which there are: agentd goal ls --all"
        : `Name one of them: ${found.map((one) => `${one.conversation}/${one.goalId}`).join(", ")}`
    )
  })

  private readonly findOpen = Effect.fnUntraced(
    { self: this },
    function* (this: Commands, name: string, caller: Caller) {
      const record = yield* this.find(name, caller)
      const goal = this.registry.find(record)
      if (goal !== undefined) return goal
      const ended = isFinal(record.stand)
      return yield* refuse(
        ended ? "conflict" : "closed",
        ended
          ? `${record.goalId} has ended: ${inWords(record.stand.state)}.`
          : `The conversation of ${record.goalId} is closed.`,
        'Submit it again: agentd goal "…"'
      )
    }
  )

  private readonly info = Effect.fnUntraced({ self: this }, function* (this: Commands, record: GoalRecord) {
    const goal = this.registry.find(record)
    const project = yield* this.registry.parts.options.projects.config(record.conversation)
    const figures = goal === undefined ? record.figures : figuresOf(goal.state)
    const closed = goal === undefined && !isFinal(record.stand)
    const held = closed || goal?.around.takesWork() === false
    return infoOf(
      {
        needs: goal === undefined || held ? undefined : yield* needsOf(goal, yield* Clock.currentTimeMillis),
        goalId: record.goalId,
        conversation: record.conversation,
        project: project?.name ?? record.conversation,
        stand: goal?.state.stand ?? record.stand,
        figures,
        detail: closed ? "its conversation is closed" : goal?.detail,
        asks: goal !== undefined && goal.state.stand.state === "planning" && isWhole(goal) && !goal.options.autoStart,
        stuck: !closed && goal?.isStuck === true && goal.state.stand.state === "executing",
        held,
        options: figures.options ?? DEFAULTS
      },
      yield* Clock.currentTimeMillis
    )
  })

  readonly submit: Goals["Service"]["submit"] = (request, caller, key) =>
    carriedOut(this.submitting(request, caller, key))

  readonly isOpen: Goals["Service"]["isOpen"] = (conversation, goalId) =>
    this.registry.find({ conversation, goalId }) !== undefined

  /** Whether the project's repository has the branch. False if the project is in no repository. */
  private hasBranch(root: string, branch: string) {
    const { context, options } = this.registry.parts
    return Effect.gen(function* () {
      const store = yield* GitStore.open(options.stores, root)
      return store !== undefined && (yield* GitStore.commitOf(store, `refs/heads/${branch}`)) !== undefined
    }).pipe(Effect.provideContext(context))
  }

  /** Fails with the reason if the project cannot accept goals. */
  private readonly configOf = Effect.fnUntraced({ self: this }, function* (this: Commands, conversation: string) {
    const config = yield* this.registry.parts.options.projects.config(conversation)
    if (this.registry.isSealed(conversation)) {
      return yield* refuse(
        "closed",
        "The conversation of this project is closed.",
        "Start a new one: agentd project new"
      )
    }
    if (config === undefined)
      return yield* refuse("conflict", "The project's config cannot be read.", "Find the error: agentd doctor")
    if (this.registry.isUnread(conversation)) {
      return yield* refuse(
        "unavailable",
        "The goals of this project cannot be read from the log.",
        "See what is wrong with the log: agentd verify"
      )
    }
    return config
  })

  private readonly submitting = Effect.fnUntraced(
    { self: this },
    function* (this: Commands, request: GoalRequest, caller: Caller, key: string | undefined) {
      const { parts, records } = this.registry
      const { agents, options: around, ready } = parts
      yield* Deferred.await(ready)
      const conversation = yield* Effect.mapError(around.projects.ofCaller(caller), () => nowhere())
      const config = yield* this.configOf(conversation)
      const options = optionsOf(request, config.goals)
      if (request.plan === null && options.planner === null) {
        return yield* refuse(
          "invalid",
          "planner: no agent makes a plan for the goal.",
          "Name an agent (--planner NAME, or goals.planner in agentd.jsonc), or give a plan: --plan FILE"
        )
      }
      const { target } = options
      if (target !== null && !(yield* this.hasBranch(config.root, target))) {
        return yield* refuse(
          "not_found",
          `target: there is no branch "${target}".`,
          "Create it, or name another branch: --target BRANCH"
        )
      }
      yield* agents.recovered
      const members = yield* agents.members(conversation)
      const problem = checkAgents(options, members)
      if (problem !== undefined) return yield* problem
      const open = [...(records.get(conversation)?.values() ?? [])].filter(
        (record) => !isFinal(record.stand) && this.registry.find(record) !== undefined
      )
      if (open.length >= MAX_OPEN) {
        return yield* refuse(
          "full",
          `${MAX_OPEN} goals are open in this project.`,
          "Cancel one: agentd goal cancel GOAL"
        )
      }
      const tasks =
        request.plan === null ? undefined : yield* PlanFile.load(request.plan, { workers: workersOf(options, members) })
      return yield* Effect.uninterruptible(
        Effect.gen({ self: this }, function* () {
          const record = this.registry.newRecord(conversation)
          const { goalId } = record
          const goal = yield* this.registry.animate(record)
          goal.entering = tasks !== undefined
          const { eventId } = yield* Effect.tapError(
            goal.move({
              _tag: "goal_submitted",
              planId: goalId,
              goal: request.goal,
              by: caller.by,
              ...(key === undefined ? {} : { key }),
              options
            }),
            () => this.registry.drop(record)
          )
          if (tasks !== undefined) yield* goal.enterPlan(tasks)
          return { eventId, goalId, message: submitted(goalId, options, tasks?.length) }
        })
      )
    }
  )

  private move(
    verb: string,
    name: string,
    caller: Caller,
    event: (goal: GoalActor) => Effect.Effect<GoalMachine.Event, CommandRefused>,
    words: string
  ) {
    return carriedOut(
      Effect.gen({ self: this }, function* () {
        const goal = yield* this.findOpen(name, caller)
        const next = yield* event(goal)
        const { eventId } = yield* Effect.catchTag(goal.move(next), "Refused", () =>
          refuse(
            "conflict",
            `${goal.goalId} is ${inWords(goal.state.stand.state)}: there is nothing to ${verb}.`,
            `See where it stands: agentd goal show ${goal.goalId}`
          )
        )
        return { eventId, message: `${goal.goalId} ${words}` }
      })
    )
  }

  readonly asked: Goals["Service"]["asked"] = (name, from, caller) =>
    carriedOut(
      Effect.gen({ self: this }, function* () {
        const goal = yield* this.findOpen(name, caller)
        if (goal.state.stand.state !== "planning" || !isWhole(goal)) return yield* nothingToApprove(goal)
        const { project } = yield* this.info(yield* this.find(name, caller))
        const { state } = goal
        const { plan } = state
        const tasks: Array<Task> = []
        let size = 0
        for (const { task } of plan.nodes.slice(from, from + TASKS_A_PAGE)) {
          size += task.description.length
          if (tasks.length > 0 && size > MAX_SHOWN) break
          tasks.push(task)
        }
        const next = from + tasks.length < plan.size ? from + tasks.length : null
        const asked: AskedPlan = {
          goalId: goal.goalId,
          project,
          goal: state.goal,
          options: goal.options,
          hash: yield* PlanHash.hashOf(goal.around.conversation, goal.goalId, state),
          total: plan.size,
          tasks,
          next
        }
        return asked
      })
    )

  readonly approve: Goals["Service"]["approve"] = (name, hash, caller) =>
    this.move(
      "approve",
      name,
      caller,
      Effect.fnUntraced(function* (goal) {
        if (!isWhole(goal)) return yield* nothingToApprove(goal)
        const own = yield* hashNow(goal)
        const refused = CallHash.refusalOf(
          `the plan of ${goal.goalId}`,
          hash,
          own,
          `agentd goal approve ${goal.goalId}`
        )
        if (refused !== undefined) return yield* new CommandRefused({ code: "conflict", ...refused })
        return { _tag: "plan_approved", by: caller.by } as const
      }),
      "is approved: its tasks are being assigned."
    )

  readonly reject: Goals["Service"]["reject"] = (name, reason, caller) =>
    this.move(
      "reject",
      name,
      caller,
      () => Effect.succeed({ _tag: "plan_rejected", by: caller.by, reason }),
      "needs another plan now."
    )

  readonly cancel: Goals["Service"]["cancel"] = (name, reason, caller) =>
    carriedOut(
      Effect.gen({ self: this }, function* () {
        const goal = yield* this.findOpen(name, caller)
        const kept = Kept.willBe(goal.goalId, goal.state.plan, yield* goal.members)
        const by = { by: caller.by, reason: reason || `cancelled by ${caller.by}` }
        return yield* this.move("cancel", name, caller, () => Effect.succeed({ _tag: "user_cancel", ...by }), kept)
      })
    )

  readonly retry: Goals["Service"]["retry"] = (name, task, caller) =>
    this.move(
      "retry",
      name,
      caller,
      (goal) => {
        const failed = goal.state.plan.nodes.filter(({ state }) => state === "failed")
        const meant = task === null ? failed : failed.filter((node) => node.task.id === task)
        if (task !== null && meant.length === 0) {
          return refuse(
            "not_found",
            `There is no failed task "${task}" in ${goal.goalId}.`,
            `See its tasks: agentd goal show ${goal.goalId}`
          )
        }
        const tasks = meant.slice(0, MAX_RETRIED).map((node) => node.task.id)
        return Effect.succeed({ _tag: "dependency_resolved", reason: `${caller.by} resumed it`, tasks })
      },
      "continues."
    )

  readonly plan: Goals["Service"]["plan"] = (name, path, caller) =>
    carriedOut(
      Effect.gen({ self: this }, function* () {
        const goal = yield* this.findOpen(name, caller)
        if (goal.state.stand.state !== "goal_received" || goal.entering) {
          return yield* refuse(
            "conflict",
            `${goal.goalId} does not wait for a plan: it is ${inWords(goal.state.stand.state)}.`,
            `Reject its current plan first: agentd goal reject ${goal.goalId}`
          )
        }
        const workers = (yield* goal.members).map(({ agent }) => agent)
        const tasks = yield* PlanFile.load(path, { workers, known: usedBy(goal.state) })
        if (tasks.length === 0) return yield* refuse("invalid", "tasks: contains no task", "Add at least one task.")
        yield* goal.silence
        yield* goal.enterPlan(tasks)
        return { eventId: goal.state.stand.entered, message: submitted(goal.goalId, goal.options, tasks.length) }
      })
    )

  readonly list: Goals["Service"]["list"] = ({ all }, caller) =>
    Effect.gen({ self: this }, function* () {
      const own = all
        ? undefined
        : yield* Effect.orElseSucceed(this.registry.parts.options.projects.ofCaller(caller), () => undefined)
      const rows: Array<GoalInfo> = []
      for (const [conversation, goals] of this.registry.records) {
        if (own !== undefined && conversation !== own) continue
        for (const record of goals.values()) rows.push(yield* this.info(record))
      }
      return rows
        .toSorted((a, b) => b.submittedAt - a.submittedAt || (a.goalId < b.goalId ? 1 : -1))
        .slice(0, TASKS_A_PAGE)
    })

  readonly page: Goals["Service"]["page"] = (name, from, caller) =>
    carriedOut(
      Effect.gen({ self: this }, function* () {
        const record = yield* this.find(name, caller)
        const state =
          this.registry.find(record)?.state ??
          (yield* readGoal(this.registry.parts.log, record.conversation, record.goalId))
        const { nodes } = state.plan
        const tasks = nodes.slice(from, from + TASKS_A_PAGE).map(taskOf)
        const next = from + tasks.length < nodes.length ? from + tasks.length : null
        const named = from === 0 && next !== null ? namedOf(state.plan).map(taskOf) : []
        const info = yield* this.info(record)
        const kept = yield* this.registry.keptOf(record)
        const goal = kept === "" ? info : { ...info, detail: `${info.detail}; its commits are kept as ${kept}` }
        const page: GoalPage = { goal, tasks, named, findings: state.findings, next }
        return page
      })
    )

  readonly merge: Goals["Service"]["merge"] = (name, options, caller) =>
    carriedOut(
      Effect.uninterruptible(
        Effect.flatMap(this.find(name, caller), (record) =>
          Effect.provideContext(
            deliver(this.registry, record, { ...options, by: caller.by }),
            this.registry.parts.context
          )
        )
      )
    )
}

const submitted = (goalId: string, { autoStart, planner }: GoalOptions, tasks: number | undefined): string => {
  if (tasks === undefined) return `${goalId} is submitted: ${planner} makes a plan. See: agentd goal show ${goalId}`
  const next = autoStart
    ? `It is running. Watch it: agentd goal watch ${goalId}`
    : `Look, then: agentd goal approve ${goalId}`
  return `${goalId} has a plan of ${tasks} ${tasks === 1 ? "task" : "tasks"}. ${next}`
}

/** Maximum length of the goal's text in a merge commit's message, in characters. */
const MAX_SUBJECT = 60

const merged = (target: string, results: MergeReply["results"]): string => {
  const of = (outcome: string) => results.filter((result) => result.outcome === outcome)
  const conflicts = of("conflict").map(({ branch, conflicts }) => `${branch} conflicts in ${conflicts.join(", ")}`)
  const done = `${of("merged").length} merged into ${target}, ${of("up-to-date").length} already there`
  return conflicts.length === 0 ? `${done}.` : `${done}; ${conflicts.join("; ")}: nothing was forced.`
}

/**
 * Removes commits of other goals from the branches to merge, and branches with commits of other goals only. Fails if commits belong to no goal, because nobody
 * reviewed them. Also fails if the goal's own commits conflict without the removed ones.
 */
const onlyItsOwn = Effect.fnUntraced(function* (
  registry: GoalRegistry,
  store: GitStore.GitStore,
  tip: string,
  of: { readonly conversation: string; readonly goalId: string; readonly works: ReadonlyArray<GitMerge.Work> }
) {
  const { conversation, goalId, works } = of
  const own: Array<GitMerge.Work> = []
  for (const work of works) {
    const others = yield* GitMerge.foreign(store, tip, work)
    if (others.length === 0) {
      own.push(work)
      continue
    }
    const goals = new Map<string, GoalState>()
    for (const id of registry.records.get(conversation)?.keys() ?? [])
      goals.set(id, yield* readGoal(registry.parts.log, conversation, id))
    const runs = yield* GitMerge.parted(store, tip, work.head, ReviewGate.triesOn(work.branch, goals))
    const beneath = [...new Set(runs.map((run) => run.goalId))].filter((id) => id !== goalId)
    const all = `agentd goal merge ${goalId} --all`
    if (beneath.includes(undefined)) {
      return yield* refuse(
        "conflict",
        `${work.branch} contains ${ReviewGate.strangers(others)}.`,
        `Merge them, too: ${all}. Or first merge the goal to which they belong: agentd goal ls --all`
      )
    }
    const picks = runs.filter((run) => run.goalId === goalId)
    if (picks.length === 0) continue
    const alone = { ...work, picks }
    own.push(alone)
    const [result] = (yield* GitMerge.combine(store, tip, [alone], "")).results
    if (result?.outcome !== "conflict") continue
    const names = beneath.map((id) => `${id} (${goals.get(id!)?.stand.state})`).join(", ")
    // suggest a goal that is met and does not itself depend on another goal
    let first: string | undefined = undefined
    for (const id of beneath) {
      const other = ReviewGate.worksOf(goals.get(id!)!.plan).find(({ branch }) => branch === work.branch)
      if (goals.get(id!)?.stand.state !== "goal_met" || other === undefined) continue
      if ((yield* GitMerge.foreign(store, tip, other)).length === 0) first ??= id
    }
    return yield* refuse(
      "conflict",
      `${work.branch}: the work of ${goalId} there is built on commits of ${names}: without them it conflicts in ${result.conflicts.join(", ")}.`,
      first === undefined ? `Merge them, too: ${all}` : `Merge that goal first: agentd goal merge ${first}`
    )
  }
  return own
})

const nothingToMerge = (goalId: string) =>
  refuse(
    "conflict",
    `There is nothing to merge: no task of ${goalId} has a commit on its own branch.`,
    `See where its tasks were done: agentd goal show ${goalId}`
  )

/** Merges the completed work of a goal into a branch, and records that in the log. */
const deliver = Effect.fnUntraced(function* (
  registry: GoalRegistry,
  { conversation, goalId }: GoalRecord,
  how: MergeHow & { readonly by: string }
) {
  const { log, options } = registry.parts
  const goal = yield* readGoal(log, conversation, goalId)
  if (goal.stand.state !== "goal_met" && !how.unreviewed) {
    return yield* refuse(
      "conflict",
      `${goalId} is not met: it is ${inWords(goal.stand.state)}, and its work is not reviewed.`,
      "Wait for it, or merge what is done all the same: --unreviewed"
    )
  }
  const works = ReviewGate.worksOf(goal.plan)
  if (works.length === 0) return yield* nothingToMerge(goalId)
  if (registry.isSealed(conversation)) {
    return yield* refuse(
      "closed",
      `The conversation of ${goalId} is closed: nothing more can be logged for it.`,
      `Merge by hand: git merge ${works.map(({ head }) => head.slice(0, 12)).join(" ")}`
    )
  }
  const project = yield* options.projects.config(conversation)
  if (project === undefined)
    return yield* refuse("conflict", "The project's config cannot be read.", "Find the error: agentd doctor")
  const store = yield* GitMerge.storeOf(options.stores, project.root)
  const target = how.into ?? goal.options?.target ?? (yield* GitMerge.currentBranch(store))
  if (target === undefined) return yield* refuse("invalid", "No branch is checked out.", "Name one: --into BRANCH")
  const what = goal.goal.split("\n")[0]!.slice(0, MAX_SUBJECT)
  const tip = how.done?.from ?? (yield* GitStore.commitOf(store, `refs/heads/${target}`))
  const own =
    how.all || tip === undefined ? works : yield* onlyItsOwn(registry, store, tip, { conversation, goalId, works })
  if (own.length === 0) return yield* nothingToMerge(goalId)
  const { results, toCheckout } =
    how.done === undefined
      ? yield* GitMerge.into(store, target, own, { goalId, what })
      : yield* GitMerge.seen(store, target, own, how.done)
  if (toCheckout !== undefined) {
    const message = `${target} is checked out in ${toCheckout.folder}: git merge --ff-only ${toCheckout.commit} there.`
    const reply: MergeReply = { eventId: 0, target, results, message, toCheckout }
    return reply
  }
  const payload = { plan_id: goalId, target, by: how.by, results }
  const [rune] = yield* log.append([
    { stream: conversation, kind: "plan.merged", actor: `merge/${goalId}`, trigger: "merge", payload }
  ])
  const reply: MergeReply = { eventId: rune!.eventId, target, results, message: merged(target, results) }
  return reply
})

const make = Effect.fnUntraced(function* (options: Options) {
  const log = yield* EventLog
  const scope = yield* Effect.scope
  const ready = yield* Deferred.make<void, StorageError>()
  const registry = new GoalRegistry({
    options,
    log,
    system: yield* ActorSystem,
    agents: yield* AgentPort,
    conversations: yield* Conversations,
    ready,
    context: yield* services<Needs>(),
    scope
  })
  yield* options.supervisor.add({ id: "reports", start: Effect.succeed(registry.listen) })
  yield* options.supervisor.add({ id: "standings", start: Effect.succeed(registry.follow) })
  yield* registry.recover.pipe(
    Effect.onExit((exit) => Deferred.done(ready, exit)),
    Effect.andThen(registry.afterwards),
    Effect.tapCause((cause) => Effect.logError("the goals could not be recovered", cause)),
    Effect.forkIn(scope)
  )
  const commands = new Commands(registry)
  return Goals.of({
    submit: commands.submit,
    isOpen: commands.isOpen,
    list: commands.list,
    page: commands.page,
    plan: commands.plan,
    asked: commands.asked,
    approve: commands.approve,
    reject: commands.reject,
    cancel: commands.cancel,
    retry: commands.retry,
    merge: commands.merge,
    stopAll: registry.stopAll,
    recovered: Deferred.await(ready)
  })
})

/** The supervisor in the options must be started by another supervisor, after that of the conversations. */
export const layer = (options: Options) => Layer.effect(Goals, make(options))
