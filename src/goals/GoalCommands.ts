/**
 * GoalCommands: what a person can do to goals, in words that a person understands.
 *
 * Guarantees: what is asked is checked before anything is written; what was begun
 * comes to its end even if the caller goes away; a refusal says what to do next.
 */
import { Clock, Deferred, Effect } from "effect"
import {
  type GoalInfo,
  type GoalOptions,
  type GoalPage,
  type GoalRequest,
  TASKS_A_PAGE,
  TASKS_NAMED
} from "../domain/GoalMessages.ts"
import { type Caller, CommandRefused } from "../domain/Messages.ts"
import type * as GoalMachine from "./GoalMachine.ts"
import { StorageError } from "../event-log/EventLog.ts"
import { type GoalActor, isFinal, readGoal } from "./GoalActor.ts"
import { usedBy } from "./GoalState.ts"
import { deliver } from "./MergeGoal.ts"
import { Goals } from "./Goals.ts"
import type { LiveGoals } from "./LiveGoals.ts"
import * as GitMerge from "./GitMerge.ts"
import type { Node, Plan } from "./Plan.ts"
import * as PlanFile from "./PlanFile.ts"
import type { GoalRecord } from "./Recovery.ts"
import { checkAgents, DEFAULTS, optionsOf, workersOf } from "./Request.ts"
import { figuresOf, infoOf, taskOf } from "./GoalView.ts"

const MAX_GOAL = 65_536
/** Goals of one conversation that have not ended. */
const MAX_OPEN = 20
/** Failed tasks that one retry opens again: a rune names them. */
const MAX_RETRIED = 2_000

const refuse = (message: string, remedy: string) => new CommandRefused({ message, remedy })

/** Said to a caller who stands in no project. */
const nowhere = (name?: string): CommandRefused =>
  name === undefined
    ? refuse("There is no agentd.jsonc here, so nobody could work on it.", "Go to the project's folder, then again.")
    : refuse(
        `Which ${name}? There is no agentd.jsonc here.`,
        "Name its project too: PROJECT/GOAL. See: agentd goal ls --all"
      )

interface Explained {
  readonly _tag: string
  readonly message: string
  readonly remedy?: string
}

/** What went wrong below, as a refusal. */
const explained = (error: Explained): CommandRefused | StorageError =>
  error instanceof StorageError || error instanceof CommandRefused
    ? error
    : refuse(error.message, error.remedy ?? "See agentd goal show for where it stands.")

const carriedOut = <A, E extends Explained, R>(effect: Effect.Effect<A, E, R>) => Effect.mapError(effect, explained)

/** What a person looks for first in a plan that is too long to be read. */
const namedOf = ({ counts, inFlight, nodes }: Plan): ReadonlyArray<Node> => {
  const failed = counts.failed === 0 ? [] : nodes.filter(({ state }) => state === "failed")
  return [...inFlight, ...failed].slice(0, TASKS_NAMED)
}

class Commands {
  private readonly live: LiveGoals
  constructor(live: LiveGoals) {
    this.live = live
  }

  /** `g3` from within its project, else `project/g3` or `conversation/g3`. */
  private readonly find = Effect.fnUntraced({ self: this }, function* (this: Commands, name: string, caller: Caller) {
    yield* Deferred.await(this.live.ready)
    const slash = name.lastIndexOf("/")
    const goalId = name.slice(slash + 1)
    const conversations =
      slash === -1
        ? [yield* Effect.mapError(this.live.options.projects.ofCaller(caller), () => nowhere(name))]
        : yield* Effect.filter([...this.live.records.keys()], (conversation) =>
            conversation === name.slice(0, slash)
              ? Effect.succeed(true)
              : Effect.map(
                  this.live.options.projects.config(conversation),
                  (found) => found?.name === name.slice(0, slash)
                )
          )
    const found = conversations.flatMap((conversation) => this.live.records.get(conversation)?.get(goalId) ?? [])
    if (found.length === 1) return found[0]!
    return yield* refuse(
      found.length === 0 ? `There is no goal "${name}".` : `"${name}" names ${found.length} goals.`,
      found.length === 0
        ? "See which there are: agentd goal ls --all"
        : `Say which: ${found.map((one) => `${one.conversation}/${one.goalId}`).join(", ")}`
    )
  })

  /** One that has not ended. */
  private readonly findOpen = Effect.fnUntraced(
    { self: this },
    function* (this: Commands, name: string, caller: Caller) {
      const record = yield* this.find(name, caller)
      const goal = this.live.find(record)
      if (goal !== undefined) return goal
      const ended = isFinal(record.stand.state)
      return yield* refuse(
        ended
          ? `${record.goalId} has ended: ${record.stand.state}.`
          : `The conversation of ${record.goalId} is closed.`,
        'Submit it anew: agentd goal "…"'
      )
    }
  )

  private readonly info = Effect.fnUntraced({ self: this }, function* (this: Commands, record: GoalRecord) {
    const goal = this.live.find(record)
    const project = yield* this.live.options.projects.config(record.conversation)
    const figures = goal === undefined ? record.figures : figuresOf(goal.state)
    const closed = goal === undefined && !isFinal(record.stand.state)
    return infoOf(
      {
        goalId: record.goalId,
        conversation: record.conversation,
        project: project?.name ?? record.conversation,
        stand: goal?.stand ?? record.stand,
        figures,
        detail: closed ? "its conversation is closed" : goal?.detail,
        options: figures.options ?? DEFAULTS
      },
      yield* Clock.currentTimeMillis
    )
  })

  readonly submit: Goals["Service"]["submit"] = (request, caller) => carriedOut(this.submitting(request, caller))

  private readonly submitting = Effect.fnUntraced(
    { self: this },
    function* (this: Commands, request: GoalRequest, caller: Caller) {
      const { crew, options: around, ready, records } = this.live
      yield* Deferred.await(ready)
      if (request.goal.trim() === "") return yield* refuse("goal: it is empty.", "Say what is to be achieved.")
      if (request.goal.length > MAX_GOAL) {
        return yield* refuse(
          `goal: it has ${request.goal.length} characters and may have ${MAX_GOAL}.`,
          "Put the long part into a file, and name it."
        )
      }
      const conversation = yield* Effect.mapError(around.projects.ofCaller(caller), () => nowhere())
      const config = yield* around.projects.config(conversation)
      if (this.live.isSealed(conversation)) {
        return yield* refuse("The conversation of this project is closed.", "Begin a new one: agentd conversation new")
      }
      if (config === undefined) return yield* refuse("The project's config cannot be read.", "Mend it: agentd doctor")
      const options = optionsOf(request, config.goals)
      if (request.plan === null && options.planner === null) {
        return yield* refuse(
          "planner: nobody makes a plan for it.",
          "Name an agent (--planner NAME, or goals.planner in agentd.jsonc), or give a plan: --plan FILE"
        )
      }
      const { target } = options
      if (target !== null && (yield* GitMerge.commitOf(config.root, `refs/heads/${target}`)) === undefined) {
        return yield* refuse(`target: there is no branch "${target}".`, "Make it, or name another: --target BRANCH")
      }
      yield* crew.recovered
      const members = yield* crew.members(conversation)
      const problem = checkAgents(options, members)
      if (problem !== undefined) return yield* problem
      const open = [...(records.get(conversation)?.values() ?? [])].filter(
        (record) => !isFinal(record.stand.state) && this.live.find(record) !== undefined
      )
      if (open.length >= MAX_OPEN) {
        return yield* refuse(`${MAX_OPEN} goals are under way in this project.`, "Cancel one: agentd goal cancel GOAL")
      }
      const tasks =
        request.plan === null ? undefined : yield* PlanFile.load(request.plan, { workers: workersOf(options, members) })
      return yield* Effect.uninterruptible(
        Effect.gen({ self: this }, function* () {
          const record = this.live.newRecord(conversation)
          const { goalId } = record
          const goal = yield* this.live.animate(record)
          goal.entering = tasks !== undefined
          const { eventId } = yield* Effect.tapError(
            goal.move({ _tag: "goal_submitted", planId: goalId, goal: request.goal, by: caller.by, options }),
            () => this.live.drop(record)
          )
          if (tasks !== undefined) yield* goal.enterPlan(tasks)
          return { eventId, goalId, message: submitted(goalId, options, tasks?.length) }
        })
      )
    }
  )

  /** One event, on a goal that has not ended. */
  private move(
    verb: string,
    name: string,
    caller: Caller,
    event: (goal: GoalActor) => GoalMachine.Event | CommandRefused,
    words: string
  ) {
    return carriedOut(
      Effect.gen({ self: this }, function* () {
        const goal = yield* this.findOpen(name, caller)
        const next = event(goal)
        if (next instanceof CommandRefused) return yield* next
        const { eventId } = yield* Effect.catchTag(goal.move(next), "Refused", () =>
          refuse(
            `${goal.goalId} is ${goal.stand.state}: there is nothing to ${verb}.`,
            `See where it stands: agentd goal show ${goal.goalId}`
          )
        )
        return { eventId, message: `${goal.goalId} ${words}` }
      })
    )
  }

  readonly approve: Goals["Service"]["approve"] = (name, caller) =>
    this.move(
      "approve",
      name,
      caller,
      (goal) =>
        goal.isComplete && goal.state.revise === null
          ? { _tag: "plan_approved", by: caller.by }
          : refuse(`The plan of ${goal.goalId} is not complete yet.`, "Look again in a moment: agentd goal show"),
      "is approved: its tasks are given out."
    )

  readonly reject: Goals["Service"]["reject"] = (name, reason, caller) =>
    this.move(
      "reject",
      name,
      caller,
      () => ({ _tag: "plan_rejected", by: caller.by, reason }),
      "needs another plan now."
    )

  readonly cancel: Goals["Service"]["cancel"] = (name, reason, caller) =>
    this.move(
      "cancel",
      name,
      caller,
      () => ({ _tag: "user_cancel", by: caller.by, reason: reason || `cancelled by ${caller.by}` }),
      "is stopped; what its agents have committed stays on their branches."
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
            `There is no failed task "${task}" in ${goal.goalId}.`,
            `See its tasks: agentd goal show ${goal.goalId}`
          )
        }
        const tasks = meant.slice(0, MAX_RETRIED).map((node) => node.task.id)
        return { _tag: "dependency_resolved", reason: `${caller.by} lets it go on`, tasks }
      },
      "goes on."
    )

  readonly plan: Goals["Service"]["plan"] = (name, path, caller) =>
    carriedOut(
      Effect.gen({ self: this }, function* () {
        const goal = yield* this.findOpen(name, caller)
        if (goal.stand.state !== "goal_received" || goal.entering) {
          return yield* refuse(
            `${goal.goalId} waits for no plan: it is ${goal.stand.state}.`,
            `Send the plan that it has back first: agentd goal reject ${goal.goalId}`
          )
        }
        const workers = (yield* goal.members).map(({ agent }) => agent)
        const tasks = yield* PlanFile.load(path, { workers, known: usedBy(goal.state) })
        if (tasks.length === 0) return yield* refuse("tasks: holds no task", "Give at least one.")
        yield* goal.silence
        yield* goal.enterPlan(tasks)
        return { eventId: goal.stand.entered, message: submitted(goal.goalId, goal.options, tasks.length) }
      })
    )

  readonly list: Goals["Service"]["list"] = ({ all }, caller) =>
    Effect.gen({ self: this }, function* () {
      const own = all
        ? undefined
        : yield* Effect.orElseSucceed(this.live.options.projects.ofCaller(caller), () => undefined)
      const rows: Array<GoalInfo> = []
      for (const [conversation, goals] of this.live.records) {
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
          this.live.find(record)?.state ?? (yield* readGoal(this.live.log, record.conversation, record.goalId))
        const { nodes } = state.plan
        const tasks = nodes.slice(from, from + TASKS_A_PAGE).map(taskOf)
        const next = from + tasks.length < nodes.size ? from + tasks.length : null
        const named = from === 0 && next !== null ? namedOf(state.plan).map(taskOf) : []
        const page: GoalPage = { goal: yield* this.info(record), tasks, named, findings: state.findings, next }
        return page
      })
    )

  readonly merge: Goals["Service"]["merge"] = (name, options, caller) =>
    carriedOut(
      Effect.uninterruptible(
        Effect.flatMap(this.find(name, caller), (record) => deliver(this.live, record, { ...options, by: caller.by }))
      )
    )
}

const submitted = (goalId: string, { autoStart, planner }: GoalOptions, tasks: number | undefined): string => {
  if (tasks === undefined) return `${goalId} is submitted: ${planner} makes a plan. See: agentd goal show ${goalId}`
  const next = autoStart
    ? `It is carried out. Watch: agentd goal watch ${goalId}`
    : `Look, then: agentd goal approve ${goalId}`
  return `${goalId} has a plan of ${tasks} ${tasks === 1 ? "task" : "tasks"}. ${next}`
}

export const service = (live: LiveGoals): Goals["Service"] => {
  const commands = new Commands(live)
  return Goals.of({
    submit: commands.submit,
    list: commands.list,
    page: commands.page,
    plan: commands.plan,
    approve: commands.approve,
    reject: commands.reject,
    cancel: commands.cancel,
    retry: commands.retry,
    merge: commands.merge,
    stopAll: live.stopAll,
    recovered: Deferred.await(live.ready)
  })
}
