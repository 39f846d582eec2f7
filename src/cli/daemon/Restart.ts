/**
 * `agentd restart`: stops the daemon gracefully and starts it again. Runs that the keeper manages continue during the
 * restart. Other runs end with the daemon, and their turns start again after the restart; so the command asks for
 * confirmation first.
 */
import { Clock, Console, Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import { confirm } from "../parse/Confirm.ts"
import * as DaemonLife from "./DaemonLife.ts"
import { Invocation } from "../parse/Invocation.ts"
import { startDaemon } from "./Start.ts"
import * as WayBack from "./WayBack.ts"

const MAX_NAMES = 20
const LOOK = "1 second"

const busy = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const rows = yield* call(paths.socket, (client) => client.Agents())
  return rows.filter((row) => row.busy === true)
})

type Rows = Effect.Success<typeof busy>

const namesOf = (rows: Rows, most: number): string => {
  const names = rows.slice(0, most).map(({ agent, project }) => `${project}/${agent}`)
  const more = rows.length - names.length
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`
}

/** A sentence that names the agents whose turns a restart would interrupt; undefined if there are none. */
const cutShort = Effect.map(busy, (rows) => {
  const cut = rows.filter(({ outlives = true }) => !outlives)
  if (cut.length === 0) return undefined
  const who = cut.length === 1 ? "agent is" : "agents are"
  return `${cut.length} ${who} in a turn that the restart interrupts; the turn then begins again: ${namesOf(cut, MAX_NAMES)}.`
})

const ask = Effect.fnUntraced(function* (yes: boolean) {
  if (yes) return
  const fact = yield* cutShort
  if (fact !== undefined) yield* confirm(yes, fact, "Restart the daemon?")
})

/** Waits until no agent has an unfinished turn. */
const drained = Effect.gen(function* () {
  let told = 0
  for (let left = yield* busy; left.length > 0; left = yield* busy) {
    if (left.length !== told) {
      yield* Console.error(
        `Waiting for ${left.length === 1 ? "1 agent" : `${left.length} agents`} to end the current turn: ${namesOf(left, 5)}`
      )
    }
    told = left.length
    yield* Effect.sleep(LOOK)
  }
})

export const run = Effect.fnUntraced(function* ({ drain, yes }: { readonly drain: boolean; readonly yes: boolean }) {
  const { json, paths } = yield* Invocation
  const began = yield* Clock.currentTimeMillis
  const live = (yield* probe(paths.socket)) === "live" || (yield* DaemonLife.comesBack(paths, json)) !== undefined
  if (live) {
    yield* DaemonLife.checkStart
    yield* drain ? drained : ask(yes)
    const before = yield* WayBack.checked
    yield* DaemonLife.stop("agentd restart", true)
    yield* WayBack.started(before, began)
  }
  yield* startDaemon(live ? "restarted" : "started", began)
})
