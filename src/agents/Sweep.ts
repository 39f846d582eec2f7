/**
 * Sweep: what nothing else would find: a turn that has not ended though no run
 * works on it, and an agent that goes on past its budget. Each is written as the
 * violation that it is; the turn is ended, and what it was asked is offered again.
 */
import { Effect } from "effect"
import { severityOf } from "../domain/Invariants.ts"
import type { RuneDraft } from "../event-log/Rune.ts"
import * as TurnMachine from "./TurnMachine.ts"
import type { AgentSupervisor } from "./AgentSupervisor.ts"

/** How long after its budget was spent a turn may take to end, besides its grace, ms. */
const PATIENCE = 60_000

const violation = (agent: AgentSupervisor, rule: string, kind: string, actor: string, message: string): RuneDraft => {
  const stream = agent.around.conversation
  const severity = severityOf(rule)
  return {
    stream,
    kind: "invariant.violated",
    actor: "sweep",
    trigger: "sweep",
    payload: { rule, severity, kind, actor, stream, message }
  }
}

/** Whether its budget was spent long ago, and a turn still goes on. */
const overspends = ({ life, turn }: AgentSupervisor, now: number): boolean => {
  const agent = life?.snapshot
  if (agent === undefined || agent.state !== "running_turn" || agent.data.spent === null) return false
  return now - turn.snapshot.at > turn.snapshot.data.graceMillis + PATIENCE
}

/** One agent, at `now` (ms since the epoch). */
export const sweep = Effect.fnUntraced(function* (agent: AgentSupervisor, now: number) {
  const { live, name, turn } = agent
  const { data, state } = turn.snapshot
  const { turnId } = data
  const found: Array<RuneDraft> = []
  const isLost = turnId !== null && TurnMachine.sweepable(state, data, now, live.turnId === turnId)
  if (isLost) {
    const message = `turn ${turnId} of ${name} has not ended, and no run works on it`
    found.push(violation(agent, "INV-TURN-TERMINAL", "turn.started", `turn/${name}`, message))
  }
  if (overspends(agent, now)) {
    const message = `${name} is still in turn ${turnId} though its budget of ${agent.life!.snapshot.data.spent} is spent`
    found.push(violation(agent, "INV-AGENT-BUDGET", "agent.budget_exhausted", `agent/${name}`, message))
  }
  if (found.length > 0) {
    yield* Effect.catch(agent.around.log.append(found), (error) => Effect.logWarning(error.message))
  }
  if (isLost) {
    const message = "no run worked on it any more"
    yield* turn.tell(
      state === "streaming"
        ? { _tag: "stream_error", turnId, errorType: "lost", message, retry: true }
        : { _tag: "tool_crash", turnId, callId: null, message, retry: true }
    )
  }
})
