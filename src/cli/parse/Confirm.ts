/**
 * Confirm: asks the user before an action that cannot be undone.
 *
 * Guarantees: without a terminal, nothing is done unless --yes was passed. A script without --yes exits with the code
 * for a usage error.
 */
import { Console, Effect } from "effect"
import { Prompt } from "effect/cli"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation } from "./Invocation.ts"

/** Asks the user. Returns if `yes` is set or if the user agrees; otherwise fails. */
export const confirm = Effect.fnUntraced(function* (
  yes: boolean,
  /** Consequence of the action, which is shown before the question. */
  fact: string,
  question: string,
  /** Remedy in the error if the user cannot be asked, as in a script. */
  remedy = "Pass --yes to do it without confirmation."
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
