/**
 * `agentd stop`: the daemon, in order; while agents work a person is asked first,
 * and a script has to say --yes.
 */
import { Effect, Option } from "effect"
import { probe } from "../rpc/Endpoint.ts"
import * as Unit from "../systemd/Unit.ts"
import { unitName } from "../systemd/Unit.ts"
import { confirm } from "./Confirm.ts"
import * as DaemonLife from "./DaemonLife.ts"
import { hint, Invocation, print } from "./Invocation.ts"

/** States in which a run is alive. */
const WORKING = new Set(["Spawning", "Running", "Interrupting"])

/** Fails unless nobody works, or the answer is yes. */
const ask = Effect.fnUntraced(function* (yes: boolean) {
  const { paths } = yield* Invocation
  if (yes) return
  const { states } = yield* DaemonLife.status(paths.socket)
  const working = states.filter(({ state }) => WORKING.has(state)).reduce((sum, { agents }) => sum + agents, 0)
  if (working === 0) return
  const fact = `${working} ${working === 1 ? "agent works" : "agents work"}; each run is ended and taken up again after the next start.`
  yield* confirm(yes, fact, "Stop the daemon?")
})

/** A daemon that died a moment ago comes back by itself, unless systemd is told. */
const stopReturn = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const unit = unitName(paths.state, paths.defaultState)
  const status = yield* Unit.status(unit)
  if (Option.isNone(status) || status.value.state !== "activating") return false
  yield* Unit.stop(unit)
  yield* print({ unit }, () => [`The daemon had died; systemd does not start ${unit} again now.`])
  return true
})

export const run = Effect.fnUntraced(function* ({ yes }: { readonly yes: boolean }) {
  const { paths } = yield* Invocation
  if ((yield* probe(paths.socket)) !== "live" && (yield* stopReturn)) return
  yield* ask(yes)
  const stopped = yield* DaemonLife.stop("agentd stop")
  const told = yield* hint(
    `The daemon has stopped (pid ${stopped.pid}). What should run runs again after: agentd start`
  )
  const { returnsBy } = stopped
  yield* print({ ...stopped, returnsBy: returnsBy ?? null }, () => [
    told,
    ...(returnsBy === undefined
      ? []
      : [`systemd listens on: the next command starts it again. To keep it stopped: sudo systemctl stop ${returnsBy}`])
  ])
})
