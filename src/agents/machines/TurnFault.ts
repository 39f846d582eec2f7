/** TurnFault: decides whether a turn failed because of the agent's work or because of an external cause. Pure. */
import type { TurnOutcome } from "../../domain/AgentPort.ts"
import type { Said } from "../../core/event-log/EventKinds.ts"
import { readTurn } from "./TurnKinds.ts"

/** The reason that is logged for a turn that was running when agentd ended: by a stop, a crash or a kill. */
export const LOST = "agentd ended while it ran"
/** The same in older logs. */
const WAS_LOST = "agentd was stopped while it ran"

export const NOT_ITS_FAULT: ReadonlySet<string> = new Set([
  "rate_limit",
  "overloaded",
  "server",
  "connection",
  "stream",
  "overflow",
  "held",
  "uncounted",
  "lost"
])

/** The turn's outcome as its conversation counts it. An error with an external cause counts as interrupted. */
export const countedAs = (outcome: TurnOutcome, any: Said): TurnOutcome => {
  const rune = readTurn(any)
  if (rune?.kind !== "turn.error") return outcome
  const { error_type: type, message } = rune.payload
  return NOT_ITS_FAULT.has(type) || message === LOST || message === WAS_LOST ? "interrupted" : outcome
}
