/** TurnFault: whether a turn's end says something of its agent's work: what is none of its fault is no error of its own. Pure. */
import type { TurnOutcome } from "../../domain/AgentPort.ts"
import type { Said } from "../../core/event-log/EventKinds.ts"
import { readTurn } from "./TurnKinds.ts"

/** Why a turn has ended that was on when agentd was stopped. */
export const LOST = "agentd was stopped while it ran"

/** Errors that say nothing of the work that they ended. */
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

/** How the conversation counts a turn's end, which the rune tells of. */
export const countedAs = (outcome: TurnOutcome, any: Said): TurnOutcome => {
  const rune = readTurn(any)
  if (rune?.kind !== "turn.error") return outcome
  const { error_type: type, message } = rune.payload
  return NOT_ITS_FAULT.has(type) || message === LOST ? "interrupted" : outcome
}
