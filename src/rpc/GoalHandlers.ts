/**
 * GoalHandlers: what each procedure on goals does.
 */
import { Effect } from "effect"
import { MAX_CHECKS } from "../config/GoalConfig.ts"
import type { GoalRequest } from "../domain/GoalMessages.ts"
import { type Caller, CommandRefused } from "../domain/Messages.ts"
import { Goals } from "../goals/Goals.ts"
import { Admission } from "./Admission.ts"
import { group } from "./GoalProtocol.ts"
import { bounded, checkCaller, checkNamed, checkText } from "./Inputs.ts"
import { Limits } from "./Procedure.ts"

const MAX_ROUNDS = 100
const MAX_CHECK = 4_096

const refuse = (message: string, remedy: string) => new CommandRefused({ message, remedy })

const checkRequest = Effect.fnUntraced(function* (request: GoalRequest) {
  yield* checkText(request.goal, "goal")
  yield* bounded("plan", request.plan ?? "", Limits.pathLength)
  for (const field of ["planner", "critic", "target"] as const) {
    yield* bounded(field, request[field] ?? "", Limits.nameLength)
  }
  const checks = request.checks ?? []
  if (checks.length > MAX_CHECKS) {
    return yield* refuse(`checks has ${checks.length} entries and may have ${MAX_CHECKS}.`, "Put them into a script.")
  }
  for (const check of checks) {
    yield* bounded("check", check, MAX_CHECK)
    if (check.trim() === "") return yield* refuse("check is empty.", "Give a command, or leave it out.")
  }
  const { rounds = 1 } = request
  if (rounds < 1 || rounds > MAX_ROUNDS) {
    return yield* refuse(
      `rounds is ${rounds} and must lie between 1 and ${MAX_ROUNDS}.`,
      "Leave it out for the default."
    )
  }
})

export const layer = group.toLayer(
  Effect.gen(function* () {
    const admit = yield* Admission
    const goals = yield* Goals

    const ask = <A, E>(
      check: Effect.Effect<unknown, CommandRefused>,
      run: (keeper: Goals["Service"]) => Effect.Effect<A, E>
    ) =>
      admit.call(
        Effect.andThen(
          check,
          Effect.suspend(() => run(goals))
        )
      )
    const on = <A, E>(
      input: { readonly name: string; readonly caller: Caller; readonly reason?: string },
      run: (goals: Goals["Service"]) => Effect.Effect<A, E>
    ) => ask(Effect.andThen(checkNamed(input), bounded("reason", input.reason ?? "", Limits.reasonLength)), run)

    return group.of({
      GoalSubmit: ({ caller, request }) =>
        ask(Effect.andThen(checkCaller(caller), checkRequest(request)), (goals) => goals.submit(request, caller)),
      Goals: ({ all, caller }) => ask(checkCaller(caller), (goals) => goals.list({ all }, caller)),
      Goal: (input) => on(input, (goals) => goals.page(input.name, Math.max(0, input.from), input.caller)),
      GoalPlan: (input) =>
        ask(Effect.andThen(checkNamed(input), bounded("path", input.path, Limits.pathLength)), (goals) =>
          goals.plan(input.name, input.path, input.caller)
        ),
      GoalApprove: (input) => on(input, (goals) => goals.approve(input.name, input.caller)),
      GoalReject: (input) => on(input, (goals) => goals.reject(input.name, input.reason, input.caller)),
      GoalCancel: (input) => on(input, (goals) => goals.cancel(input.name, input.reason, input.caller)),
      GoalRetry: (input) =>
        ask(Effect.andThen(checkNamed(input), bounded("task", input.task ?? "", Limits.nameLength)), (goals) =>
          goals.retry(input.name, input.task, input.caller)
        ),
      GoalMerge: (input) =>
        ask(Effect.andThen(checkNamed(input), bounded("into", input.into ?? "", Limits.nameLength)), (goals) =>
          goals.merge(input.name, { into: input.into, unreviewed: input.unreviewed, all: input.all }, input.caller)
        )
    })
  })
)
