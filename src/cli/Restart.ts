/** `agentd restart`: the daemon, ended in order and started again. */
import { Effect } from "effect"
import { probe } from "../rpc/Endpoint.ts"
import * as DaemonLife from "./DaemonLife.ts"
import { Invocation } from "./Invocation.ts"
import { startDaemon } from "./Start.ts"
import { ask } from "./Stop.ts"

export const run = Effect.fnUntraced(function* ({ yes }: { readonly yes: boolean }) {
  const { paths } = yield* Invocation
  const live = (yield* probe(paths.socket)) === "live"
  if (live) {
    yield* ask(yes, "Restart")
    yield* DaemonLife.stop("agentd restart")
  }
  yield* startDaemon(live ? "restarted" : "started")
})
