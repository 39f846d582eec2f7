/** OnGoals: what people ask of goals, and what they do beside the agents in the checkout. */
import { Effect, Exit } from "effect"
import type { GoalInfo } from "../../../src/domain/GoalMessages.ts"
import { type Caller, CommandRefused } from "../../../src/domain/Messages.ts"
import { caller } from "../Daemon.ts"
import type { Order, Orders } from "./Order.ts"

/** A goal that stands there, as people look before they ask; sometimes one of the first, which may not be there. */
const goalOf = ({ people, world }: Order, ...states: ReadonlyArray<string>) => {
  const { goals } = world.checker
  const first = `g${1 + people.below(Math.max(1, Math.min(6, goals.newest + 1)))}`
  const standing = goals.standing(...states)
  return { name: standing.length > 0 && people.is(0.7) ? people.pick(standing) : first, caller }
}

const submit = (withPlan: boolean) => (order: Order) => {
  const { client, people, run, world } = order
  const { workshop } = world
  const word = `goal-${world.token().slice(1)}`
  const plan = withPlan && workshop !== undefined ? workshop.plan(people, true) : null
  const request = {
    goal: `[${word}] build it`,
    plan,
    ...(people.is(0.3) ? { autoStart: people.is(0.5) } : {}),
    ...(people.is(0.2) ? { checks: people.is(0.5) ? [] : ["test", "lint"] } : {}),
    ...(people.is(0.2) ? { rounds: 1 } : {}),
    ...(people.is(0.2) ? { target: people.is(0.8) ? "main" : "none" } : {}),
    ...(people.is(0.1) ? { planner: "nobody" } : {})
  }
  run(client.GoalSubmit({ request, caller }), (exit) => {
    if (Exit.isSuccess(exit)) world.checker.goals.acked(word, exit.value.eventId)
  })
}

/** Acknowledged by a rune: that one is durable. */
const durable =
  ({ world }: Order, what: string) =>
  (exit: Exit.Exit<{ readonly eventId: number }, unknown>) => {
    if (Exit.isSuccess(exit)) world.checker.goals.durable(what, exit.value.eventId)
  }

/** Merges as the verb does: into a branch that is checked out, the person's git merges, where the checkout is clean. */
const merge = (
  { client, world }: Order,
  asked: { readonly name: string; readonly into: string | null; readonly unreviewed: boolean; readonly all: boolean }
) =>
  Effect.gen(function* () {
    const first = yield* client.GoalMerge({ ...asked, caller })
    if (first.toCheckout === undefined) return first
    const { commit, folder, from } = first.toCheckout
    if (world.workshop?.git.fastForward(folder, commit) !== true)
      return yield* new CommandRefused({
        code: "conflict",
        message: `git did not merge in ${folder}`,
        remedy: "Merge again."
      })
    const done = yield* client.GoalMerge({ ...asked, caller, done: { from, commit } })
    return { ...done, results: first.results }
  })

/** Approves the plan that is shown, as the verb does. */
const approve = ({ client }: Order, of: { readonly name: string; readonly caller: Caller }) =>
  Effect.flatMap(client.GoalAsked({ ...of, from: 0 }), ({ hash }) => client.GoalApprove({ ...of, hash }))

/** Helps a goal that waits for a person, as one does who looks after everybody. */
const helped = (order: Order, { goalId, options, state }: GoalInfo) => {
  const { client, people, world } = order
  const of = { name: goalId, caller }
  if (state === "planning") return Effect.ignore(approve(order, of))
  if (state === "blocked") return Effect.ignore(client.GoalRetry({ ...of, task: null }))
  if (state === "goal_received" && options.planner === null && world.workshop !== undefined)
    return Effect.ignore(client.GoalPlan({ ...of, path: world.workshop.plan(people, false) }))
  if (state === "goal_met" && !world.checker.goals.isMerged(goalId))
    return merge(order, { ...of, into: null, unreviewed: false, all: true }).pipe(
      Effect.matchEffect({
        onFailure: () => Effect.void,
        onSuccess: (reply) => Effect.sync(() => world.checker.goals.merged(goalId, reply))
      })
    )
  return Effect.void
}

export const onGoals = {
  goalNew: submit(false),
  goalNewPlan: submit(true),
  goalPlan: (order) => {
    const { client, people, run, world } = order
    const path = world.workshop?.plan(people, true) ?? "/none"
    run(
      client.GoalPlan({ ...goalOf(order, "goal_received"), path: people.is(0.9) ? path : "/home/ada/none" }),
      durable(order, "plan")
    )
  },
  goalApprove: (order) => order.run(approve(order, goalOf(order, "planning")), durable(order, "approve")),
  goalReject: (order) =>
    order.run(
      order.client.GoalReject({ ...goalOf(order, "planning"), reason: "other words" }),
      durable(order, "reject")
    ),
  goalCancel: (order) => {
    order.run(
      order.client.GoalCancel({
        ...goalOf(order, "goal_received", "planning", "executing", "reviewing", "blocked"),
        reason: ""
      }),
      durable(order, "cancel")
    )
  },
  goalRetry: (order) => {
    const { client, people, run } = order
    run(
      client.GoalRetry({ ...goalOf(order, "blocked"), task: people.is(0.8) ? null : "p1-0" }),
      durable(order, "retry")
    )
  },
  goalMerge: (order) => {
    const { people, run, world } = order
    const of = goalOf(order, "goal_met")
    const how = { into: people.is(0.8) ? null : "main", unreviewed: people.is(0.2), all: people.is(0.6) }
    run(merge(order, { ...of, ...how }), (exit) => {
      if (Exit.isSuccess(exit)) world.checker.goals.merged(of.name, exit.value)
    })
  },
  goalShow: (order) => {
    const { client, run, world } = order
    run(client.Goal({ ...goalOf(order, "executing", "reviewing", "goal_met"), from: 0 }), (exit) => {
      if (Exit.isSuccess(exit)) world.checker.goals.shown(exit.value, false)
    })
  },
  goals: (order) => {
    const { client, people, run, world } = order
    run(client.Goals({ all: people.is(0.5), caller }), (exit) => {
      if (Exit.isSuccess(exit)) for (const goal of exit.value) world.checker.goals.listed(goal)
    })
  },
  desk: ({ people, then, world }) => {
    if (people.is(0.6)) world.workshop?.write(people)
    else world.workshop?.commit()
    then(true)
  },
  /** After everybody: a goal that waits for a person goes on, and what is met is merged. */
  goalTend: (order) => {
    const { client, run, world } = order
    world.workshop?.commit()
    run(
      Effect.flatMap(client.Goals({ all: false, caller }), (goals) =>
        Effect.forEach(goals, (goal) => {
          world.checker.goals.listed(goal)
          return helped(order, goal)
        })
      )
    )
  }
} satisfies Orders

export const GOAL_COMMANDS = Object.keys(onGoals) as ReadonlyArray<keyof typeof onGoals>
