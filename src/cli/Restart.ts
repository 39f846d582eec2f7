/** `agentd restart`: the daemon; `agentd restart AGENT`: one agent, with fresh counters. */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { probe } from "../rpc/Endpoint.ts"
import * as DaemonLife from "./DaemonLife.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"
import { startDaemon } from "./Start.ts"
import { ask } from "./Stop.ts"

const restartAgent = Effect.fnUntraced(function* (name: string) {
  const { caller, paths } = yield* Invocation
  const done = yield* call(paths.socket, (client) => client.Restart({ name, caller }))
  yield* print(done, () => [plain(done.message)])
})

const restartDaemon = Effect.fnUntraced(function* (yes: boolean) {
  const { paths } = yield* Invocation
  const live = (yield* probe(paths.socket)) === "live"
  if (live) {
    yield* ask(yes, "Restart")
    yield* DaemonLife.stop("agentd restart")
  }
  yield* startDaemon(live ? "restarted" : "started")
})

export const run = Effect.fnUntraced(function* (input: { readonly agent: string | undefined; readonly yes: boolean }) {
  if (input.agent === undefined) yield* restartDaemon(input.yes)
  else yield* restartAgent(input.agent)
})
