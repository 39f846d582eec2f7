/**
 * `agentd restart`: the daemon, ended in order and started again. Runs that the keeper holds go on meanwhile; a turn of
 * an agent whose run ends with the daemon is cut short and offered again, which a person is asked about first.
 */
import { Clock, Console, Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { probe } from "../rpc/Endpoint.ts"
import { confirm } from "./Confirm.ts"
import * as DaemonLife from "./DaemonLife.ts"
import { Invocation } from "./Invocation.ts"
import { startDaemon } from "./Start.ts"

/** Backends whose runs end with their daemon. */
const ENDING = new Set(["model"])
const LOOK = "1 second"

const busy = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const rows = yield* call(paths.socket, (client) => client.Agents())
  return rows.filter((row) => row.busy === true)
})

const ask = Effect.fnUntraced(function* (yes: boolean) {
  if (yes) return
  const cut = (yield* busy).filter(({ backend }) => ENDING.has(backend)).length
  if (cut === 0) return
  const fact = `${cut} ${cut === 1 ? "agent is" : "agents are"} in the midst of a turn that ends with the daemon, and is begun again after it.`
  yield* confirm(yes, fact, "Restart the daemon?")
})

/** Returns when no agent is in the midst of a turn. */
const drained = Effect.gen(function* () {
  let told = 0
  for (let left = yield* busy; left.length > 0; left = yield* busy) {
    if (left.length !== told) {
      const names = left.map(({ agent, project }) => `${project}/${agent}`).slice(0, 5)
      yield* Console.error(`Waiting for ${left.length} to end their turns: ${names.join(", ")}`)
    }
    told = left.length
    yield* Effect.sleep(LOOK)
  }
})

export const run = Effect.fnUntraced(function* ({ drain, yes }: { readonly drain: boolean; readonly yes: boolean }) {
  const { paths } = yield* Invocation
  const began = yield* Clock.currentTimeMillis
  const live = (yield* probe(paths.socket)) === "live"
  if (live) {
    yield* drain ? drained : ask(yes)
    yield* DaemonLife.stop("agentd restart", true)
  }
  yield* startDaemon(live ? "restarted" : "started", began)
})
