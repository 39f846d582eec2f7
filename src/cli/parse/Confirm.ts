/**
 * Confirm: asks a person before an action that cannot be undone.
 *
 * Guarantees: without a terminal, nothing is done unless --yes was passed: a script
 * without it exits with the code for wrong usage, and has changed nothing.
 */
import { Console, Effect } from "effect"
import { Prompt } from "effect/cli"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation } from "./Invocation.ts"

/** Returns if the answer is yes; else fails. */
export const confirm = Effect.fnUntraced(function* (
  yes: boolean,
  /** Consequence of the action, shown before the question. */
  fact: string,
  question: string,
  /** Remedy for a script, in which nobody can be asked. */
  remedy = "Give --yes to do it without confirmation."
) {
  const { interactive } = yield* Invocation
  if (yes) return
  if (!interactive) {
    return yield* new VerbFailed({
      message: `${fact} This is not a terminal, so nothing was done.`,
      remedy,
      exitCode: ExitCode.usage
    })
  }
  yield* Console.error(fact)
  if (yield* Prompt.run(Prompt.Confirm({ message: question, initial: false }))) return
  return yield* new VerbFailed({
    message: "Nothing was done.",
    remedy: `Answer yes. ${remedy}`,
    exitCode: ExitCode.failed
  })
})
