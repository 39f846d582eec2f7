/**
 * Confirm: the question before what cannot be taken back.
 *
 * Guarantees: without a terminal nothing is done unless --yes was given: a script
 * that forgot it ends with the exit code of a wrong use, and has changed nothing.
 */
import { Console, Effect } from "effect"
import { Prompt } from "effect/cli"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation } from "./Invocation.ts"

/** Returns when the answer is yes. */
export const confirm = Effect.fnUntraced(function* (
  yes: boolean,
  /** The consequence of the action. */
  fact: string,
  question: string,
  /** The remedy for a script, which nobody can be asked in. */
  remedy = "Give --yes to do it without being asked."
) {
  const { interactive } = yield* Invocation
  if (yes) return
  if (!interactive) {
    return yield* new VerbFailed({
      message: `${fact} Nobody is here to be asked, so nothing was done.`,
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
