/**
 * StatusLine: keeps the status line up to date that `systemctl status` shows for the daemon, such as "3 agents, 2 at
 * work, 1 needs you".
 *
 * Guarantees: the line is sent when it changes, but at most once every few seconds. If the status cannot be read, the
 * line stays unchanged.
 */
import { Effect, Ref } from "effect"
import { Agents } from "../projects/service/Agents.ts"
import { counted } from "../domain/ErrorLimit.ts"
import { listing } from "../api/rpc/DaemonQueries.ts"
import { Notify } from "../systemd/Notify.ts"

const LOOK = "5 seconds"

/** The status line. `needs`: number of items that wait for a user. */
export const text = (of: { readonly agents: number; readonly busy: number; readonly needs: number }): string =>
  [
    counted(of.agents, "agent"),
    ...(of.busy === 0 ? [] : [`${of.busy} at work`]),
    ...(of.needs === 0 ? [] : [of.needs === 1 ? "1 needs you" : `${of.needs} need you: agentd waiting`])
  ].join(", ")

export const follow = Effect.gen(function* () {
  const agents = yield* Agents
  const notify = yield* Notify
  const told = yield* Ref.make("")
  const look = Effect.gen(function* () {
    const rows = yield* agents.all
    const { more, rows: matters } = yield* listing
    const busy = rows.filter((row) => row.busy === true).length
    const now = text({ agents: rows.length, busy, needs: matters.length + more })
    if ((yield* Ref.getAndSet(told, now)) !== now) yield* notify.status(now)
  })
  yield* Effect.ignore(agents.recovered)
  return yield* Effect.forever(
    Effect.andThen(
      Effect.catchCause(look, (cause) => Effect.logWarning("the status line could not be sent", cause)),
      Effect.sleep(LOOK)
    )
  )
})
