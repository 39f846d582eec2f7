/**
 * `agentd goal TEXT --wait`: submits a goal, waits for its end, and exits with a code for the outcome: 0 if the goal is
 * met, 1 if it stopped, 5 if it needs the user.
 */
import { Console, Effect } from "effect"
import type { GoalPage } from "../../domain/GoalMessages.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { answers } from "../parse/Asking.ts"
import type { Input as Given } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { goal } from "./Goal.ts"
import { ends, outcome, watching } from "./GoalWatch.ts"
import { hint, Invocation } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"
import { textOf } from "../parse/StandardInput.ts"

type Input = Given<typeof goal.args>

const asks = ({ goal }: GoalPage): boolean => goal.word === "needs you"

const undecided = ({ goal: { behind, detail, goalId, state } }: GoalPage) =>
  new VerbFailed({
    message: `${goalId} waits for you: ${detail === "" ? state : detail}`,
    remedy: `${state === "planning" && behind === undefined ? `Review its plan: agentd goal approve ${goalId}` : `See why: agentd goal show ${goalId}`}. Then continue to wait: agentd goal watch ${goalId}`,
    exitCode: ExitCode.undecided
  })

export const run = Effect.fnUntraced(function* (given: Input) {
  const { caller, json, paths } = yield* Invocation
  const input = given.text === "-" ? { ...given, text: yield* textOf("-", "goal") } : given
  const wrong = goal.wrong?.(input, caller)
  if (wrong !== undefined) return yield* new VerbFailed(wrong)
  const { goalId, message } = yield* call(paths.socket, (client) =>
    answers(client, goal.rpc(input, caller, { now: 0 }))
  )
  if (!json) yield* Console.log(yield* hint(plain(message)))
  const page = yield* watching(goalId, (page) => ends(page) || asks(page))
  if (asks(page)) return yield* undecided(page)
  yield* outcome(page)
})
