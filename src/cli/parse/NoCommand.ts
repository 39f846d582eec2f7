/** `agentd` without a command: opens the board on a terminal; otherwise prints the help. */
import { Effect } from "effect"
import { CliError } from "effect/cli"
import { Invocation } from "./Invocation.ts"

export const run = Effect.fnUntraced(function* () {
  const { columns, interactive } = yield* Invocation
  if (columns === null || !interactive) return yield* new CliError.ShowHelp({ commandPath: ["agentd"], errors: [] })
  const board = yield* Effect.promise(() => import("../tui/BoardScreen.ts"))
  return yield* board.run({ bell: false, notify: false })
})
