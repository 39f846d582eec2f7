/**
 * Refused: the error of a state machine or other actor that does not accept an event in its current state. Nothing was
 * changed. For a machine, the error names the states that accept the event.
 */
import { Schema } from "effect"
import type { AnyMachine } from "./StateMachine.ts"

export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  actor: Schema.String,
  state: Schema.String,
  event: Schema.String,
  why: Schema.Literals(["stale", "illegal", "postponed-limit"]),
  message: Schema.String,
  remedy: Schema.String
}) {}

const takenIn = (machine: AnyMachine, event: string): ReadonlyArray<string> =>
  Object.entries(machine.table as Record<string, Record<string, unknown>>).flatMap(([state, row]) =>
    typeof row[event] === "object" ? [state] : []
  )

const remedyOf = (machine: AnyMachine, event: string, why: Refused["why"]): string => {
  if (why === "stale") return "the event came too late: read the current state, then decide again"
  if (why === "postponed-limit") return "too many events wait for the state to change: try again when it has changed"
  const states = takenIn(machine, event)
  return states.length === 0 ? "no state accepts the event" : `the event is accepted in ${states.join(", ")}`
}

export const refused = (machine: AnyMachine, actor: string, state: string, event: string, why: Refused["why"]) =>
  new Refused({
    actor,
    state,
    event,
    why,
    message: `${actor} refuses ${event} in ${state}: ${why}`,
    remedy: remedyOf(machine, event, why)
  })

const plainRemedies = {
  stale: "the message came too late: read the current state, then decide again",
  illegal: "the current state does not accept the message: read the state, then decide again",
  "postponed-limit": "too many messages wait for the state to change: try again when it has changed"
} as const

export const tagOf = (message: unknown): string =>
  typeof message === "object" && message !== null && "_tag" in message ? String(message._tag) : typeof message

/** Creates the error for an actor that is not a state machine. */
export const plainRefusal = (actor: string, message: unknown, why: Refused["why"]) => {
  const event = tagOf(message)
  return new Refused({
    actor,
    state: "",
    event,
    why,
    message: `${actor} refuses ${event}: ${why}`,
    remedy: plainRemedies[why]
  })
}
