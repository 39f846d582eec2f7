/** FailureOutput: prints an error of the whole program as two lines or as JSON, and returns the exit code for it. */
import { Cause, Config, Console, Effect } from "effect"
import { explain, told } from "../render/ErrorText.ts"
import * as HintCommand from "./HintCommand.ts"

const debug = Config.Boolean("AGENTD_DEBUG").pipe(
  Config.withDefault(false),
  Effect.orElseSucceed(() => false)
)

/**
 * Prints the error in a cause. `world`: state directory that commands in the remedy must name; null for the default
 * one.
 */
export const reported = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>, world: string | null, json: boolean) {
  const explanation = explain(Cause.squash(cause))
  const remedy = HintCommand.inWorld(explanation.remedy, world)
  yield* Console.error(told({ ...explanation, remedy }, json))
  if (yield* debug) yield* Console.error(Cause.pretty(cause))
  return explanation.exitCode
})
