/** `agentd up`: the daemon in the foreground, until it is stopped. */
import { Effect } from "effect"
import { checkLength } from "../control/Endpoint.ts"
import { Entry, Invocation } from "./Invocation.ts"

export const run = Effect.fnUntraced(function* () {
  const { caller, paths } = yield* Invocation
  const { daemon, env } = yield* Entry
  yield* checkLength(paths.socket)
  yield* daemon({
    state: paths.state,
    socket: paths.socket,
    userConfig: paths.userConfig,
    environment: env,
    ...(caller.config === null ? {} : { config: caller.config })
  })
})
