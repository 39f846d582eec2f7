/** TurnFault: whether the end of a turn is an error of the agent's work, or has an external cause. Pure. */
import type { TurnOutcome } from "../../domain/AgentPort.ts"
import type { Said } from "../../core/event-log/EventKinds.ts"
import { readTurn } from "./TurnKinds.ts"

/** Why a turn ended that was running when agentd was stopped. */
export const LOST = "agentd was stopped while it ran"

/** Error types with causes outside the agent's work. */
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

/** The outcome that the conversation counts for a turn. An error with an external cause counts as interrupted. */
export const countedAs = (outcome: TurnOutcome, any: Said): TurnOutcome => {
  const rune = readTurn(any)
  if (rune?.kind !== "turn.error") return outcome
  const { error_type: type, message } = rune.payload
  return NOT_ITS_FAULT.has(type) || message === LOST ? "interrupted" : outcome
}
