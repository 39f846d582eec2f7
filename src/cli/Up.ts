/** `agentd up`: the daemon in the foreground, until it is stopped. */
import { Console, Effect } from "effect"
import { checkLength } from "../rpc/Endpoint.ts"
import { Entry, hint, Invocation } from "./Invocation.ts"

export const run = Effect.fnUntraced(function* () {
  const { caller, columns, paths } = yield* Invocation
  const { daemon, env } = yield* Entry
  yield* checkLength(paths.socket)
  // Whoever sees it start is told what to do beside it; a service manager keeps what goes wrong only.
  if (columns !== null) {
    yield* Console.log(yield* hint("agentd runs here until Ctrl-C. In another terminal: agentd ps, agentd watch"))
  }
  yield* daemon({
    state: paths.state,
    socket: paths.socket,
    userConfig: paths.userConfig,
    environment: env,
    ...(caller.config === null ? {} : { config: caller.config })
  })
})
