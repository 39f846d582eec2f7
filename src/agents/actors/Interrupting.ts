/**
 * Interrupting: ends a run's turn, and the processes that its open calls have started.
 *
 * Guarantees: Processes that earlier calls started continue. If the agent reports background work of its own, no
 * process is ended. Every process that had to be ended is reported.
 */
import { Clock, Effect } from "effect"
import type { Run } from "../../runs/Backend.ts"
import type { EventLog } from "../../core/event-log/EventLog.ts"
import { workerName } from "../machines/AgentStates.ts"
import type { LiveRun } from "../run/LiveRun.ts"
import { get, type ToolsState } from "../machines/ToolsState.ts"

/** Maximum time between a call starting a process and the call being reported, ms. */
const LATE = 1_000

export const make = (of: {
  readonly live: LiveRun
  readonly log: EventLog["Service"]
  readonly setting: { readonly agent: string; readonly conversation: string }
  readonly tools: () => ToolsState
}) =>
  Effect.fnUntraced(function* (run: Run) {
    const { live, log, setting } = of
    const now = yield* Clock.currentTimeMillis
    const begun = yield* Effect.forEach(live.calls, ([callId]) => {
      const call = get(of.tools().open, callId)
      if (call === undefined || call.snapshot.state === "awaiting_approval") return Effect.succeed([])
      const { asked, made, snapshot } = call
      // a call that did not ask may have run since it was made; it counts as running only some time later
      if (asked === true || made === undefined) return Effect.succeed([snapshot.at])
      const known = Effect.map(log.get(made), (rune) => [rune?.at ?? snapshot.at])
      // without that rune, only what the call began since it counts as running is ended
      return Effect.orElseSucceed(known, () => [snapshot.at])
    })
    const ages = begun.flat().map((at) => Math.max(0, now - at))
    yield* run.interruptTurn
    if (run.endBegun === undefined || ages.length === 0 || live.background.length > 0) return
    const about = { stream: setting.conversation, kind: "run.notice", actor: workerName(setting.agent) }
    const ending = Effect.match(run.endBegun(Math.max(...ages) + LATE), {
      onFailure: ({ message }) => [`processes that the interrupted call started are still running: ${message}`],
      onSuccess: ([first, ...more]) => {
        const others = more.length === 0 ? "" : ` and ${more.length} more`
        return first === undefined
          ? []
          : [`processes that the interrupted call started were still running, and were ended: ${first}${others}`]
      }
    })
    const told = Effect.flatMap(ending, (texts) =>
      log.appendLazy(texts.map((text) => ({ ...about, payload: { runId: run.runId, text } })))
    )
    live.leaves += 1
    yield* Effect.forkDetach(
      Effect.ensuring(
        told,
        Effect.sync(() => void (live.leaves -= 1))
      )
    )
  })
