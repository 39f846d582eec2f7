/** Answers: what the daemon answers to those who ask, as the world reads it. */
import { Cause, Effect, Exit } from "effect"
import { caller, type Up } from "./Daemon.ts"
import { refusalOf } from "./Refusals.ts"

/** Asks for each goal's page. */
export const everyGoal = ({ client }: Up) =>
  Effect.flatMap(client.Goals({ all: true, caller }), (goals) =>
    Effect.forEach(goals, ({ conversation, goalId }) =>
      client.Goal({ name: `${conversation}/${goalId}`, from: 0, caller })
    )
  )

/** By which refusals it failed. */
export const refusalsIn = (exit: Exit.Exit<unknown, unknown>): ReadonlyArray<string> =>
  Exit.isSuccess(exit)
    ? []
    : exit.cause.reasons.flatMap((reason) =>
        reason._tag === "Fail" && reason.error instanceof Error ? [refusalOf(reason.error.message)] : []
      )

/** Why it failed, in a line. */
export const reasonOf = (exit: Exit.Exit<unknown, unknown>): string =>
  // the first line: where it was thrown is another place in each build
  Exit.isFailure(exit) ? Cause.pretty(exit.cause).split("\n", 1)[0]! : "ok"
