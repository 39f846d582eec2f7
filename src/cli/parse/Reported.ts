/** Reported: a failure of the whole program, told in two lines or as JSON, with the exit code that it comes to. */
import { Cause, Config, Console, Effect } from "effect"
import { explain, told } from "../render/Explanation.ts"
import * as Hint from "./Hint.ts"

const debug = Config.Boolean("AGENTD_DEBUG").pipe(
  Config.withDefault(false),
  Effect.orElseSucceed(() => false)
)

/** `world`: the folder that commands have to name. */
export const reported = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>, world: string | null, json: boolean) {
  const explanation = explain(Cause.squash(cause))
  const remedy = Hint.inWorld(explanation.remedy, world)
  yield* Console.error(told({ ...explanation, remedy }, json))
  if (yield* debug) yield* Console.error(Cause.pretty(cause))
  return explanation.exitCode
})
