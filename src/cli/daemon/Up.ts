/**
 * `agentd up`: runs the daemon in the foreground until it is stopped.
 *
 * On a terminal, a changed config is shown, and a dangerous change needs the user's approval. Without a terminal, the
 * change waits for approval, because a service manager might have started this process while no user is present.
 */
import { Console, Effect } from "effect"
import { Prompt } from "effect/cli"
import { checkLength } from "../../api/rpc/Endpoint.ts"
import type { ConfigChangeInfo } from "../../domain/Messages.ts"
import * as ConfigRows from "../projects/ConfigRows.ts"
import { credentials } from "../setup/Credentials.ts"
import { Entry, hint, Invocation, printLines } from "../parse/Invocation.ts"
import { unregistered } from "../parse/MisnamedConfig.ts"
import { supported } from "../parse/PlatformCheck.ts"

export const run = Effect.fnUntraced(function* () {
  const { caller, colour, columns, interactive, paths } = yield* Invocation
  const { daemon, env } = yield* Entry
  yield* supported
  yield* checkLength(paths.socket)
  // print this only on a terminal: under a service manager, the output should contain only errors
  if (columns !== null) {
    yield* Console.log(
      yield* hint("The daemon runs here until Ctrl-C. In another terminal: agentd ps, agentd ps --watch")
    )
    if (caller.config === null) yield* Console.log(yield* hint(yield* unregistered))
  }
  const context = yield* Effect.context<Invocation | Prompt.Environment>()
  const agrees = (change: ConfigChangeInfo) =>
    Effect.gen(function* () {
      yield* printLines(ConfigRows.change(change, colour))
      if (!change.consequences.some(({ dangerous }) => dangerous)) return true
      return yield* Prompt.run(Prompt.Confirm({ message: "Put this change into force?", initial: false }))
    }).pipe(
      Effect.provide(context),
      Effect.orElseSucceed(() => false)
    )
  yield* daemon({
    state: paths.state,
    socket: paths.socket,
    userConfig: paths.userConfig,
    environment: { ...(yield* credentials(env["CREDENTIALS_DIRECTORY"])), ...env },
    ...(caller.config === null ? {} : { config: caller.config }),
    ...(interactive ? { agrees } : {})
  })
})
