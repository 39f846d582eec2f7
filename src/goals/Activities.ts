/**
 * Activities: what a goal does in each of its states: have it decomposed, have its
 * plan approved or revised, carry it out, have the result reviewed, wait for what
 * keeps it from going on. Each answers by a move that leads out of its state.
 */
import { Cause, Effect, Result } from "effect"
import type { Context } from "../event-actor/MachineActor.ts"
import type { Evidence, Finding } from "../domain/GoalMessages.ts"
import type * as GoalMachine from "./GoalMachine.ts"
import { RuneRefused, StorageError } from "../event-log/EventLog.ts"
import { type GoalActor, OURSELVES, RESTS } from "./GoalActor.ts"
import * as Critic from "./Critic.ts"
import { Executing } from "./TaskRunner.ts"
import * as ReviewGate from "./ReviewGate.ts"
import * as Planner from "./Planner.ts"
import * as Query from "./Query.ts"
import { decide } from "./Scheduler.ts"
import * as Backoff from "../supervision/Backoff.ts"

type Entered = Context<GoalMachine.State, GoalMachine.Event, GoalMachine.Data>

/** Tasks whose evidence a review reads, the newest. */
const MAX_EVIDENCE = 100

/** An answer that could be used, or why there is none; a log that fails is neither. */
const asks = <A>(
  goal: GoalActor,
  entered: Entered,
  agent: string,
  what: { readonly key: string; readonly text: string; readonly read: Query.Query<A>["read"] }
) =>
  Query.ask({
    crew: goal.around.crew,
    to: { conversation: goal.around.conversation, agent },
    from: `plan:${goal.goalId}`,
    key: `plan/${goal.goalId}/${what.key}/${entered.cause.eventId}`,
    text: what.text,
    tries: goal.options.planTries,
    timeout: goal.options.taskTimeout,
    news: goal.news(),
    waits: (detail, messageId) => {
      goal.detail = goal.around.takesWork() ? detail : RESTS
      goal.asking = { agent, messageId }
    },
    howEnded: (turnId, outcome) => goal.howEnded(turnId, outcome, entered.cause.eventId),
    read: what.read
  }).pipe(
    Effect.tap(() =>
      Effect.sync(() => {
        goal.asking = undefined
      })
    ),
    Effect.map(Result.succeed),
    Effect.catchTag("QueryFailed", (failed) => Effect.succeed(Result.fail(failed)))
  )

const giveUp = (goal: GoalActor, error: Query.QueryFailed) =>
  goal.moveIfStill({ _tag: "user_cancel", by: OURSELVES, reason: error.message })

const decompose = (goal: GoalActor) =>
  Effect.fnUntraced(function* (entered: Entered) {
    const { planner } = goal.options
    if (planner === null || goal.entering) {
      goal.detail = goal.entering
        ? "its plan is being taken"
        : `it waits for a plan: agentd goal plan ${goal.goalId} FILE`
      return yield* Effect.never
    }
    yield* goal.around.crew.recovered
    const workers = yield* goal.members
    const door = { workers: workers.map(({ agent }) => agent), known: goal.book.used }
    const tasks = yield* asks(goal, entered, planner, {
      key: "decompose",
      text: Planner.decompose(goal.book, workers),
      read: (output) =>
        Effect.filterOrFail(
          Planner.read(output, door),
          (found) => found.length > 0,
          () => ({ message: "tasks: holds no task" })
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
    if (goal.book.revise !== null && planner !== null) {
      yield* goal.around.crew.recovered
      const workers = yield* goal.members
      const door = { workers: workers.map(({ agent }) => agent), known: goal.book.known }
      const added = yield* asks(goal, entered, planner, {
        key: "revise",
        text: Planner.revise(goal.book, workers),
        read: (output) => Planner.read(output, door)
      })
      if (added._tag === "Failure") return yield* giveUp(goal, added.failure)
      yield* goal.enterRevision(added.success)
    }
    if (autoStart) return yield* goal.moveIfStill({ _tag: "auto_start" })
    goal.detail = `its plan of ${goal.book.plan.size === 1 ? "1 task" : `${goal.book.plan.size} tasks`} waits for approval: agentd goal approve ${goal.goalId}`
    return yield* Effect.never
  })

/** What the newest tasks show for themselves, from the log. */
const evidenceOf = Effect.fnUntraced(function* (goal: GoalActor) {
  const shown = new Map<string, Evidence>()
  const done = goal.book.plan.nodes
    .filter(({ result }) => result !== null)
    .toSorted((a, b) => b.result!.eventId - a.result!.eventId)
    .slice(0, MAX_EVIDENCE)
  for (const { result, task } of done) {
    const rune = yield* goal.around.log.get(result!.eventId)
    const evidence = rune?.payload["evidence"]
    if (typeof evidence === "object" && evidence !== null) shown.set(task.id, evidence as Evidence)
  }
  return shown
})

const isError = ({ severity }: Finding): boolean => severity === "error"

/** The checks, then the critic where they found no error. */
const examine = Effect.fnUntraced(function* (goal: GoalActor, entered: Entered) {
  const { checks, checkTimeout, critic, target } = goal.options
  const project = yield* goal.around.project
  goal.detail = checks.length === 0 ? "its result is looked at" : `its checks run: ${checks.join(", ")}`
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
          plan: goal.book.plan,
          followed: goal.book.followed,
          goal: goal.book.goal,
          checks,
          timeout: checkTimeout,
          root: project.root,
          target,
          scratch: goal.scratch,
          store: goal.around.store,
          environment: goal.around.environment
        })
  if (critic === null || gate.some(isError)) return gate
  const member = (yield* goal.around.crew.members(goal.around.conversation)).find(({ agent }) => agent === critic)
  if (member?.spent === true) return "spent"
  const found = yield* asks(goal, entered, critic, {
    key: "review",
    text: Critic.review(goal.book, yield* evidenceOf(goal), gate),
    read: Critic.read
  })
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
    yield* goal.around.crew.recovered
    if (goal.book.reviewed < entered.cause.eventId) {
      const findings = yield* examine(goal, entered)
      if (findings === "spent") {
        const reason = `the budget of ${goal.options.critic} is spent`
        return yield* goal.moveIfStill({ _tag: "budget_exhausted", reason })
      }
      yield* goal.move({ _tag: "critique", findings: Critic.bounded(findings) })
    }
    const workers = (yield* goal.members).map(({ agent }) => agent)
    const { data } = goal.stand
    const verdict = Critic.verdict(goal.book, goal.book.findings, data.rounds + 1, workers)
    switch (verdict._tag) {
      case "Passed":
        return yield* goal.moveIfStill({ _tag: "critique_passed", summary: verdict.summary })
      case "Replan":
        return yield* goal.moveIfStill({ _tag: "needs_replan", reason: verdict.reason })
      case "Issues":
        return yield* goal.moveIfStill({ _tag: "critique_found_issues", tasks: verdict.tasks })
    }
  })

/** Whether a task could be given out now. */
const canGoOn = Effect.fnUntraced(function* (goal: GoalActor) {
  const { data } = goal.stand
  if (data.rounds >= data.maxRounds) return false
  goal.book.plan.advance(yield* goal.now)
  const { _tag } = decide(goal.book.plan, goal.workersOf(yield* goal.members))
  return _tag === "Assign" || _tag === "Wait" || _tag === "Done"
})

const watch = (goal: GoalActor) =>
  Effect.fnUntraced(function* ({ snapshot }: Entered) {
    yield* goal.around.crew.recovered
    const { blockedTimeout } = goal.options
    const began = yield* goal.now
    // a clock that was set back must not make it wait for ever
    const until = Math.min(snapshot.at + blockedTimeout, began + blockedTimeout)
    const { data } = snapshot
    const again = data.rounds >= data.maxRounds || goal.book.plan.counts.failed > 0
    goal.detail = `it waits: ${data.reason ?? "it is blocked"}${again ? `. Let it go on: agentd goal retry ${goal.goalId}` : ""}`
    for (;;) {
      if (yield* canGoOn(goal)) {
        return yield* goal.moveIfStill({ _tag: "dependency_resolved", reason: "a task can be worked on again" })
      }
      const now = yield* goal.now
      if (now >= until) {
        const reason = `nobody resolved it in time: ${snapshot.data.reason ?? "it is blocked"}`
        return yield* goal.moveIfStill({ _tag: "unresolvable", reason })
      }
      yield* goal.news(until - now)
    }
  })

/** After what went wrong here. */
const STUMBLED: Backoff.Policy = { base: 1_000, factor: 2, cap: 60_000, jitter: 0 }

/**
 * What goes wrong in a goal is that goal's own: it is said, and tried again after a while. A log
 * that takes nothing more of it (its conversation is closed) ends it; one that fails is everybody's.
 */
const contained =
  <E, R>(goal: GoalActor, activity: (entered: Entered) => Effect.Effect<void, E, R>) =>
  (entered: Entered): Effect.Effect<void, StorageError, R> => {
    const attempt = (n: number): Effect.Effect<void, StorageError, R> =>
      Effect.catchCause(Effect.andThen(goal.settled, activity(entered)), (cause) => {
        const error = Cause.squash(cause)
        if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
        if (error instanceof StorageError) return Effect.fail(error)
        goal.detail = `it cannot go on: ${error instanceof Error ? error.message : String(error)}`
        const then =
          error instanceof RuneRefused
            ? Effect.never
            : Effect.andThen(Effect.sleep(Backoff.wait(STUMBLED, n)), attempt(n + 1))
        return Effect.andThen(Effect.logError(`${goal.goalId}: ${goal.detail}`, cause), then)
      })
    return attempt(1)
  }

/** Of one goal, by the names in the machine's table. */
export const of = (goal: GoalActor) => ({
  DecomposeGoal: contained(goal, decompose(goal)),
  RefinePlan: contained(goal, refine(goal)),
  ScheduleTasks: contained(goal, () => Effect.suspend(() => new Executing(goal).run)),
  ReviewPlan: contained(goal, review(goal)),
  WatchDependencies: contained(goal, watch(goal))
})

/** What a goal that has ended leaves behind is taken away: its actor may be gone before it has taken back all tasks. */
export const tidy = Effect.fnUntraced(function* (goal: GoalActor) {
  yield* goal.silence
  yield* goal.cancelTasks(Object.keys(goal.stand.data.inFlight))
  const project = yield* goal.around.project
  if (project !== undefined) yield* ReviewGate.clear(project.root, goal.scratch)
})
