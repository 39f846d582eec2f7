/**
 * GoalActivities: the activities of a goal in each of its states. A goal has its plan made, approved or revised, runs
 * the tasks, and has the result reviewed. If the plan is blocked, the goal waits until work can continue. Each activity
 * ends with an event that moves the goal to another state.
 */
import { Cause, Effect, Result } from "effect"
import { ActorStopped } from "../core/event-actor/ActorError.ts"
import type { Evidence, Finding } from "../domain/GoalMessages.ts"
import { readMove } from "./GoalKinds.ts"
import type * as GoalMachine from "./GoalMachine.ts"
import { RuneRefused, StorageError } from "../core/event-log/EventLog.ts"
import * as Backoff from "../core/supervision/Backoff.ts"
import { type GoalActor, OURSELVES, RESTS } from "./GoalActor.ts"
import { type GoalState, knownTo, usedBy } from "./GoalState.ts"
import * as Critic from "./Critic.ts"
import * as Kept from "./Kept.ts"
import { TaskRunner } from "./TaskRunner.ts"
import * as ReviewGate from "./ReviewGate.ts"
import * as Planner from "./Planner.ts"
import * as AgentQuery from "./AgentQuery.ts"
import { decide } from "./Scheduler.ts"

/** The goal's state when it entered the machine state to which the activity belongs. */
type Entered = GoalState

/** Maximum number of completed tasks whose evidence a review reads; the newest come first. */
const MAX_EVIDENCE = 100

/** Asks an agent. Returns the answer if it is usable, otherwise the error. Fails only if the log fails. */
const asks = <A>(
  goal: GoalActor,
  entered: Entered,
  agent: string,
  what: { readonly key: string; readonly text: string; readonly read: AgentQuery.AgentQuery<A>["read"] }
) =>
  AgentQuery.ask({
    agents: goal.around.agents,
    to: { conversation: goal.around.conversation, agent },
    from: `plan:${goal.goalId}`,
    key: `plan/${goal.goalId}/${what.key}/${entered.stand.entered}`,
    text: what.text,
    tries: goal.options.planTries,
    timeout: goal.options.taskTimeout,
    news: goal.news(),
    waits: (detail, messageId) => {
      goal.detail = goal.around.takesWork() ? detail : RESTS
      goal.asking = { agent, messageId }
    },
    howEnded: (turnId, outcome) => goal.howEnded(turnId, outcome, entered.stand.entered),
    read: what.read
  }).pipe(
    Effect.tap(() =>
      Effect.sync(() => {
        goal.asking = undefined
      })
    ),
    Effect.map(Result.succeed),
    Effect.catchTags({
      BudgetSpent: (spent) => Effect.succeed(Result.fail(spent)),
      QueryFailed: (failed) => Effect.succeed(Result.fail(failed))
    })
  )

const giveUp = (goal: GoalActor, error: AgentQuery.BudgetSpent | AgentQuery.QueryFailed) =>
  goal.moveIfStill({
    _tag: error._tag === "BudgetSpent" ? "budget_exhausted" : "unresolvable",
    reason: error.message
  })

const decompose = (goal: GoalActor) =>
  Effect.fnUntraced(function* (entered: Entered) {
    const { planner } = goal.options
    if (goal.entering) goal.detail = "its plan is being stored"
    // if the plan was rejected immediately, some of its tasks may not have been entered yet
    while (goal.entering) yield* goal.news()
    if (planner === null) {
      goal.detail = `it waits for a plan: agentd goal plan ${goal.goalId} FILE`
      return yield* Effect.never
    }
    yield* goal.around.agents.recovered
    const workers = yield* goal.members
    const door = { workers: workers.map(({ agent }) => agent), known: usedBy(goal.state) }
    const tasks = yield* asks(goal, entered, planner, {
      key: "decompose",
      text: Planner.decompose(goal.state, workers),
      read: (output) =>
        Effect.filterOrFail(
          Planner.read(output, door),
          (found) => found.length > 0,
          () => ({ message: "tasks: contains no task" })
        )
    })
    yield* tasks._tag === "Success" ? goal.enterPlan(tasks.success) : giveUp(goal, tasks.failure)
  })

const refine = (goal: GoalActor) =>
  Effect.fnUntraced(function* (entered: Entered) {
    while (goal.entering) yield* goal.news()
    if (!goal.isComplete) {
      const reason = "a part of the plan was lost when agentd ended"
      return yield* goal.moveIfStill({ _tag: "plan_rejected", by: OURSELVES, reason })
    }
    const { autoStart, planner } = goal.options
    if (goal.state.revise !== null && planner !== null) {
      yield* goal.around.agents.recovered
      const workers = yield* goal.members
      const door = { workers: workers.map(({ agent }) => agent), known: knownTo(goal.state) }
      const added = yield* asks(goal, entered, planner, {
        key: "revise",
        text: Planner.revise(goal.state, workers),
        read: (output) => Planner.read(output, door)
      })
      if (added._tag === "Failure") return yield* giveUp(goal, added.failure)
      yield* goal.enterRevision(added.success)
    }
    if (autoStart) return yield* goal.moveIfStill({ _tag: "auto_start" })
    goal.detail = `its plan of ${goal.state.plan.size === 1 ? "1 task" : `${goal.state.plan.size} tasks`} waits for approval: agentd goal approve ${goal.goalId}`
    return yield* Effect.never
  })

const evidenceOf = Effect.fnUntraced(function* (goal: GoalActor) {
  const shown = new Map<string, Evidence>()
  const done = goal.state.plan.nodes
    .filter(({ result }) => result !== null)
    .toSorted((a, b) => b.result!.eventId - a.result!.eventId)
    .slice(0, MAX_EVIDENCE)
  for (const { result, task } of done) {
    const rune = yield* goal.around.log.get(result!.eventId)
    const completed = rune === undefined ? undefined : readMove(rune)
    const evidence = completed?.kind === "plan.task_completed" ? completed.payload.evidence : undefined
    if (evidence !== null && evidence !== undefined) shown.set(task.id, evidence)
  }
  return shown
})

const isError = ({ severity }: Finding): boolean => severity === "error"

/** Runs the checks, then asks the critic if they found no error. */
const examine = Effect.fnUntraced(function* (goal: GoalActor, entered: Entered) {
  const { checks, checkTimeout, critic, target } = goal.options
  const project = yield* goal.around.project
  goal.detail = checks.length === 0 ? "its result is being reviewed" : `its checks are running: ${checks.join(", ")}`
  const gate: ReadonlyArray<Finding> =
    project === undefined
      ? [
          {
            severity: "error",
            message: "the project's config cannot be read: nothing could be checked",
            forPerson: true
          }
        ]
      : yield* ReviewGate.check({
          plan: goal.state.plan,
          followed: goal.state.followed,
          goal: goal.state.goal,
          checks,
          timeout: checkTimeout,
          root: project.root,
          target,
          scratch: goal.scratch,
          stores: goal.around.stores,
          manner: project.goals,
          store: goal.around.store,
          environment: goal.around.environment
        })
  if (critic === null || gate.some(isError)) return gate
  const found = yield* asks(goal, entered, critic, {
    key: "review",
    text: Critic.review(goal.state, yield* evidenceOf(goal), gate),
    read: Critic.read
  })
  if (found._tag === "Failure" && found.failure._tag === "BudgetSpent") return found.failure
  const said: ReadonlyArray<Finding> =
    found._tag === "Success"
      ? found.success
      : [
          {
            severity: "error",
            message: `there is no review: ${found.failure.message}`,
            forPerson: true
          }
        ]
  return [...gate, ...said]
})

const review = (goal: GoalActor) =>
  Effect.fnUntraced(function* (entered: Entered) {
    yield* goal.around.agents.recovered
    if (goal.state.reviewed < entered.stand.entered) {
      const findings = yield* examine(goal, entered)
      if (findings instanceof AgentQuery.BudgetSpent) {
        return yield* goal.moveIfStill({ _tag: "budget_exhausted", reason: findings.message })
      }
      yield* goal.move({ _tag: "critique", findings: Critic.bounded(findings) })
    }
    const workers = (yield* goal.members).map(({ agent }) => agent)
    const { data } = goal.state.stand
    const verdict = Critic.verdict(goal.state, goal.state.findings, data.rounds + 1, workers)
    switch (verdict._tag) {
      case "Passed":
        return yield* goal.moveIfStill({ _tag: "critique_passed", summary: verdict.summary })
      case "Replan":
        return yield* goal.moveIfStill({ _tag: "needs_replan", reason: verdict.reason })
      case "Issues":
        return yield* goal.moveIfStill({ _tag: "critique_found_issues", tasks: verdict.tasks })
    }
  })

/**
 * Returns the event that ends the blocked state: a task can be worked on, or every agent that could continue has
 * exceeded its budget. Undefined if the goal stays blocked.
 */
const wayOut = Effect.fnUntraced(function* (goal: GoalActor) {
  const { data } = goal.state.stand
  if (data.rounds >= data.maxRounds) return undefined
  const decision = decide(
    goal.state.plan.advance(yield* goal.now, goal.options.backoff.cap),
    goal.workersOf(yield* goal.members)
  )
  const event: GoalMachine.Event | undefined =
    decision._tag === "Blocked"
      ? undefined
      : decision._tag === "Exhausted"
        ? { _tag: "budget_exhausted", reason: decision.reason }
        : { _tag: "dependency_resolved", reason: "a task can be worked on again" }
  return event
})

const watch = (goal: GoalActor) =>
  Effect.fnUntraced(function* ({ stand }: Entered) {
    yield* goal.around.agents.recovered
    const { blockedTimeout } = goal.options
    const began = yield* goal.now
    // a clock that was set back must not extend the wait
    const until = Math.min(stand.at + blockedTimeout, began + blockedTimeout)
    const { data } = stand
    const again = data.rounds >= data.maxRounds || goal.state.plan.counts.failed > 0
    goal.detail = `it is waiting: ${data.reason ?? "it is blocked"}${again ? `. To resume it: agentd goal retry ${goal.goalId}` : ""}`
    for (;;) {
      const event = yield* wayOut(goal)
      if (event !== undefined) return yield* goal.moveIfStill(event)
      const now = yield* goal.now
      if (now >= until) {
        const reason = `nobody resolved it in time: ${data.reason ?? "it is blocked"}`
        return yield* goal.moveIfStill({ _tag: "unresolvable", reason })
      }
      yield* goal.news(until - now)
    }
  })

/** Delays before a failed activity is retried, in ms. */
const STUMBLED: Backoff.Policy = { base: 1_000, factor: 2, cap: 60_000, jitter: 0 }

/**
 * Contains a failure within its goal: logs it, and retries the activity after a delay. If the log rejects the goal's
 * runes (its conversation is closed), the activity waits until the actor ends. If the log itself fails, the actor
 * fails, too.
 */
const contained =
  <E, R>(goal: GoalActor, activity: (entered: Entered) => Effect.Effect<void, E, R>) =>
  (entered: Entered): Effect.Effect<void, StorageError, R> => {
    const attempt = (n: number): Effect.Effect<void, StorageError, R> =>
      Effect.catchCause(activity(entered), (cause) => {
        const error = Cause.squash(cause)
        if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
        if (error instanceof StorageError) return Effect.fail(error)
        // the actor is ending and will interrupt this activity
        if (error instanceof ActorStopped) return Effect.never
        goal.detail = `it cannot continue: ${error instanceof Error ? error.message : String(error)}`
        const then =
          error instanceof RuneRefused
            ? Effect.never
            : Effect.andThen(Effect.sleep(Backoff.wait(STUMBLED, n)), attempt(n + 1))
        return Effect.andThen(Effect.logError(`${goal.goalId}: ${goal.detail}`, cause), then)
      })
    return attempt(1)
  }

export const of = (goal: GoalActor) => ({
  DecomposeGoal: contained(goal, decompose(goal)),
  RefinePlan: contained(goal, refine(goal)),
  ScheduleTasks: contained(goal, () => Effect.suspend(() => new TaskRunner(goal).run)),
  ReviewPlan: contained(goal, review(goal)),
  WatchDependencies: contained(goal, watch(goal))
})

/** Cleans up after an ended goal. Cancels its tasks, too: the actor can end before its CancelTasks action is done. */
export const tidy = Effect.fnUntraced(function* (goal: GoalActor) {
  yield* goal.silence
  yield* goal.cancelTasks(Object.keys(goal.state.stand.data.inFlight))
  yield* Kept.keep(goal.around, goal.goalId)
  const project = yield* goal.around.project
  if (project !== undefined) yield* ReviewGate.clear(goal.around.stores, project.root, goal.scratch)
})
